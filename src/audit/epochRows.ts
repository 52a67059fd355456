/*
 * The rows that Postgres returns of an epoch, and the records that they stand for.
 */

import { type ContainerIdentity, LIST_FIELDS, PLEG_STATES, type PlegState } from '../protocol/record.ts';
import { type Mono, mono } from '../protocol/units.ts';
import { unpackLists } from '../store/listTimes.ts';
import type { RowOf } from '../store/statement.ts';
import type {
  readChanges,
  readEvents,
  readFindings,
  readGaps,
  readIdentities,
  readInitial,
  readMinutes,
  readSessions,
} from './statements.ts';
import type {
  GapRecord,
  StoredChange,
  StoredEpoch,
  StoredEvent,
  StoredFinding,
  StoredMinute,
  StoredRelist,
} from './storedEpoch.ts';
import type { StreamRecords } from './streamRecords.ts';

/** A row about an id: the identity is stored once for each day. */
export type KeyedRow = Pick<IdentityRow, 'key' | 'day'>;
export type IdentityRow = RowOf<typeof readIdentities>;
type ListedRow = RowOf<typeof readInitial>;

export const eventOf = (row: RowOf<typeof readEvents>, whose: IdentityRow | undefined): StoredEvent => ({
  seq: row.seq,
  received: row.received,
  id: whose?.id ?? row.key,
  identity: identityOf(whose, (row.flags & 1024) !== 0),
  type: row.flags & 255,
  createdNs: BigInt(row.created_ns),
  replayed: (row.flags & 256) !== 0,
  hasSandboxStatus: (row.flags & 512) !== 0,
});

export const changeOf = (row: RowOf<typeof readChanges>, whose: IdentityRow | undefined): StoredChange => ({
  seq: row.seq,
  from: row.window_from,
  to: row.window_to,
  identity: listedIdentity(row, whose),
  oldState: stateOf(row.states & 15),
  newState: stateOf((row.states >> 4) & 15),
});

/** The state in a list before the first change that is read. */
export const initialOf = (
  row: ListedRow,
  whose: IdentityRow | undefined,
): StoredEpoch['initial'][number] => ({
  identity: listedIdentity(row, whose),
  state: stateOf(row.states & 15),
});

export function minuteOf({ seq, ended, span, wall, lists }: RowOf<typeof readMinutes>): StoredMinute {
  const from = mono(ended - span);
  return {
    seq,
    from,
    to: ended,
    clock: wall - ended,
    relists: relistsOf(unpackLists(lists), from),
  };
}

/** `announcedToOther`: when another epoch received the event. */
export const findingOf = (row: RowOf<typeof readFindings>, announcedToOther: Mono | null): StoredFinding => ({
  resolved: row.resolved,
  announcedToOther,
  seq: row.seq,
  at: row.at,
  findingId: row.finding_id,
  kind: row.kind,
  eventType: row.event_type,
  cause: row.cause,
  id: row.container_id,
  from: row.window_from,
  to: row.window_to,
  proof: row.proof ?? {},
});

export const sessionOf = (row: RowOf<typeof readSessions>): StreamRecords['sessions'][number] => ({
  no: row.session_no,
  opened: row.opened,
  armed: row.armed,
  closed: row.closed,
  events: row.events,
  replayed: row.replayed,
  firstEvent: row.first_event,
  storedEvents: row.stored_events,
  storedReplayed: row.stored_replayed,
  firstLiveNs: row.first_live_ns === null ? null : BigInt(row.first_live_ns),
});

export const gapOf = (row: RowOf<typeof readGaps>): GapRecord => ({
  gapId: row.gap_id,
  cause: row.cause,
  from: row.from_at,
  to: row.to_at,
  eventInside: row.event_inside,
});

function relistsOf(lists: readonly number[], start: Mono): StoredRelist[] {
  const { length } = LIST_FIELDS;
  return Array.from({ length: Math.floor(lists.length / length) }, (_, i) => {
    const numbers = lists.slice(i * length, (i + 1) * length);
    const [from = 0, to = 0, containersFrom = 0, containersTo = 0, flags = 0, eventsTo = 0] = numbers;
    const call = (began: number, ended: number, partial: number) => ({
      start: mono(start + began),
      end: mono(start + ended),
      whole: (flags & partial) === 0,
    });
    return {
      sandboxes: call(from, to, 1),
      containers: call(containersFrom, containersTo, 2),
      failed: (flags & 4) !== 0,
      eventsTo: mono(start + eventsTo),
    };
  });
}

/** Null where no record says whose the id is. */
function identityOf(whose: IdentityRow | undefined, isSandbox: boolean): ContainerIdentity | null {
  if (whose === undefined || (whose.pod_uid === null && whose.attempt === null)) return null;
  return listed(whose.id, whose, isSandbox);
}

/** A list always says what it lists. */
const listedIdentity = ({ key, states }: ListedRow, whose: IdentityRow | undefined): ContainerIdentity =>
  listed(whose?.id ?? key, whose, (states & 256) !== 0);

const listed = (id: string, whose: IdentityRow | undefined, isSandbox: boolean): ContainerIdentity => ({
  id,
  sandbox: whose?.sandbox ?? '',
  isSandbox,
  podUid: whose?.pod_uid ?? '',
  namespace: whose?.pod_namespace ?? '',
  pod: whose?.pod_name ?? '',
  container: whose?.container_name ?? '',
  attempt: whose?.attempt ?? 0,
});

const stateOf = (state: number): PlegState => PLEG_STATES[state] ?? 'unknown';
