/*
 * The watches in Postgres: transitions whose pods are being read. A new leader continues with them.
 *
 * Reads are timed with this machine's monotonic clock and converted to the store's clock with the time that each claim returns: the store
 * read its clock between our request and its response.
 */
import { type Micros, millis } from '../../protocol/units.ts';
import { dayOf, ensurePartition } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import enqueueReports from '../../store/sql/enqueueReports.sql';
import type { Store } from '../../store/store.ts';
import type { StatusLag } from './bounds.ts';
import type { TransitionType } from './podStatus.ts';
import claimDueWatches from './sql/claimDueWatches.sql';
import countWatches from './sql/countWatches.sql';
import dropOverdueSamples from './sql/dropOverdueSamples.sql';
import endWatch from './sql/endWatch.sql';
import listExpiredWatches from './sql/listExpiredWatches.sql';
import postponeWatch from './sql/postponeWatch.sql';
import recordStaleRead from './sql/recordStaleRead.sql';

/** Why a watch ends without a lag. */
export type LagReason =
  | 'superseded'
  | 'pod_deleted'
  | 'uid_differs'
  | 'no_api_object'
  | 'timed_out'
  | 'not_read';

/** A watch that is due to be read. Times are microseconds since 1970 on the store's clock. */
export interface ClaimedWatch {
  readonly node_id: number;
  readonly finding_id: string;
  readonly event_type: TransitionType;
  readonly container_id: string;
  readonly pod_uid: string;
  readonly pod_namespace: string;
  readonly pod_name: string;
  readonly container_name: string;
  readonly attempt: number;
  readonly reads: number;
  readonly pod_matched: boolean;
  readonly container_matched: boolean;
  readonly latest: number;
  readonly earliest: number | null;
  readonly stale_read: number | null;
  readonly arrived: number;
}

type ClaimedWatchRow = ClaimedWatch & { readonly now: number };

export interface ExpiredWatch extends Pick<ClaimedWatch, 'node_id' | 'finding_id' | 'reads'> {
  readonly sample: boolean;
  /** Time from the transition to the start of the last stale read; null without one. */
  readonly behind_ms: number | null;
}

type WatchKey = Pick<ClaimedWatch, 'node_id' | 'finding_id'>;

/** Bounds of the store's clock at a time of this machine's monotonic clock. */
export interface StoreClock {
  readonly atLeast: (at: Micros) => number;
  readonly atMost: (at: Micros) => number;
}

/** Longer than a read can take. */
const CLAIM_MS = 30_000;
/** A lag is not compared with fewer samples than these: their 99th percentile would be their maximum. */
const MIN_SAMPLES = 100;

export class WatchStore {
  readonly #store: Store;
  readonly #cluster: number;
  #partitioned = 0;

  constructor(store: Store, clusterId: number) {
    this.#store = store;
    this.#cluster = clusterId;
  }

  async claim(limit: number): Promise<{ claimed: readonly ClaimedWatch[]; clock: StoreClock }> {
    const requested = monotonic();
    const { rows } = await this.#store.run<ClaimedWatchRow>(
      { name: 'claim_due_watches', text: claimDueWatches },
      [this.#cluster, limit, CLAIM_MS],
    );
    const answered = monotonic();
    const now = rows[0]?.now ?? 0;
    const clock = {
      atLeast: (at: Micros) => now + (at - answered),
      atMost: (at: Micros) => now + (at - requested),
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
    const values = [
      node_id,
      finding_id,
      Math.floor(read.began),
      read.podMatched,
      read.containerMatched,
      Math.ceil(read.nextMs),
    ];
    await this.#store.run({ name: 'record_stale_read', text: recordStaleRead }, values);
  }

  async postpone({ node_id, finding_id }: WatchKey, waitMs: number): Promise<void> {
    await this.#store.run({ text: postponeWatch }, [node_id, finding_id, Math.ceil(waitMs)]);
  }

  /** Ends a watch. Returns whether that changed a finding. */
  async end({ node_id, finding_id }: WatchKey, result: StatusLag | LagReason): Promise<boolean> {
    const [lag, reason] = typeof result === 'string' ? [null, result] : [result, null];
    const today = dayOf(Date.now() * 1000);
    const ended = await this.#store.transaction(async (runner) => {
      if (today !== this.#partitioned) await makePartitions(runner, today);
      const { count } = await runner.run({ text: endWatch }, [
        node_id,
        finding_id,
        lag?.min ?? null,
        lag?.max ?? null,
        reason,
        MIN_SAMPLES,
      ]);
      // Reports show the lag of missed events.
      if (count > 0) await runner.run({ text: enqueueReports }, [this.#cluster, [node_id], [true]]);
      return count > 0;
    });
    this.#partitioned = today;
    return ended;
  }

  async expired(limit: number): Promise<readonly ExpiredWatch[]> {
    return (await this.#store.run<ExpiredWatch>({ text: listExpiredWatches }, [this.#cluster, limit])).rows;
  }

  async dropOverdueSamples(afterMs: number): Promise<number> {
    return (await this.#store.run({ text: dropOverdueSamples }, [this.#cluster, afterMs])).count;
  }

  async counts(): Promise<{ overdue: number; samples: number }> {
    const { rows } = await this.#store.run<{ overdue: number; samples: number }>({ text: countWatches }, [
      this.#cluster,
    ]);
    return rows[0] ?? { overdue: 0, samples: 0 };
  }
}

/** Of three days: the store's clock, which decides the day, may differ from ours. */
async function makePartitions(runner: SqlRunner, today: number): Promise<void> {
  for (const day of [today - 1, today, today + 1]) {
    await ensurePartition(runner, 'finding_update', day);
  }
}

export const monotonic = (): Micros => millis(performance.now());
