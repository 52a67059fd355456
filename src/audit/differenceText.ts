/*
 * A difference in plain words, with its times and the SQL that shows it. Texts from agents and runtimes are printed without control characters: they
 * may be anything.
 */
import { printable } from '../platform/printable.ts';
import type { RecordOf } from '../protocol/record.ts';
import type { Mono } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import type { EpochRow } from './epochRecords.ts';
import type { GapRecord, StoredChange, StoredFinding } from './storedEpoch.ts';

type Made = RecordOf<'finding'>;

export interface DifferenceText {
  readonly sentence: string;
  readonly sql: string;
}

export function differenceText(difference: Difference, row: EpochRow): DifferenceText {
  const at = (micros: number | null) => (micros === null ? 'an unknown time' : timeAt(row, micros));
  const of = (view: string, condition: string): string =>
    `SELECT * FROM plegwatch.${view} WHERE node = ${quoted(row.node)} AND epoch = '${row.epoch}' AND ${condition}`;
  const window = (from: number | null, to: number | null) => `between ${at(from)} and ${at(to)}`;
  const storedIs = ({ from, kind, cause, to }: StoredFinding) =>
    `${printable(kind)} (${printable(cause)})${from === null ? '' : ` ${window(from, to)}`}`;
  const madeIs = ({ kind, cause, window: made }: Made) =>
    `${kind} (${cause})${made === null ? '' : ` ${window(made.from, made.to)}`}`;
  switch (difference.is) {
    case 'missing_finding': {
      const { made } = difference;
      return {
        sentence: `A finding is not there. Of ${subject(made.eventType, made.containerId)} the rules make: ${madeIs(made)}.`,
        sql: of('container_events', idIs(made.containerId)),
      };
    }
    case 'wrong_finding': {
      const { stored, instead } = difference;
      const rules = instead === null ? 'nothing' : madeIs(instead);
      return {
        sentence: `The rules do not make this finding. Of ${subject(stored.eventType, stored.id)} is stored: ${storedIs(stored)}; the rules make: ${rules}.`,
        sql: evidence(stored),
      };
    }
    case 'changed_kind':
    case 'changed_finding': {
      const { stored, made, is } = difference;
      const what = is === 'changed_kind' ? 'of another kind' : 'with another cause or window';
      return {
        sentence: `The rules make this finding ${what}. Of ${subject(stored.eventType, stored.id)} is stored: ${storedIs(stored)}; the rules make: ${madeIs(made)}.`,
        sql: evidence(stored),
      };
    }
    case 'changed_resolution': {
      const { stored, resolved } = difference;
      const is = (time: Mono | null) => (time === null ? 'not resolved' : `resolved at ${at(time)}`);
      return {
        sentence: `The event of this miss was received at another time. Of ${subject(stored.eventType, stored.id)} is stored: ${is(stored.resolved)}; the rules make: ${is(resolved)}.`,
        sql: evidence(stored),
      };
    }
    case 'unproven_kubelet_late': {
      const { stored, why } = difference;
      return {
        sentence: `The records do not bear out this finding. Of ${subject(stored.eventType, stored.id)} is stored: ${storedIs(stored)}. ${why}.`,
        sql: evidence(stored),
      };
    }
    case 'change_without_list':
      return changeText(difference.change, 'No list ended at the time at which it was found');
    case 'change_out_of_order':
      return changeText(difference.change, 'The lists before had shown another state');
    case 'changed_window':
      return changeText(difference.change, `The list before began at ${at(difference.from)}`);
    case 'session_start': {
      const { no, armed, firstEvent } = difference.session;
      return {
        sentence: `Session ${no} is stored with its first event at ${at(armed)}; the first event that is stored was received at ${at(firstEvent)}.`,
        sql: of('stream_sessions', `session_no = ${no}`),
      };
    }
    case 'session_events': {
      const { no, events, replayed, storedEvents, storedReplayed } = difference.session;
      return {
        sentence: `Session ${no} counted ${events} events, ${replayed} of them replayed; ${storedEvents} are stored, ${storedReplayed} of them replayed.`,
        sql: of('stream_sessions', `session_no = ${no}`),
      };
    }
    case 'stray_event':
      return {
        sentence: `The event ${printable(difference.type)} with seq ${difference.seq} was received at ${at(difference.at)}, when no session was open.`,
        sql: of('container_events', `seq = ${difference.seq}`),
      };
    case 'event_out_of_order': {
      const { event, after } = difference;
      return {
        sentence: `The event with seq ${event.seq} of ${printable(event.id)} was received at ${at(event.received)}, before one with a lower seq, at ${at(after)}.`,
        sql: of('container_events', `seq = ${event.seq}`),
      };
    }
    case 'added_record':
      return {
        sentence: `The row of ${difference.view} with seq ${difference.seq}, ${at(difference.at)}, was added: no record of the agent has this seq.`,
        sql: of(difference.view, `seq = ${difference.seq}`),
      };
    case 'gap_with_event':
      return {
        sentence: `${gapIs(difference.gap)} says that nothing was received, and an event was received in it at ${at(difference.at)}.`,
        sql: of('gaps', `gap_id = '${difference.gap.gapId}'`),
      };
    case 'gap_in_session':
      return {
        sentence: `${gapIs(difference.gap)} says that there was no stream, and session ${difference.session.no} was open.`,
        sql: of('gaps', `gap_id = '${difference.gap.gapId}'`),
      };
    case 'undeclared':
      return {
        sentence: `Neither a session nor a gap of the stream is stored ${window(difference.from, difference.to)}.`,
        sql: of('gaps', "scope = 'stream' ORDER BY from_at"),
      };
    case 'missing_minute':
      return {
        sentence: `The minutes do not follow on each other ${window(difference.from, difference.to)}.`,
        sql: of('relists', 'true ORDER BY sandboxes_from'),
      };
  }

  function changeText(
    { identity, from, to, seq, oldState, newState }: StoredChange,
    why: string,
  ): DifferenceText {
    const change = `The change ${oldState} -> ${newState} of ${printable(identity.id)} ${window(from, to)} does not fit.`;
    return { sentence: `${change} ${why}.`, sql: of('relist_changes', `seq = ${seq}`) };
  }

  function gapIs({ cause, from, to }: GapRecord) {
    return `The gap ${printable(cause)} ${window(from, to)}`;
  }
}

export const timeAt = ({ started_us }: EpochRow, micros: number): string => {
  const us = Math.round(started_us + micros);
  return `${new Date(Math.floor(us / 1000)).toISOString().slice(0, -1)}${String(((us % 1000) + 1000) % 1000).padStart(3, '0')}Z`;
};

const subject = (eventType: string | null, id: string | null): string =>
  id === null ? 'the stream' : `${eventType === null ? '' : `${printable(eventType)} of `}${printable(id)}`;

const evidence = ({ findingId }: StoredFinding): string =>
  `SELECT * FROM plegwatch.finding_evidence WHERE finding_id = '${findingId}' ORDER BY line, at`;

const idIs = (id: string | null): string =>
  id === null ? 'true' : `container_id = ${quoted(id)} ORDER BY seq`;

const quoted = (text: string): string => `'${printable(text).replaceAll("'", "''")}'`;

export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;
