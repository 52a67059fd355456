/*
 * The records of one epoch, read from Postgres page by page. Only SELECTs.
 */
import type { SqlRunner } from '../controller/store/store.ts';
import { profileOf } from '../cri/profiles.ts';
import { type ContainerIdentity, type FindingKind, PLEG_STATES, type PlegState } from '../protocol/record.ts';
import { type Mono, millis, mono } from '../protocol/units.ts';
import findAddedRecords from './sql/findAddedRecords.sql';
import findStrayEvents from './sql/findStrayEvents.sql';
import listContexts from './sql/listContexts.sql';
import readChanges from './sql/readChanges.sql';
import readEvents from './sql/readEvents.sql';
import readFindings from './sql/readFindings.sql';
import readGaps from './sql/readGaps.sql';
import readInitial from './sql/readInitial.sql';
import readMinutes from './sql/readMinutes.sql';
import readSessions from './sql/readSessions.sql';
import type {
  StoredChange,
  StoredEpoch,
  StoredEvent,
  StoredFinding,
  StoredMinute,
  StoredRelist,
} from './storedEpoch.ts';
import type { StreamRecords } from './streamRecords.ts';

const PAGE = 5_000;
const LIST_FIELDS = 5;
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
type IdentityRow = {
  key: string;
  id: string | null;
  sandbox: string | null;
  attempt: number | null;
  pod_uid: string | null;
  pod_namespace: string | null;
  pod_name: string | null;
  container_name: string | null;
};
type EventRow = IdentityRow & { seq: number; received: number; created_ns: string; flags: number };
type ChangeRow = IdentityRow & { seq: number; window_from: number; window_to: number; states: number };
type MinuteRow = { seq: number; ended: number; span: number; wall: number; lists: number[]; relists: number };
type FindingRow = {
  seq: number;
  finding_id: string;
  at: number;
  kind: FindingKind;
  event_type: string | null;
  cause: string;
  container_id: string | null;
  window_from: number | null;
  window_to: number | null;
  proof: Record<string, unknown>;
};
type SessionRow = {
  session_no: number;
  opened: number;
  armed: number | null;
  closed: number | null;
  events: number;
  replayed: number;
  first_event: number | null;
  stored_events: number;
  stored_replayed: number;
  first_live_ns: string | null;
};
type GapRow = {
  gap_id: string;
  cause: string;
  from_at: number;
  to_at: number | null;
  event_inside: number | null;
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
  const { start, end, clock } = bounds;
  const stream = await reader.stream(start, end);
  const holes: EpochRecords['holes'] = [];
  const stored: StoredEpoch = {
    start,
    end,
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
  async bounds(): Promise<Pick<StoredEpoch, 'start' | 'end' | 'clock'> | null> {
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
      clock: isWhole ? this.#row.started_us : null,
    };
  }

  async *minutes(onHole: (from: Mono, to: Mono) => void): AsyncGenerator<StoredMinute> {
    let last: Mono | null = null;
    for await (const { ended, span, wall, lists, relists } of this.#pages<MinuteRow>(readMinutes, MINUTES)) {
      const from = mono(ended - span);
      if (last !== null && from !== last) onHole(last, from);
      last = mono(ended);
      const stored = relistsOf(lists, from);
      yield { from, to: last, clock: wall - ended, relists: stored, complete: stored.length === relists };
    }
  }

  async *events(): AsyncGenerator<StoredEvent> {
    for await (const row of this.#pages<EventRow>(readEvents, PAGE)) {
      const { seq, received, created_ns, flags, key, id } = row;
      yield {
        seq,
        received: mono(received),
        id: id ?? key,
        identity: identityOf(row, (flags & 1024) !== 0),
        type: flags & 255,
        createdNs: BigInt(created_ns),
        replayed: (flags & 256) !== 0,
        hasSandboxStatus: (flags & 512) !== 0,
      };
    }
  }

  async *changes(): AsyncGenerator<StoredChange> {
    for await (const row of this.#pages<ChangeRow>(readChanges, PAGE)) {
      yield {
        seq: row.seq,
        from: mono(row.window_from),
        to: mono(row.window_to),
        identity: listedIdentity(row, row.states),
        oldState: stateOf(row.states & 15),
        newState: stateOf((row.states >> 4) & 15),
      };
    }
  }

  async *findings(): AsyncGenerator<StoredFinding> {
    for await (const row of this.#pages<FindingRow>(readFindings, PAGE)) {
      yield {
        seq: row.seq,
        at: mono(row.at),
        findingId: row.finding_id,
        kind: row.kind,
        eventType: row.event_type,
        cause: row.cause,
        id: row.container_id,
        from: row.window_from === null ? null : mono(row.window_from),
        to: row.window_to === null ? null : mono(row.window_to),
        proof: row.proof,
      };
    }
  }

  async initial(): Promise<StoredEpoch['initial']> {
    const { node_id, complete_to } = this.#row;
    const values = [node_id, this.#contextIds, complete_to, this.#since];
    const { rows } = await this.#sql.run<ChangeRow>({ text: readInitial }, values);
    return rows.map((row) => ({
      identity: listedIdentity(row, row.states),
      state: stateOf(row.states & 15),
    }));
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
      sessions: sessions.rows.map((row) => ({
        no: row.session_no,
        opened: mono(row.opened),
        armed: row.armed === null ? null : mono(row.armed),
        closed: row.closed === null ? null : mono(row.closed),
        events: row.events,
        replayed: row.replayed,
        firstEvent: row.first_event === null ? null : mono(row.first_event),
        storedEvents: row.stored_events,
        storedReplayed: row.stored_replayed,
        firstLiveNs: row.first_live_ns === null ? null : BigInt(row.first_live_ns),
      })),
      gaps: gaps.rows.map((row) => ({
        gapId: row.gap_id,
        cause: row.cause,
        from: mono(row.from_at),
        to: row.to_at === null ? null : mono(row.to_at),
        eventInside: row.event_inside === null ? null : mono(row.event_inside),
      })),
      strayEvents: strays.rows,
    };
  }

  get #contextIds(): number[] {
    return this.#contexts.map(({ context_id }) => context_id);
  }

  /** All rows of a statement, in the order of their seqs. */
  async *#pages<R extends { readonly seq: number }>(text: string, size: number): AsyncGenerator<R> {
    const { node_id, started_us, complete_to } = this.#row;
    for (const { context_id } of this.#contexts) {
      let after = 0;
      for (;;) {
        const values = [node_id, context_id, after, complete_to, started_us, this.#since, size];
        const { rows } = await this.#sql.run<R>({ text }, values);
        yield* rows;
        const last = rows.at(-1);
        if (last === undefined || rows.length < size) break;
        after = last.seq;
      }
    }
  }
}

function relistsOf(lists: readonly number[], start: Mono): StoredRelist[] {
  return Array.from({ length: Math.floor(lists.length / LIST_FIELDS) }, (_, i) => {
    const [from = 0, to = 0, containersFrom = 0, containersTo = 0, flags = 0] = lists.slice(
      i * LIST_FIELDS,
      (i + 1) * LIST_FIELDS,
    );
    const call = (began: number, ended: number, partial: number) => ({
      start: mono(start + began),
      end: mono(start + ended),
      whole: (flags & partial) === 0,
    });
    return {
      sandboxes: call(from, to, 1),
      containers: call(containersFrom, containersTo, 2),
      failed: (flags & 4) !== 0,
    };
  });
}

/** Null where no record says whose the id is. */
function identityOf(row: IdentityRow, isSandbox: boolean): ContainerIdentity | null {
  const { id, sandbox, pod_uid, pod_namespace, pod_name, container_name, attempt } = row;
  if (id === null || (pod_uid === null && attempt === null)) return null;
  return {
    id,
    sandbox: sandbox ?? '',
    isSandbox,
    podUid: pod_uid ?? '',
    namespace: pod_namespace ?? '',
    pod: pod_name ?? '',
    container: container_name ?? '',
    attempt: attempt ?? 0,
  };
}

/** A list always says what it lists. */
function listedIdentity(row: IdentityRow, states: number): ContainerIdentity {
  const isSandbox = (states & 256) !== 0;
  const known = identityOf({ ...row, id: row.id ?? row.key, attempt: row.attempt ?? 0 }, isSandbox);
  if (known === null) throw new Error('an identity with an attempt is never null');
  return known;
}

const stateOf = (state: number): PlegState => PLEG_STATES[state] ?? 'unknown';
