/*
 * Missed events: whatever is dropped where that is observable is missed, and nothing else.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  clockStepped,
  compare,
  covered,
  listed,
  listedAlike,
  opened,
  readerStalled,
  received,
  S1_EXITED,
  S1_RUNNING,
  seconds,
  status,
  streamGap,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { EVENT_TYPES, type EventType } from '../../protocol/record.ts';

type TimedEvent = readonly [at: number, id: string, type: EventType];

const LONG: readonly TimedEvent[] = [
  [6, 's1', 'CREATED'],
  [6, 's1', 'STARTED'],
  [7, 'c1', 'CREATED'],
  [11, 'c1', 'STARTED'],
  [22, 'c1', 'STOPPED'],
  [26, 'c1', 'DELETED'],
  [31, 's1', 'STOPPED'],
  [36, 's1', 'DELETED'],
];

const LONG_LISTS: readonly TimelineStep[] = [
  listed(5, {}),
  listed(10, C1_CREATED),
  ...listedAlike(C1_RUNNING, 15, 20),
  listed(25, C1_EXITED),
  listed(30, S1_RUNNING),
  listed(35, S1_EXITED),
  // The sandbox is still there after its DELETED.
  listed(40, S1_EXITED),
  ...listedAlike({}, 45, 50),
];

const SHORT: readonly TimedEvent[] = [
  [6, 's1', 'CREATED'],
  [6.1, 's1', 'STARTED'],
  [6.2, 'c1', 'CREATED'],
  [6.3, 'c1', 'STARTED'],
  [6.4, 'c1', 'STOPPED'],
  [6.5, 'c1', 'DELETED'],
  [6.6, 's1', 'STOPPED'],
  [6.7, 's1', 'DELETED'],
];

const SHORT_LISTS: readonly TimelineStep[] = [listed(5, {}), listed(10, {}), listed(15, {})];

/** The exact times in an event: a container that was removed has no status any more. */
const timesAt: Readonly<Record<string, Parameters<typeof times>[0]>> = {
  'c1 CREATED': { created: 6.2 },
  'c1 STARTED': { created: 6.2, started: 6.3 },
  'c1 STOPPED': { created: 6.2, started: 6.3, finished: 6.4 },
};

function eventsOf(events: readonly TimedEvent[], short: boolean, dropped: readonly string[]): TimelineStep[] {
  return events
    .filter(([, id, type]) => !dropped.includes(`${id} ${type}`))
    .map(([at, id, type]) => {
      if (!short) return received(at, id, type);
      const own = id === 's1' ? { created: 5.9 } : timesAt[`${id} ${type}`];
      return received(at + 0.01, id, type, own === undefined ? {} : { times: times(own) });
    });
}

const listedPod = (...dropped: string[]) =>
  compare([...covered, ...LONG_LISTS, ...eventsOf(LONG, false, dropped)], { until: 100 });
const unlistedPod = (...dropped: string[]) =>
  compare([...covered, ...SHORT_LISTS, ...eventsOf(SHORT, true, dropped)], { until: 100 });

const ALL = ['s1', 'c1'].flatMap((id) => EVENT_TYPES.map((type) => `${id} ${type}`));
const PAIRS = ALL.flatMap((a, i) => ALL.slice(i + 1).map((b): [string, string] => [a, b]));

/** How many of two leave no trace: without both of these nothing proves that it ran, or that it stopped. */
const TRACELESS: Readonly<Record<string, number>> = {
  's1 STARTED, s1 STOPPED': 2,
  'c1 STARTED, c1 STOPPED': 2,
  's1 STOPPED, s1 DELETED': 1,
  'c1 STOPPED, c1 DELETED': 1,
};

describe('containers that several lists show', () => {
  test('a stop that a list shows before anything proves that the container ran is missed, although no later list shows it', () => {
    const { missed } = compare(
      [
        ...covered,
        ...listedAlike(C1_CREATED, 5, 10),
        // The STARTED was received before the list, and comes through the pipe after it.
        listed(15, C1_EXITED),
        { ...received(14, 'c1', 'STARTED'), at: 15.1 },
        received(14.5, 'c1', 'CREATED'),
        ...listedAlike(S1_RUNNING, 20, 25),
      ],
      { until: 100 },
    );
    expect(missed).toContain('c1 STOPPED');
  });

  test('with no event dropped, a listed pod has no miss and every transition is matched', () => {
    const { missed, unobservable, counters } = listedPod();
    expect(missed).toEqual([]);
    expect(unobservable).toEqual([]);
    expect(counters).toMatchObject({ expected: 8, matched: 8, missed: 0, unobservable: 0 });
  });

  test.each(ALL)('a dropped %s of a listed pod is the only miss', (event) => {
    const { missed, counters } = listedPod(event);
    expect(missed).toEqual([event]);
    expect(counters).toMatchObject({ expected: 8, matched: 7, missed: 1, unobservable: 0 });
  });

  test.each(PAIRS)('a dropped %s and %s of a listed pod are the only misses', (a, b) => {
    expect([...listedPod(a, b).missed].sort()).toEqual([a, b].sort());
  });

  test('with every event dropped, all transitions of a listed pod are missed', () => {
    expect([...listedPod(...ALL).missed].sort()).toEqual([...ALL].sort());
  });
});

describe('containers between two lists', () => {
  test('with no event dropped, an unlisted pod has no miss', () => {
    const { missed, unobservable, counters } = unlistedPod();
    expect(missed).toEqual([]);
    expect(unobservable).toEqual([]);
    expect(counters).toMatchObject({ expected: 8, matched: 8 });
  });

  test.each(ALL)('a dropped %s of an unlisted pod is the only miss', (event) => {
    const { missed, counters } = unlistedPod(event);
    expect(missed).toEqual([event]);
    expect(counters).toMatchObject({ expected: 8, matched: 7, missed: 1, unobservable: 0 });
  });

  test.each(PAIRS)('with %s and %s dropped, an unlisted pod has no other miss', (a, b) => {
    const { missed } = unlistedPod(a, b);
    expect([a, b]).toEqual(expect.arrayContaining([...missed]));
    expect(missed).toHaveLength(2 - (TRACELESS[`${a}, ${b}`] ?? 0));
  });

  test('with every event dropped, an unlisted pod leaves no trace and is not judged', () => {
    const { missed, counters } = unlistedPod(...ALL);
    expect(missed).toEqual([]);
    expect(counters.expected).toBe(0);
  });
});

test('the start of an unlisted pod is missed although the event that carries its creation came last', () => {
  const steps = [
    ...covered,
    ...SHORT_LISTS,
    received(6.41, 'c1', 'STOPPED'),
    received(6.51, 'c1', 'DELETED'),
    received(6.52, 'c1', 'CREATED', { times: times({ created: 6.2 }) }),
  ];
  const { missed, findings } = compare(steps, { until: 60 });
  expect(missed).toEqual(['c1 STARTED']);
  expect(findings).toContainEqual(
    expect.objectContaining({ kind: 'missed', window: { from: 5_700_000, to: 6_410_000 } }),
  );
});

test('the first lower bound that becomes known is the start of the window', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    received(6.2, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.1, finished: 6.2 }) }),
    listed(10, { c1: 'exited' }),
  ];
  const findings = compare(steps, { until: 60 }).findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([
    { eventType: 'CREATED', window: { from: seconds(5.5) } },
    { eventType: 'STARTED', window: { from: seconds(5.5) } },
  ]);
});

test('a stage that was due before any list was whole gets its lower bound from the first two whole lists', () => {
  const nothing = times({});
  const shown = { s1: 'running', c1: 'running' } as const;
  const steps = [
    opened(0.1),
    received(1, 's0', 'CREATED'),
    listed(2, {}, { partial: true }),
    received(5, 's1', 'CREATED'),
    received(5.01, 's1', 'STARTED'),
    received(5.1, 'c1', 'CREATED'),
    received(5.24, 'c3', 'CREATED', { others: [{ id: 'c1', state: 'running', times: nothing }] }),
    listed(5.05, C1_CREATED, { took: 0.1, partial: true }),
    ...listedAlike(shown, 7, 9, 12),
  ];
  const { findings } = compare(steps, { until: 60 });
  const missed = findings.filter(({ kind }) => kind === 'missed');
  expect(missed).toMatchObject([
    { containerId: 'c1', eventType: 'STARTED', window: { from: seconds(5.15), to: seconds(5.24) } },
  ]);
});

test('a placed exact time stays known, even when it is received again after a clock step', () => {
  const exact = times({ created: 7, started: 11, finished: 22 });
  const steps = [
    ...covered,
    ...LONG_LISTS,
    ...eventsOf(LONG, false, ['c1 STOPPED']),
    status(27, 'c1', exact),
    clockStepped(28, 3600),
    status(29, 'c1', exact),
  ];
  const findings = compare(steps, { until: 60 }).findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([{ eventType: 'STOPPED', occurred: seconds(22) }]);
});

test('the exit code and reason stay known when an older status arrives later', () => {
  const exact = { ...times({ created: 7, started: 11, finished: 22 }), exitCode: 137, reason: 'OOMKilled' };
  const steps = [
    ...covered,
    ...LONG_LISTS,
    ...eventsOf(LONG, false, ['c1 STOPPED']),
    status(27, 'c1', exact),
    status(29, 'c1', times({ created: 7, started: 11 })),
  ];
  const findings = compare(steps, { until: 60 }).findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([{ proof: { exactTimes: { exitCode: 137, reason: 'OOMKilled' } } }]);
});

test('no status is queried after a removal', () => {
  expect(listedPod('c1 DELETED').queries).toEqual([]);
});

test('covered time counts from the baseline on, without stream gaps', () => {
  expect(compare(covered, { until: 60 }).counters.covered).toBe(seconds(57));
  expect(compare([...covered, streamGap(30.1)], { until: 60 }).counters.covered).toBe(seconds(56.9));
  expect(compare([], { until: 60 }).counters.covered).toBe(0);
});

test('a watermark never goes back, and counts only for its own session', () => {
  const drained = (at: number, session: number, to: number): TimelineStep => ({
    at,
    act: ({ comparison }) => comparison.drained(session, seconds(to)),
  });
  const steps = [...covered, listed(5, S1_RUNNING)];
  const still = [...steps, drained(35.1, 1, 35.05), ...readerStalled(35.11, 90)];
  expect(compare([...still, drained(35.2, 1, 20)], { until: 60 }).missed).toHaveLength(2);
  const other = [...steps, ...readerStalled(20, 90), drained(30, 2, 59)];
  expect(compare(other, { until: 60 }).pending).toBe(2);
});

test('a miss carries its proof', () => {
  const [finding] = listedPod('c1 STOPPED').findings;
  expect(finding).toMatchObject({
    kind: 'missed',
    eventType: 'STOPPED',
    containerId: 'c1',
    cause: 'unannounced_by_list',
    // From the start of the last answer that showed it running to the end of the one that showed it exited.
    window: { from: 20_010_000, to: 25_020_000 },
    proof: { v: 1, evidence: 'listed exited', lowerBoundKnown: true, session: 1, armedAt: 2_000_000 },
  });
});

test('a miss that only a later event proves has the cause sequence', () => {
  const findings = unlistedPod('c1 STARTED').findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([{ eventType: 'STARTED', cause: 'sequence' }]);
});

test('a DELETED that came before anything showed a run proves the end once a list has shown the run, and another the removal', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    ...announced(6, 's1', 'CREATED', 'STARTED'),
    received(7, 'c1', 'CREATED'),
    received(11, 'c1', 'DELETED'),
    // The container ended while this list was made.
    listed(10, C1_RUNNING, { took: 1 }),
    listed(15, S1_RUNNING),
    received(16, 'c1', 'STARTED', { built: 8 }),
  ];
  expect(compare(steps, { until: 90 }).missed).toEqual(['c1 STOPPED']);
});

test('nothing is missed before missedAfter has passed', () => {
  const steps = [...covered, ...LONG_LISTS, ...eventsOf(LONG, false, ['c1 STARTED'])];
  const before = compare(steps, { until: 45 });
  expect(before.missed).toEqual([]);
  expect(before.pending).toBe(1);
  expect(compare(steps, { until: 46 }).missed).toEqual(['c1 STARTED']);
});

test('a missed event that comes later resolves its finding', () => {
  const late = received(60, 'c1', 'STARTED', { built: 11 });
  const steps = [...covered, ...LONG_LISTS, ...eventsOf(LONG, false, ['c1 STARTED']), late];
  expect(compare(steps, { until: 70 })).toMatchObject({
    everMissed: ['c1 STARTED'],
    missed: [],
    counters: { expected: 8, matched: 8, missed: 0 },
  });
});

test('the exact times of an overdue event are queried when overdueAfter has passed', () => {
  const steps = [...covered, ...LONG_LISTS, ...eventsOf(LONG, false, ['c1 STARTED'])];
  expect(compare(steps, { until: 17 }).queries).toEqual([]);
  expect(compare(steps, { until: 18 }).queries).toEqual(['c1']);
});

test('the status of an overdue event is queried once, and never for a removal', () => {
  expect(listedPod('c1 STARTED', 's1 STOPPED', 's1 DELETED').queries).toEqual(['c1', 's1']);
});
