/*
 * A starved stream, in which no event of any id arrives, and a lossy one, in which some do.
 */
import { describe, expect, test } from 'vitest';
import {
  closed,
  compare,
  eventLost,
  listed,
  listedAlike,
  opened,
  received,
  S1_EXITED,
  S1_RUNNING,
  seconds,
  streamGap,
  type TimelineOutcome,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import type { RecordOf } from '../../protocol/record.ts';

/** A stream that is covered from the list at 3 s on, and whose last event came at 2 s. */
const covered: readonly TimelineStep[] = [
  listed(0, {}),
  opened(1),
  received(2, 's0', 'STARTED', { built: 1.9 }),
  ...listedAlike({}, 3, 5),
];

const POD = { s1: 'running', c1: 'running' } as const;
const PODS = { ...POD, s2: 'running' } as const;
/** Six changes of three ids, found by two relists. Without an event they are missed at 40 s and 45 s. */
const changes: readonly TimelineStep[] = [listed(10, POD), listed(15, PODS), listed(20, PODS)];
const starving = [...covered, ...changes];

const announced = (at: number, built: number): TimelineStep[] =>
  ['s1', 'c1', 's2'].flatMap((id) => [
    received(at, id, 'CREATED', { built }),
    received(at, id, 'STARTED', { built }),
  ]);

const misses = ({ findings }: TimelineOutcome) => findings.filter(({ kind }) => kind === 'missed');
const hints = (findings: readonly RecordOf<'finding'>[]) => findings.map(({ proof }) => proof['hint']);
const starvedFindings = ({ findings }: TimelineOutcome) =>
  findings.filter(({ kind, cause }) => kind === 'silent_stream' && cause === 'starved');
const resolvedAt = ({ records }: TimelineOutcome, finding: RecordOf<'finding'> | undefined) =>
  records.flatMap((record) =>
    record.type === 'finding_resolved' && record.findingId === finding?.findingId ? [record.t] : [],
  );

describe('a starved stream', () => {
  test('a stream is starved, once, when a miss shows five changes in two relists and no event since', () => {
    const outcome = compare(starving, { until: 100 });
    expect(outcome.stream).toBe('Starved');
    expect(starvedFindings(outcome)).toMatchObject([
      {
        containerId: null,
        eventType: null,
        window: { from: seconds(2), to: seconds(40.25) },
        proof: { changes: 6, relists: 2, lastEvent: seconds(2) },
      },
    ]);
  });

  test('a stream that goes on starving is reported once, however many changes follow', () => {
    const more = { ...PODS, s3: 'running', s4: 'running', s5: 'running' } as const;
    const outcome = compare([...starving, listed(25, more), listed(30, more)], { until: 100 });
    expect(outcome.everMissed).toHaveLength(12);
    expect(hints(misses(outcome))).toEqual(Array(12).fill('stream_starved'));
    expect(starvedFindings(outcome)).toHaveLength(1);
  });

  test('a miss while a stream is starved is reported, with the hint that the stream was starved', () => {
    const outcome = compare(starving, { until: 100 });
    expect(outcome.everMissed).toHaveLength(6);
    expect(hints(misses(outcome))).toEqual(Array(6).fill('stream_starved'));
  });

  test('every miss has the time of the last event of any id in its proof', () => {
    const outcome = compare([...covered, listed(10, S1_RUNNING)], { until: 60 });
    expect(misses(outcome)).toMatchObject([
      { proof: { lastEvent: seconds(2) } },
      { proof: { lastEvent: seconds(2) } },
    ]);
  });

  test('a freeze that ends before anything is missed starves no stream and accuses nobody', () => {
    const outcome = compare([...starving, ...announced(39, 9)], { until: 100 });
    expect(outcome.stream).toBe('Active');
    expect(starvedFindings(outcome)).toEqual([]);
    expect(outcome.everMissed).toEqual([]);
  });

  test('a stream that misses events of some ids while those of others arrive is lossy, not starved', () => {
    const other = [received(18, 's9', 'CREATED'), received(18, 's9', 'STARTED')];
    const outcome = compare([...starving, ...other], { until: 100 });
    expect(outcome.everMissed).toHaveLength(6);
    expect(hints(misses(outcome))).toEqual(Array(6).fill(undefined));
    expect(outcome.stream).toBe('Active');
    expect(starvedFindings(outcome)).toEqual([]);
  });

  test('four changes without an event starve no stream', () => {
    const outcome = compare(
      [...covered, listed(10, S1_RUNNING), listed(15, { s1: 'running', s2: 'running' })],
      {
        until: 100,
      },
    );
    expect(outcome.everMissed).toHaveLength(4);
    expect(outcome.stream).toBe('Active');
  });

  test('changes that one relist found starve no stream before another relist finds more', () => {
    const once = compare([...covered, listed(10, PODS)], { until: 100 });
    expect(once.everMissed).toHaveLength(6);
    expect(once.stream).toBe('Active');
    const more = compare([...covered, listed(10, PODS), listed(50, { ...PODS, s3: 'running' })], {
      until: 100,
    });
    expect(more.stream).toBe('Starved');
    expect(hints(misses(more))).toEqual([...Array(6).fill(undefined), 'stream_starved', 'stream_starved']);
  });

  test('one id starves no stream, however often lists contradict themselves about it', () => {
    const flapping = [40, 80, 120, 160, 200].flatMap((at) => [
      listed(at, S1_EXITED),
      listed(at + 1, {}),
      listed(at + 38, S1_EXITED),
    ]);
    const outcome = compare([...covered, listed(10, S1_RUNNING), ...flapping], { until: 280 });
    expect(outcome.everMissed.length).toBeGreaterThan(5);
    expect(outcome.stream).toBe('Active');
  });

  test('a change counts only once its event is overdue', () => {
    const pair = { s1: 'running', s2: 'running' } as const;
    const outcome = compare([...covered, listed(10, pair), listed(39, { ...pair, s3: 'running' })], {
      until: 60,
    });
    expect(hints(misses(outcome))).toEqual(Array(4).fill(undefined));
    expect(outcome.stream).toBe('Active');
  });

  test('an unobservable event does not count', () => {
    const old = { c7: 'running', c8: 'running', c9: 'running' } as const;
    const ended = { c7: 'exited', c8: 'exited', c9: 'exited' } as const;
    const steps = [
      listed(0, old),
      opened(1),
      received(2, 's0', 'STARTED', { built: 1.9 }),
      ...listedAlike(old, 3, 5),
      // They may have ended before the session.
      listed(10, { ...ended, s1: 'running' }),
      listed(15, { ...ended, s1: 'running', s2: 'running' }),
    ];
    const outcome = compare(steps, { until: 100 });
    expect(outcome.unobservable).toHaveLength(3);
    expect(outcome.everMissed).toHaveLength(4);
    expect(outcome.stream).toBe('Active');
  });

  test('a change that may be older than the last event does not count', () => {
    const outcome = compare([...starving, received(7, 's0', 'STOPPED')], { until: 100 });
    // The windows of the first relist begin at 5 s, those of the second at 10 s.
    expect(outcome.everMissed).toHaveLength(6);
    expect(hints(misses(outcome))).toEqual(Array(6).fill(undefined));
    expect(outcome.stream).toBe('Active');
  });

  test('a miss that may be older than the last event has no hint, although the stream is starved', () => {
    // Its sandbox's DELETED may be announced ten seconds before the list that lacks it.
    const gone = { s8: 'running' } as const;
    const steps = [
      listed(0, gone),
      opened(1),
      received(2, 's0', 'STARTED', { built: 1.9 }),
      ...listedAlike(gone, 3, 5),
      received(7, 's0', 'STOPPED'),
      listed(10, gone),
      listed(15, { ...POD, ...gone }),
      listed(20, PODS),
    ];
    const outcome = compare(steps, { until: 100 });
    expect(outcome.everMissed.at(-1)).toBe('s8 DELETED');
    expect(hints(misses(outcome)).at(-1)).toBeUndefined();
    expect(hints(misses(outcome)).slice(0, -1)).toEqual(Array(6).fill('stream_starved'));
  });

  test('a stall of the agent does not hide that a stream is starved', () => {
    expect(compare([...starving, streamGap(50), listed(55, PODS)], { until: 100 })).toMatchObject({
      stream: 'Starved',
    });
  });
});

describe('the end of a starvation', () => {
  test('a starved stream is active again at the first event, and the finding is resolved at that moment', () => {
    const outcome = compare([...starving, ...announced(60, 9)], { until: 100 });
    expect(outcome.stream).toBe('Active');
    expect(resolvedAt(outcome, starvedFindings(outcome)[0])).toEqual([seconds(60)]);
  });

  test('events that were held back resolve what was missed meanwhile', () => {
    const outcome = compare([...starving, ...announced(60, 9)], { until: 100 });
    expect(outcome.everMissed).toHaveLength(6);
    expect(outcome.missed).toEqual([]);
  });

  test('the late events of a starvation carry the hint, and later ones do not', () => {
    const slow = received(90, 'c1', 'STOPPED', {
      built: 80,
      times: times({ created: 8, started: 8, finished: 80 }),
    });
    const outcome = compare([...starving, ...announced(60, 9), slow], { until: 100 });
    const late = outcome.findings.filter(({ kind }) => kind === 'late');
    expect(
      late.map(({ proof, containerId, eventType }) => `${containerId} ${eventType} ${proof['hint']}`),
    ).toEqual([
      ...['s1', 'c1', 's2'].flatMap((id) => [`${id} CREATED stream_starved`, `${id} STARTED stream_starved`]),
      'c1 STOPPED undefined',
    ]);
  });

  test('an event that cannot be read ends a starvation too', () => {
    const outcome = compare([...starving, eventLost(60)], { until: 100 });
    expect(outcome.stream).toBe('Active');
    expect(resolvedAt(outcome, starvedFindings(outcome)[0])).toEqual([seconds(60)]);
  });

  test('a starvation begins at the last event, even if that could not be read', () => {
    const steps = [...covered, eventLost(7), listed(10, {}), listed(15, POD), listed(20, PODS)];
    const outcome = compare(steps, { until: 100 });
    expect(outcome.stream).toBe('Starved');
    expect(starvedFindings(outcome)).toMatchObject([{ window: { from: seconds(7) } }]);
  });

  test('a change before an event that could not be read does not prove that nothing arrives', () => {
    const outcome = compare([...covered, ...changes.slice(0, 1), eventLost(12), ...changes.slice(1)], {
      until: 100,
    });
    expect(outcome.stream).toBe('Active');
  });

  test('the end of the session ends a starvation', () => {
    const outcome = compare([...starving, closed(60.1)], { until: 100 });
    expect(outcome.stream).toBeNull();
    expect(resolvedAt(outcome, starvedFindings(outcome)[0])).toEqual([seconds(60.1)]);
  });

  test('a stream that was starved and has recovered can be starved again', () => {
    const again = [
      listed(65, PODS),
      listed(70, { ...PODS, s3: 'running', s4: 'running' }),
      listed(75, { ...PODS, s3: 'running', s4: 'running', s5: 'running' }),
    ];
    const outcome = compare([...starving, ...announced(60, 9), ...again], { until: 140 });
    expect(outcome.stream).toBe('Starved');
    expect(starvedFindings(outcome).map(({ window }) => window?.from)).toEqual([seconds(2), seconds(60)]);
  });

  test('a miss before a stream recovered does not count in the next starvation', () => {
    const again = [
      listed(65, PODS),
      listed(70, { ...PODS, s3: 'running' }),
      listed(75, { ...PODS, s3: 'running', s4: 'running' }),
    ];
    expect(compare([...starving, ...announced(60, 9), ...again], { until: 140 })).toMatchObject({
      stream: 'Active',
    });
  });

  test('a new session is not starved because the one before was', () => {
    const next = [opened(70, 2), received(71, 's0', 'STARTED', { built: 71 }), ...listedAlike(PODS, 75, 80)];
    const outcome = compare([...starving, closed(60), ...next], { until: 140 });
    expect(outcome.stream).toBe('Active');
    expect(starvedFindings(outcome)).toHaveLength(1);
  });
});
