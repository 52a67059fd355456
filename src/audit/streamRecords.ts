/*
 * Sessions, gaps and events must agree about the stream: a session begins with its first event, counts its events, and
 * whenever there is no session that has proven itself there is a gap.
 */
import { type Mono, mono } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import type { GapRecord, SessionRecord } from './storedEpoch.ts';

export interface StreamRecords {
  readonly start: Mono;
  readonly end: Mono;
  /** Whether every record of the epoch is stored. */
  readonly complete: boolean;
  readonly sessions: readonly SessionRecord[];
  readonly gaps: readonly GapRecord[];
  /** When the kubelet's own status was not watched. */
  readonly kubeletGaps: readonly GapRecord[];
  /** When there was no agent, which this epoch declares: after its own end, or before its start. */
  readonly agentGaps: readonly GapRecord[];
  /** Rows with seqs that the epoch never received. */
  readonly added: readonly { readonly view: string; readonly seq: number; readonly at: Mono }[];
  readonly strayEvents: readonly {
    readonly seq: number;
    readonly received: Mono;
    readonly type: string;
  }[];
}

const WITHOUT_STREAM: ReadonlySet<string> = new Set([
  ...['unproven', 'broken', 'unsafe', 'unsupported', 'disabled', 'off'],
]);
/** Within these no event can have been received. */
const EMPTY_GAPS: ReadonlySet<string> = new Set([...WITHOUT_STREAM, 'reader_stalled']);
/** Times are stored in microseconds, rounded once for the wall clock. */
const TOLERANCE = 1_000;
/** A reader that hangs is killed after a few seconds; the session ends then, and the gap began before. */
const MAX_HANGING = 15_000_000;

export function streamDifferences(records: StreamRecords): Difference[] {
  const { complete, start } = records;
  const sessions = records.sessions.filter(({ opened }) => opened >= start);
  return [
    ...(complete ? sessions.flatMap(sessionDifferences) : []),
    ...(complete
      ? records.strayEvents.map(
          (event): Difference => ({
            is: 'stray_event',
            seq: event.seq,
            type: event.type,
            at: event.received,
          }),
        )
      : []),
    ...records.gaps
      .filter(({ cause, eventInside }) => EMPTY_GAPS.has(cause) && eventInside !== null)
      .map((gap): Difference => ({ is: 'gap_with_event', gap, at: gap.eventInside ?? gap.from })),
    ...records.added.map((row): Difference => ({ is: 'added_record', ...row })),
    ...overlaps(records),
    ...(complete ? uncovered(records) : []),
  ];
}

function sessionDifferences(session: SessionRecord): Difference[] {
  const { armed, closed, events, firstEvent, replayed, storedEvents, storedReplayed } = session;
  const differences: Difference[] = [];
  if (armed !== firstEvent && (armed !== null || closed !== null)) {
    differences.push({ is: 'session_start', session });
  }
  // While it is open its record is a little behind.
  const sameNumber =
    closed === null ? storedEvents >= events : storedEvents === events && storedReplayed === replayed;
  if (!sameNumber) differences.push({ is: 'session_events', session });
  return differences;
}

/** Gaps that say there was no stream, while a session says there was. */
function overlaps({ sessions, gaps, start }: StreamRecords): Difference[] {
  const stalls = gaps.filter(({ cause }) => cause.endsWith('_stalled'));
  return gaps
    .filter(({ cause, from }) => WITHOUT_STREAM.has(cause) && from >= start)
    .flatMap((gap) =>
      sessions.flatMap((session): Difference[] => {
        if (session.armed === null) return [];
        const from = Math.max(gap.from, session.armed);
        const to = Math.min(gap.to ?? Number.POSITIVE_INFINITY, session.closed ?? Number.POSITIVE_INFINITY);
        const stalled = stalls.some((stall) => stall.from < to && (stall.to ?? to) > from);
        return to - from <= MAX_HANGING || stalled ? [] : [{ is: 'gap_in_session', gap, session }];
      }),
    );
}

/** Stretches in which no session had proven itself, and that no gap declares. */
function uncovered({ sessions, gaps, agentGaps, start, end }: StreamRecords): Difference[] {
  const covered = [...sessions, ...gaps, ...agentGaps]
    .map((each) =>
      'opened' in each ? { from: each.armed, to: each.closed } : { from: each.from, to: each.to },
    )
    .flatMap(({ from, to }) => (from === null ? [] : [{ from, to: to ?? end }]))
    .sort((a, b) => a.from - b.from);
  const differences: Difference[] = [];
  let until: number = start;
  for (const { from, to } of [...covered, { from: end, to: end }]) {
    // Later records are stored only in part.
    const next = mono(Math.min(from, end));
    if (next - until > TOLERANCE) differences.push({ is: 'undeclared', from: mono(until), to: next });
    until = Math.max(until, to);
  }
  return differences;
}
