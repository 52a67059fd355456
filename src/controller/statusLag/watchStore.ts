/*
 * The watches in Postgres: transitions whose pods are being read. A new leader continues with them.
 *
 * Reads are timed with this machine's monotonic clock and converted to the store's clock with the time that each claim returns: the store
 * read its clock between our request and its response.
 */
import { and, asc, eq, lt, lte, type SQL, sql } from 'drizzle-orm';
import { wallNow } from '../../platform/clock.ts';
import type { Mono } from '../../protocol/units.ts';
import { databaseNow, typed } from '../../store/expressions.ts';
import { dayOf, ensurePartition } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { float8, int4 } from '../../store/schema/columns.ts';
import { statusLagWatch } from '../../store/schema/tables.ts';
import { nullable } from '../../store/statement.ts';
import { enqueueReports } from '../../store/statements.ts';
import type { Store } from '../../store/store.ts';
import type { StatusLag } from './bounds.ts';
import { type ClaimedWatch, claimDueWatches, endWatch, recordStaleRead } from './statements.ts';
import type { WatchKind } from './watchLimits.ts';

/** Why a watch ends without a lag. */
export type LagReason =
  | 'superseded'
  | 'pod_deleted'
  | 'uid_differs'
  | 'no_api_object'
  | 'timed_out'
  | 'not_read';

export type ExpiredWatch = Awaited<ReturnType<WatchStore['expired']>>[number];

type WatchKey = Pick<ClaimedWatch, 'node_id' | 'finding_id'>;

/** Bounds of the store's clock, in microseconds since 1970, at a time of this machine's monotonic clock. */
export interface StoreClock {
  readonly atLeast: (at: Mono) => number;
  readonly atMost: (at: Mono) => number;
}

/** Longer than a read can take. */
const CLAIM_MS = 30_000;
/** A lag is not compared with fewer samples than these: their 99th percentile would be their maximum. */
const MIN_SAMPLES = 100;

export class WatchStore {
  readonly #store: Store;
  readonly #cluster: number;
  readonly #clock: () => Mono;
  #partitioned = 0;

  constructor(store: Store, clusterId: number, clock: () => Mono) {
    this.#store = store;
    this.#cluster = clusterId;
    this.#clock = clock;
  }

  async claim(limit: number): Promise<{ claimed: readonly ClaimedWatch[]; clock: StoreClock }> {
    const requested = this.#clock();
    const { rows } = await this.#store.run(claimDueWatches, [this.#cluster, limit, CLAIM_MS]);
    const answered = this.#clock();
    const claimedAt = rows[0]?.now ?? 0;
    const clock = {
      atLeast: (at: Mono) => claimedAt + (at - answered),
      atMost: (at: Mono) => claimedAt + (at - requested),
    };
    return { claimed: rows, clock };
  }

  async recordStaleRead(
    { node_id, finding_id }: WatchKey,
    read: {
      readonly began: number;
      readonly podMatched: boolean;
      readonly containerMatched: boolean;
      readonly nextMs: number;
    },
  ): Promise<void> {
    const found = [read.podMatched, read.containerMatched];
    const values = [node_id, finding_id, Math.floor(read.began), ...found, Math.ceil(read.nextMs)];
    await this.#store.run(recordStaleRead, values);
  }

  /** After a read without an answer. */
  async postpone({ node_id, finding_id }: WatchKey, waitMs: number): Promise<void> {
    const { node_id: ofNode, finding_id: ofFinding } = statusLagWatch;
    await this.#store.query((db) =>
      db
        .update(statusLagWatch)
        .set({ due_at: sql`${databaseNow} + ${waitMs} * interval '1 millisecond'` })
        .where(and(eq(ofNode, node_id), eq(ofFinding, finding_id))),
    );
  }

  /** Ends a watch. Returns whether that changed a finding. */
  async end({ node_id, finding_id }: WatchKey, result: StatusLag | LagReason): Promise<boolean> {
    const [lag, reason] = typeof result === 'string' ? [null, result] : [result, null];
    const today = dayOf(wallNow());
    const ended = await this.#store.transaction(async (runner) => {
      if (today !== this.#partitioned) await makePartitions(runner, today);
      const bounds = [lag?.min ?? null, lag?.max ?? null];
      const { count } = await runner.run(endWatch, [node_id, finding_id, ...bounds, reason, MIN_SAMPLES]);
      // Reports show the lag of missed events.
      if (count > 0) await runner.run(enqueueReports, [this.#cluster, [node_id], [true]]);
      return count > 0;
    });
    this.#partitioned = today;
    return ended;
  }

  /** `behind_ms`: from the transition to the start of the last stale read; null without one. */
  expired(limit: number) {
    const { node_id, finding_id, kind, reads, stale_read_at, latest_at, expires_at } = statusLagWatch;
    const behind = sql`(extract(epoch FROM ${stale_read_at} - ${latest_at}) * 1000)::float8`;
    return this.#store.query((db) =>
      db
        .select({ node_id, finding_id, kind, reads, behind_ms: typed(nullable(float8), behind) })
        .from(statusLagWatch)
        .where(and(this.#isOurs, lte(expires_at, databaseNow)))
        .orderBy(asc(expires_at))
        .limit(limit),
    );
  }

  /** Deletes samples that could not be read in time, because their lag would only measure our own load. Returns how many. */
  async dropOverdueSamples(afterMs: number): Promise<number> {
    const { kind, due_at, finding_id } = statusLagWatch;
    const isOverdue = lt(due_at, sql`${databaseNow} - ${afterMs} * interval '1 millisecond'`);
    const dropped = await this.#store.query((db) =>
      db
        .delete(statusLagWatch)
        .where(and(this.#isOurs, eq(kind, 'sample'), isOverdue))
        .returning({ finding_id }),
    );
    return dropped.length;
  }

  async counts(): Promise<Readonly<Record<WatchKind, number>>> {
    const { kind } = statusLagWatch;
    const rows = await this.#store.query((db) =>
      db
        .select({ kind, count: typed(int4, sql`count(*)::int4`) })
        .from(statusLagWatch)
        .where(this.#isOurs)
        .groupBy(kind),
    );
    const countOf = (of: WatchKind) => rows.find((row) => row.kind === of)?.count ?? 0;
    return { overdue: countOf('overdue'), fallback: countOf('fallback'), sample: countOf('sample') };
  }

  get #isOurs(): SQL {
    return eq(statusLagWatch.cluster_id, this.#cluster);
  }
}

/** Partitions of three days: the store's clock, which decides the day, may differ from ours. */
async function makePartitions(runner: SqlRunner, today: number): Promise<void> {
  for (const day of [today - 1, today, today + 1]) {
    await ensurePartition(runner, 'finding_update', day);
  }
}
