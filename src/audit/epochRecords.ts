/*
 * The records of one epoch, read from Postgres page by page. Only SELECTs.
 */

import { and, eq, sql } from 'drizzle-orm';
import { profileOf } from '../cri/profiles.ts';
import { type Mono, millis, mono } from '../protocol/units.ts';
import { typed } from '../store/expressions.ts';
import type { SqlRunner } from '../store/runner.ts';
import { float8, int4 } from '../store/schema/columns.ts';
import { cluster, epoch, node } from '../store/schema/tables.ts';
import type { RowOf, Statement } from '../store/statement.ts';
import {
  changeOf,
  eventOf,
  findingOf,
  gapOf,
  type IdentityRow,
  initialOf,
  type KeyedRow,
  minuteOf,
  sessionOf,
} from './epochRows.ts';
import {
  findAddedRecords,
  findLaterEvents,
  findStrayEvents,
  listContexts,
  readChanges,
  readEvents,
  readFindings,
  readGaps,
  readIdentities,
  readInitial,
  readMinutes,
  readSessions,
} from './statements.ts';
import type { StoredChange, StoredEpoch, StoredEvent, StoredFinding, StoredMinute } from './storedEpoch.ts';
import type { StreamRecords } from './streamRecords.ts';

const PAGE = 5_000;
/** Minutes are few, and long. */
const MINUTES = 200;

export type EpochRow = Awaited<ReturnType<typeof listEpochs>>[number];
type ContextRow = RowOf<typeof listContexts>;

/** Which epochs are audited: those that have records in this time. Undefined: all. */
export interface AskedEpochs {
  readonly cluster: string;
  readonly node: string | undefined;
  readonly from: Date | undefined;
  readonly to: Date | undefined;
}

/** `complete_to`: the last seq up to which every record is stored. */
export const listEpochs = (runner: SqlRunner, asked: AskedEpochs) =>
  runner.query((db) => {
    const { started_at, last_record_at, received } = epoch;
    const ended = sql`coalesce(${last_record_at}, ${started_at})`;
    return db
      .select({
        ...{ node_id: epoch.node_id, node: node.name, epoch: epoch.epoch, last_seq: epoch.last_seq },
        started_us: typed(float8, sql`(extract(epoch FROM ${started_at}) * 1000000)::float8`),
        complete_to: typed(int4, sql`store.acked_seq(${received}, '{}')`),
      })
      .from(epoch)
      .innerJoin(node, eq(node.node_id, epoch.node_id))
      .innerJoin(cluster, eq(cluster.cluster_id, epoch.cluster_id))
      .where(
        and(
          eq(cluster.name, asked.cluster),
          asked.node === undefined ? undefined : eq(node.name, asked.node),
          asked.to && sql`${started_at} < ${asked.to}`,
          asked.from && sql`${ended} >= ${asked.from}`,
        ),
      )
      .orderBy(node.name, epoch.incarnation);
  });

export interface EpochRecords {
  readonly stored: StoredEpoch;
  readonly stream: StreamRecords;
  /** Times of minutes that do not follow on each other, as they are read. */
  readonly holes: { readonly from: Mono; readonly to: Mono }[];
}

/** Null where there is nothing to audit. `since`: the earliest record to read, in microseconds since 1970. */
export async function readEpoch(
  runner: SqlRunner,
  row: EpochRow,
  since: number,
): Promise<EpochRecords | null> {
  const { rows: contexts } = await runner.run(listContexts, [row.node_id, row.epoch]);
  const reader = new EpochReader(runner, row, contexts, since);
  const [context] = contexts;
  const bounds = await reader.bounds();
  if (context === undefined || bounds === null) return null;
  const { start, end, lastMinute, clock } = bounds;
  const stream = await reader.stream(start, end);
  const holes: EpochRecords['holes'] = [];
  const stored: StoredEpoch = {
    start,
    end,
    lastMinute,
    clock,
    settings: {
      overdueAfter: millis(context.overdue_after_us / 1000),
      missedAfter: millis(context.missed_after_us / 1000),
      lateAfter: millis(context.late_after_us / 1000),
    },
    runtimes: contexts.map(({ runtime_name: name, runtime_version: version, first_seq }) => ({
      seq: first_seq ?? Number.MAX_SAFE_INTEGER,
      profile: profileOf({ name, version }),
    })),
    sessions: stream.sessions,
    gaps: stream.gaps,
    kubeletGaps: stream.kubeletGaps,
    initial: await reader.initial(),
    events: reader.events(),
    changes: reader.changes(),
    findings: reader.findings(),
    minutes: reader.minutes((from, to) => holes.push({ from, to })),
  };
  return { stored, stream, holes };
}

class EpochReader {
  readonly #runner: SqlRunner;
  readonly #row: EpochRow;
  readonly #contexts: readonly ContextRow[];
  readonly #since: number;

  constructor(runner: SqlRunner, row: EpochRow, contexts: readonly ContextRow[], since: number) {
    this.#runner = runner;
    this.#row = row;
    this.#contexts = contexts;
    this.#since = Math.max(since, row.started_us);
  }

  /** The period that the stored minutes cover; null where there is none. */
  async bounds(): Promise<Pick<StoredEpoch, 'start' | 'end' | 'lastMinute' | 'clock'> | null> {
    let first: StoredMinute | null = null;
    let last: StoredMinute | null = null;
    for await (const minute of this.minutes(() => {})) {
      first ??= minute;
      last = minute;
    }
    if (first === null || last === null) return null;
    const isWhole = first.from <= 0;
    // The store dates an epoch by the node's wall clock.
    return {
      start: isWhole ? mono(0) : first.from,
      end: last.to,
      lastMinute: last.seq,
      clock: isWhole ? this.#row.started_us : null,
    };
  }

  async *minutes(onHole: (from: Mono, to: Mono) => void): AsyncGenerator<StoredMinute> {
    let last: Mono | null = null;
    for await (const row of this.#rows(readMinutes, MINUTES)) {
      const minute = minuteOf(row);
      if (last !== null && minute.from !== last) onHole(last, minute.from);
      last = minute.to;
      yield minute;
    }
  }

  async *events(): AsyncGenerator<StoredEvent> {
    const rows = this.#identified(this.#pages(readEvents, PAGE));
    for await (const { row, whose } of rows) yield eventOf(row, whose);
  }

  async *changes(): AsyncGenerator<StoredChange> {
    const rows = this.#identified(this.#pages(readChanges, PAGE));
    for await (const { row, whose } of rows) yield changeOf(row, whose);
  }

  async *findings(): AsyncGenerator<StoredFinding> {
    const { node_id, epoch, complete_to, started_us } = this.#row;
    const values = [node_id, epoch, this.#contextIds, complete_to, started_us];
    const { rows } = await this.#runner.run(findLaterEvents, values);
    const later = new Map(rows.map(({ finding_id, at }) => [finding_id, at]));
    for await (const row of this.#rows(readFindings, PAGE)) {
      yield findingOf(row, later.get(row.finding_id) ?? null);
    }
  }

  async initial(): Promise<StoredEpoch['initial']> {
    const { node_id, complete_to } = this.#row;
    const values = [node_id, this.#contextIds, complete_to, this.#since];
    const { rows } = await this.#runner.run(readInitial, values);
    const identities = await this.#identitiesOf(rows);
    return rows.map((row) => initialOf(row, identities(row)));
  }

  async stream(start: Mono, end: Mono): Promise<StreamRecords> {
    const { node_id, epoch, complete_to, started_us, last_seq } = this.#row;
    const values = [node_id, epoch, this.#contextIds, complete_to, started_us];
    const sessions = await this.#runner.run(readSessions, values);
    const gaps = await this.#runner.run(readGaps, values);
    const strays = await this.#runner.run(findStrayEvents, values);
    const of = [node_id, epoch, this.#contextIds, started_us];
    const added = await this.#runner.run(findAddedRecords, of);
    return {
      start,
      end,
      added: added.rows,
      complete: complete_to === last_seq,
      sessions: sessions.rows.map(sessionOf),
      gaps: gaps.rows.filter(({ scope }) => scope === 'stream').map(gapOf),
      kubeletGaps: gaps.rows.filter(({ scope }) => scope === 'kubelet_status').map(gapOf),
      agentGaps: gaps.rows.filter(({ scope }) => scope === 'agent').map(gapOf),
      strayEvents: strays.rows,
    };
  }

  get #contextIds(): number[] {
    return this.#contexts.map(({ context_id }) => context_id);
  }

  /** All rows of a statement, in the order of their seqs. */
  async *#rows<R extends { readonly seq: number }>(page: Statement<R>, size: number): AsyncGenerator<R> {
    for await (const rows of this.#pages(page, size)) yield* rows;
  }

  async *#pages<R extends { readonly seq: number }>(page: Statement<R>, size: number): AsyncGenerator<R[]> {
    const { node_id, started_us, complete_to } = this.#row;
    for (const { context_id } of this.#contexts) {
      let after = 0;
      for (;;) {
        const values = [node_id, context_id, after, complete_to, started_us, this.#since, size];
        const { rows } = await this.#runner.run(page, values);
        yield rows;
        const last = rows.at(-1);
        if (last === undefined || rows.length < size) break;
        after = last.seq;
      }
    }
  }

  /** Rows with what is stored of whose their ids are: undefined where nothing is. */
  async *#identified<R extends KeyedRow>(
    pages: AsyncIterable<R[]>,
  ): AsyncGenerator<{ readonly row: R; readonly whose: IdentityRow | undefined }> {
    for await (const rows of pages) {
      const identities = await this.#identitiesOf(rows);
      for (const row of rows) yield { row, whose: identities(row) };
    }
  }

  async #identitiesOf(rows: readonly KeyedRow[]): Promise<(row: KeyedRow) => IdentityRow | undefined> {
    const nameOf = ({ key, day }: KeyedRow) => `${key} ${day}`;
    const wanted = [...new Map(rows.map((row) => [nameOf(row), row])).values()];
    if (wanted.length === 0) return () => undefined;
    const identities = await this.#runner.run(readIdentities, [
      ...[this.#row.node_id, wanted.map(({ key }) => key), wanted.map(({ day }) => day)],
    ]);
    const known = new Map(identities.rows.map((row) => [nameOf(row), row]));
    return (row) => known.get(nameOf(row));
  }
}
