/*
 * The records of one epoch, read from Postgres page by page. Only SELECTs.
 */

import { profileOf } from '../cri/profiles.ts';
import { type Mono, millis, mono } from '../protocol/units.ts';
import type { SqlRunner } from '../store/runner.ts';
import {
  type ChangeRow,
  changeOf,
  type EventRow,
  eventOf,
  type FindingRow,
  findingOf,
  type GapRow,
  gapOf,
  type IdentityRow,
  initialOf,
  type KeyedRow,
  type MinuteRow,
  minuteOf,
  type SessionRow,
  sessionOf,
} from './epochRows.ts';
import findAddedRecords from './sql/findAddedRecords.sql';
import findLaterEvents from './sql/findLaterEvents.sql';
import findStrayEvents from './sql/findStrayEvents.sql';
import listContexts from './sql/listContexts.sql';
import readChanges from './sql/readChanges.sql';
import readEvents from './sql/readEvents.sql';
import readFindings from './sql/readFindings.sql';
import readGaps from './sql/readGaps.sql';
import readIdentities from './sql/readIdentities.sql';
import readInitial from './sql/readInitial.sql';
import readMinutes from './sql/readMinutes.sql';
import readSessions from './sql/readSessions.sql';
import type { StoredChange, StoredEpoch, StoredEvent, StoredFinding, StoredMinute } from './storedEpoch.ts';
import type { StreamRecords } from './streamRecords.ts';

const PAGE = 5_000;
/** Minutes are few, and long. */
const MINUTES = 200;

export interface EpochRow {
  readonly node_id: number;
  readonly node: string;
  readonly epoch: string;
  readonly started_us: number;
  readonly complete_to: number;
  readonly last_seq: number;
}

type ContextRow = {
  context_id: number;
  runtime_name: string;
  runtime_version: string;
  overdue_after: number;
  missed_after: number;
  late_after: number;
  first_seq: number | null;
};
export interface EpochRecords {
  readonly stored: StoredEpoch;
  readonly stream: StreamRecords;
  /** Times of minutes that do not follow on each other, as they are read. */
  readonly holes: { readonly from: Mono; readonly to: Mono }[];
}

/** Null where there is nothing to audit. `since`: the earliest record to read, in microseconds since 1970. */
export async function readEpoch(sql: SqlRunner, row: EpochRow, since: number): Promise<EpochRecords | null> {
  const { rows: contexts } = await sql.run<ContextRow>({ text: listContexts }, [row.node_id, row.epoch]);
  const reader = new EpochReader(sql, row, contexts, since);
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
      overdueAfter: millis(context.overdue_after / 1000),
      missedAfter: millis(context.missed_after / 1000),
      lateAfter: millis(context.late_after / 1000),
    },
    runtimes: contexts.map(({ runtime_name: name, runtime_version: version, first_seq }) => ({
      seq: first_seq ?? Number.MAX_SAFE_INTEGER,
      profile: profileOf({ name, version }),
    })),
    sessions: stream.sessions,
    gaps: stream.gaps,
    initial: await reader.initial(),
    events: reader.events(),
    changes: reader.changes(),
    findings: reader.findings(),
    minutes: reader.minutes((from, to) => holes.push({ from, to })),
  };
  return { stored, stream, holes };
}

class EpochReader {
  readonly #sql: SqlRunner;
  readonly #row: EpochRow;
  readonly #contexts: readonly ContextRow[];
  readonly #since: number;

  constructor(sql: SqlRunner, row: EpochRow, contexts: readonly ContextRow[], since: number) {
    this.#sql = sql;
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
    for await (const row of this.#rows<MinuteRow>(readMinutes, MINUTES)) {
      const minute = minuteOf(row);
      if (last !== null && minute.from !== last) onHole(last, minute.from);
      last = minute.to;
      yield minute;
    }
  }

  async *events(): AsyncGenerator<StoredEvent> {
    const rows = this.#identified(this.#pages<EventRow>(readEvents, PAGE));
    for await (const { row, whose } of rows) yield eventOf(row, whose);
  }

  async *changes(): AsyncGenerator<StoredChange> {
    const rows = this.#identified(this.#pages<ChangeRow>(readChanges, PAGE));
    for await (const { row, whose } of rows) yield changeOf(row, whose);
  }

  async *findings(): AsyncGenerator<StoredFinding> {
    const { node_id, epoch, complete_to, started_us } = this.#row;
    const values = [node_id, epoch, this.#contextIds, complete_to, started_us];
    const { rows } = await this.#sql.run<{ finding_id: string; at: number }>(
      { text: findLaterEvents },
      values,
    );
    const later = new Map(rows.map(({ finding_id, at }) => [finding_id, mono(at)]));
    for await (const row of this.#rows<FindingRow>(readFindings, PAGE)) {
      yield findingOf(row, later.get(row.finding_id) ?? null);
    }
  }

  async initial(): Promise<StoredEpoch['initial']> {
    const { node_id, complete_to } = this.#row;
    const values = [node_id, this.#contextIds, complete_to, this.#since];
    const { rows } = await this.#sql.run<ChangeRow>({ text: readInitial }, values);
    const identities = await this.#identitiesOf(rows);
    return rows.map((row) => initialOf(row, identities(row)));
  }

  async stream(start: Mono, end: Mono): Promise<StreamRecords> {
    const { node_id, epoch, complete_to, started_us, last_seq } = this.#row;
    const values = [node_id, epoch, this.#contextIds, complete_to, started_us];
    const sessions = await this.#sql.run<SessionRow>({ text: readSessions }, values);
    const gaps = await this.#sql.run<GapRow>({ text: readGaps }, values);
    const strays = await this.#sql.run<StreamRecords['strayEvents'][number]>(
      { text: findStrayEvents },
      values,
    );
    const added = await this.#sql.run<StreamRecords['added'][number]>({ text: findAddedRecords }, [
      ...[node_id, epoch, this.#contextIds, started_us],
    ]);
    return {
      start,
      end,
      added: added.rows,
      complete: complete_to === last_seq,
      sessions: sessions.rows.map(sessionOf),
      gaps: gaps.rows.filter(({ scope }) => scope === 'stream').map(gapOf),
      agentGaps: gaps.rows.filter(({ scope }) => scope === 'agent').map(gapOf),
      strayEvents: strays.rows,
    };
  }

  get #contextIds(): number[] {
    return this.#contexts.map(({ context_id }) => context_id);
  }

  /** All rows of a statement, in the order of their seqs. */
  async *#rows<R extends { readonly seq: number }>(text: string, size: number): AsyncGenerator<R> {
    for await (const page of this.#pages<R>(text, size)) yield* page;
  }

  async *#pages<R extends { readonly seq: number }>(text: string, size: number): AsyncGenerator<R[]> {
    const { node_id, started_us, complete_to } = this.#row;
    for (const { context_id } of this.#contexts) {
      let after = 0;
      for (;;) {
        const values = [node_id, context_id, after, complete_to, started_us, this.#since, size];
        const { rows } = await this.#sql.run<R>({ text }, values);
        yield rows;
        const last = rows.at(-1);
        if (last === undefined || rows.length < size) break;
        after = last.seq;
      }
    }
  }

  /** Rows with what is stored of whose their ids are. */
  async *#identified<R extends KeyedRow>(pages: AsyncIterable<R[]>): AsyncGenerator<Identified<R>> {
    for await (const rows of pages) {
      const identities = await this.#identitiesOf(rows);
      for (const row of rows) yield { row, whose: identities(row) };
    }
  }

  async #identitiesOf(rows: readonly KeyedRow[]): Promise<(row: KeyedRow) => IdentityRow | undefined> {
    const nameOf = ({ key, day }: KeyedRow) => `${key} ${day}`;
    const wanted = [...new Map(rows.map((row) => [nameOf(row), row])).values()];
    if (wanted.length === 0) return () => undefined;
    const identities = await this.#sql.run<IdentityRow>({ text: readIdentities }, [
      ...[this.#row.node_id, wanted.map(({ key }) => key), wanted.map(({ day }) => day)],
    ]);
    const known = new Map(identities.rows.map((row) => [nameOf(row), row]));
    return (row) => known.get(nameOf(row));
  }
}

interface Identified<R> {
  readonly row: R;
  /** Undefined where nothing is stored of it. */
  readonly whose: IdentityRow | undefined;
}
