/*
 * The true accusations: whatever is dropped where it could be seen is missed, and nothing else.
 */
import { describe, expect, test } from 'vitest';
import {
  CRIO,
  clockStepped,
  compare,
  listed,
  opened,
  readerStalled,
  received,
  sandboxStatus,
  seconds,
  status,
  streamGap,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { EVENT_TYPES, type EventType } from '../../protocol/record.ts';

/** A stream that is covered from the list at 3 s on. */
const covered: readonly TimelineStep[] = [
  listed(0, {}),
  opened(1),
  received(2, 's0', 'STARTED', { built: 1.9 }),
  listed(3, {}),
];

type Happening = readonly [at: number, id: string, type: EventType];

const LONG: readonly Happening[] = [
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
  listed(10, { s1: 'running', c1: 'created' }),
  listed(15, { s1: 'running', c1: 'running' }),
  listed(20, { s1: 'running', c1: 'running' }),
  listed(25, { s1: 'running', c1: 'exited' }),
  listed(30, { s1: 'running' }),
  listed(35, { s1: 'exited' }),
  // The sandbox is still there after its DELETED.
  listed(40, { s1: 'exited' }),
  listed(45, {}),
  listed(50, {}),
];

const SHORT: readonly Happening[] = [
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

/** What an event says of its own id: a container that was removed has no status any more. */
const timesAt: Readonly<Record<string, Parameters<typeof times>[0]>> = {
  'c1 CREATED': { created: 6.2 },
  'c1 STARTED': { created: 6.2, started: 6.3 },
  'c1 STOPPED': { created: 6.2, started: 6.3, finished: 6.4 },
};

function told(happenings: readonly Happening[], short: boolean, dropped: readonly string[]): TimelineStep[] {
  return happenings
    .filter(([, id, type]) => !dropped.includes(`${id} ${type}`))
    .map(([at, id, type]) => {
      if (!short) return received(at, id, type);
      const own = id === 's1' ? { created: 5.9 } : timesAt[`${id} ${type}`];
      return received(at + 0.01, id, type, own === undefined ? {} : { times: times(own) });
    });
}

const longLife = (...dropped: string[]) =>
  compare([...covered, ...LONG_LISTS, ...told(LONG, false, dropped)], { until: 100 });
const shortLife = (...dropped: string[]) =>
  compare([...covered, ...SHORT_LISTS, ...told(SHORT, true, dropped)], { until: 100 });

const ALL = ['s1', 'c1'].flatMap((id) => EVENT_TYPES.map((type) => `${id} ${type}`));
const PAIRS = ALL.flatMap((a, i) => ALL.slice(i + 1).map((b): [string, string] => [a, b]));

/** How many of two leave no trace: without both of these nothing says that it ran, without those that it stopped. */
const TRACELESS: Readonly<Record<string, number>> = {
  's1 STARTED, s1 STOPPED': 2,
  'c1 STARTED, c1 STOPPED': 2,
  's1 STOPPED, s1 DELETED': 1,
  'c1 STOPPED, c1 DELETED': 1,
};

describe('a life that several lists show', () => {
  test('is without a miss when nothing is dropped, and every transition is matched', () => {
    const { missed, unobservable, counters } = longLife();
    expect(missed).toEqual([]);
    expect(unobservable).toEqual([]);
    expect(counters).toMatchObject({ expected: 8, matched: 8, missed: 0, unobservable: 0 });
  });

  test.each(ALL)('whose %s is dropped misses exactly that', (event) => {
    const { missed, counters } = longLife(event);
    expect(missed).toEqual([event]);
    expect(counters).toMatchObject({ expected: 8, matched: 7, missed: 1, unobservable: 0 });
  });

  test.each(PAIRS)('whose %s and %s are dropped misses exactly those', (a, b) => {
    expect([...longLife(a, b).missed].sort()).toEqual([a, b].sort());
  });

  test('of which no event at all comes misses all of them', () => {
    expect([...longLife(...ALL).missed].sort()).toEqual([...ALL].sort());
  });
});

describe('a life between two lists', () => {
  test('is without a miss when nothing is dropped', () => {
    const { missed, unobservable, counters } = shortLife();
    expect(missed).toEqual([]);
    expect(unobservable).toEqual([]);
    expect(counters).toMatchObject({ expected: 8, matched: 8 });
  });

  test.each(ALL)('whose %s is dropped misses exactly that', (event) => {
    const { missed, counters } = shortLife(event);
    expect(missed).toEqual([event]);
    expect(counters).toMatchObject({ expected: 8, matched: 7, missed: 1, unobservable: 0 });
  });

  test.each(PAIRS)('whose %s and %s are dropped is accused of nothing else', (a, b) => {
    const { missed } = shortLife(a, b);
    expect([a, b]).toEqual(expect.arrayContaining([...missed]));
    expect(missed).toHaveLength(2 - (TRACELESS[`${a}, ${b}`] ?? 0));
  });

  test('of which no event at all comes leaves no trace, and is not judged', () => {
    const { missed, counters } = shortLife(...ALL);
    expect(missed).toEqual([]);
    expect(counters.expected).toBe(0);
  });
});

test('the start of a life that no list saw is missed, although what says when it was created came last', () => {
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

test('the first lower bound that is known is the one of the window', () => {
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

test('what was due before any list was whole gets its lower bound from the first two that are', () => {
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
    listed(5.05, { s1: 'running', c1: 'created' }, { took: 0.1, partial: true }),
    listed(7, shown),
    listed(9, shown),
    listed(12, shown),
  ];
  const { findings } = compare(steps, { until: 60 });
  const missed = findings.filter(({ kind }) => kind === 'missed');
  expect(missed).toMatchObject([
    { containerId: 'c1', eventType: 'STARTED', window: { from: seconds(5.15), to: seconds(5.24) } },
  ]);
});

test('an exact time that was placed stays known, were it told once more after a step', () => {
  const exact = times({ created: 7, started: 11, finished: 22 });
  const steps = [
    ...covered,
    ...LONG_LISTS,
    ...told(LONG, false, ['c1 STOPPED']),
    status(27, 'c1', exact),
    clockStepped(28, 3600),
    status(29, 'c1', exact),
  ];
  const findings = compare(steps, { until: 60 }).findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([{ eventType: 'STOPPED', occurred: seconds(22) }]);
});

test('how it ended stays known, were an older status told after that', () => {
  const exact = { ...times({ created: 7, started: 11, finished: 22 }), exitCode: 137, reason: 'OOMKilled' };
  const steps = [
    ...covered,
    ...LONG_LISTS,
    ...told(LONG, false, ['c1 STOPPED']),
    status(27, 'c1', exact),
    status(29, 'c1', times({ created: 7, started: 11 })),
  ];
  const findings = compare(steps, { until: 60 }).findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([{ proof: { exactTimes: { exitCode: 137, reason: 'OOMKilled' } } }]);
});

test('nobody is asked when something was removed', () => {
  expect(longLife('c1 DELETED').queries).toEqual([]);
});

test('what no list showed yet is missed too, when its status says that it was there', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    received(6.2, 'c1', 'STOPPED'),
    status(9, 'c1', times({ created: 6, started: 6.1, finished: 6.2 })),
    listed(30, { c1: 'exited' }),
  ];
  expect(compare(steps, { until: 60 }).missed).toEqual(['c1 CREATED', 'c1 STARTED']);
});

test('an end that only its status tells is due once a list shows it', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    received(6, 'c1', 'CREATED'),
    received(6.1, 'c1', 'STARTED'),
    listed(10, { c1: 'running' }),
    status(12, 'c1', times({ created: 6, started: 6.1, finished: 11 })),
    listed(15, { c1: 'exited' }),
  ];
  expect(compare(steps, { until: 14 }).pending).toBe(0);
  expect(compare(steps, { until: 60 }).missed).toEqual(['c1 STOPPED']);
});

test('what was watched is counted from the baseline on, without its holes', () => {
  expect(compare(covered, { until: 60 }).counters.covered).toBe(seconds(57));
  expect(compare([...covered, streamGap(30.1)], { until: 60 }).counters.covered).toBe(seconds(56.9));
  expect(compare([], { until: 60 }).counters.covered).toBe(0);
});

test('what the reader has drained stays drained, and by the session that it was drained in', () => {
  const drained = (at: number, session: number, to: number): TimelineStep => ({
    at,
    act: ({ comparison }) => comparison.drained(session, seconds(to)),
  });
  const steps = [...covered, listed(5, { s1: 'running' })];
  const still = [...steps, drained(35.1, 1, 35.05), ...readerStalled(35.11, 90)];
  expect(compare([...still, drained(35.2, 1, 20)], { until: 60 }).missed).toHaveLength(2);
  const other = [...steps, ...readerStalled(20, 90), drained(30, 2, 59)];
  expect(compare(other, { until: 60 }).pending).toBe(2);
});

test('a miss says what it rests on', () => {
  const [finding] = longLife('c1 STOPPED').findings;
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

test('what only a later event proves has the cause sequence', () => {
  const findings = shortLife('c1 STARTED').findings.filter(({ kind }) => kind === 'missed');
  expect(findings).toMatchObject([{ eventType: 'STARTED', cause: 'sequence' }]);
});

test('nothing is missed before the time to confirm is over', () => {
  const steps = [...covered, ...LONG_LISTS, ...told(LONG, false, ['c1 STARTED'])];
  const before = compare(steps, { until: 45 });
  expect(before.missed).toEqual([]);
  expect(before.pending).toBe(1);
  expect(compare(steps, { until: 46 }).missed).toEqual(['c1 STARTED']);
});

test('a missed event that comes after all resolves its finding', () => {
  const late = received(60, 'c1', 'STARTED', { built: 11 });
  const steps = [...covered, ...LONG_LISTS, ...told(LONG, false, ['c1 STARTED']), late];
  const { everMissed, missed, counters } = compare(steps, { until: 70 });
  expect(everMissed).toEqual(['c1 STARTED']);
  expect(missed).toEqual([]);
  expect(counters).toMatchObject({ expected: 8, matched: 8, missed: 0 });
});

test('the exact times of what is overdue are asked for when the grace is over', () => {
  const steps = [...covered, ...LONG_LISTS, ...told(LONG, false, ['c1 STARTED'])];
  expect(compare(steps, { until: 17 }).queries).toEqual([]);
  expect(compare(steps, { until: 18 }).queries).toEqual(['c1']);
});

test('the exact times of what is overdue are asked for once, of containers only', () => {
  expect(longLife('c1 STARTED', 's1 STOPPED', 's1 DELETED').queries).toEqual(['c1', 's1']);
});

test('a start and an end between two lists are both missed when the status says that it ran', () => {
  const { missed, findings } = compare(
    [
      ...covered,
      listed(5, {}),
      received(6, 's1', 'CREATED'),
      received(6, 's1', 'STARTED'),
      received(6.5, 'c1', 'CREATED', { times: times({ created: 6.5 }) }),
      listed(10, { s1: 'running', c1: 'exited' }),
      status(10.5, 'c1', times({ created: 6.5, started: 7, finished: 8 })),
      listed(15, { s1: 'running', c1: 'exited' }),
    ],
    { until: 60 },
  );
  expect(missed).toEqual(['c1 STARTED', 'c1 STOPPED']);
  // Since the list that lacked it, not since the one that showed it exited.
  const misses = findings.filter(({ kind }) => kind === 'missed');
  expect(misses.map(({ window }) => window?.from)).toEqual([seconds(5.01), seconds(5.01)]);
});

test('the removal of a container that a pod outlives is judged where removed sandboxes go silently too', () => {
  const { missed } = compare(
    [
      ...covered,
      listed(5, { s1: 'running', c1: 'running' }),
      received(6, 'c1', 'STOPPED'),
      listed(10, { s1: 'running' }),
      listed(15, { s1: 'running' }),
    ],
    { until: 60, profile: CRIO },
  );
  expect(missed).toContain('c1 DELETED');
});

describe('the status of a sandbox', () => {
  const listedTwice = [
    ...covered,
    listed(5, {}),
    listed(10, { s1: 'running' }),
    received(10.5, 's1', 'CREATED'),
    received(10.5, 's1', 'STARTED'),
  ];

  test('has no time of its end: the lists around it stay the proof of a missed STOPPED, which says so', () => {
    const steps = [
      ...listedTwice,
      listed(15, { s1: 'exited' }),
      sandboxStatus(17.5, 's1', 'exited', 6),
      listed(20, { s1: 'exited' }),
    ];
    const { findings, queries } = compare(steps, { until: 60 });
    expect(queries).toEqual(['s1']);
    expect(findings).toMatchObject([
      {
        kind: 'missed',
        eventType: 'STOPPED',
        occurred: null,
        window: { from: seconds(10), to: seconds(15.01) },
        proof: { statusAnswer: 'created_at_and_state_only', exactTimes: { finishedNs: '0' } },
      },
    ]);
    expect(findings[0]?.proof).not.toMatchObject({ exactTimes: { createdNs: '0' } });
  });

  test('proves that it ended before a list does, and nothing is due twice', () => {
    const steps = [
      ...listedTwice.slice(0, -1),
      sandboxStatus(13, 's1', 'exited', 6),
      listed(15, { s1: 'exited' }),
    ];
    const { findings, counters } = compare(steps, { until: 60 });
    expect(findings).toMatchObject([
      { kind: 'missed', eventType: 'STARTED' },
      {
        kind: 'missed',
        eventType: 'STOPPED',
        window: { from: seconds(10), to: seconds(13) },
        proof: { evidence: 'exited in its status' },
      },
    ]);
    expect(counters).toMatchObject({ missed: 2 });
  });

  test('that was never seen ready proves neither a start nor an end', () => {
    const steps = [
      ...covered,
      listed(5, {}),
      listed(10, { s1: 'exited' }),
      sandboxStatus(13, 's1', 'exited', 6),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({ everMissed: [], pending: 0 });
  });

  test('that is ready accuses nobody of what has not happened', () => {
    const steps = [...listedTwice, sandboxStatus(13, 's1', 'running', 6), listed(15, { s1: 'running' })];
    expect(compare(steps, { until: 60 })).toMatchObject({ everMissed: [], unobservable: [], pending: 0 });
  });
});

describe('a silent stream', () => {
  const shown = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`s${n}`, 'running'] as const));
  const steps = [listed(0, {}), opened(1), listed(2, {}), listed(5, shown), listed(10, shown)];

  test('is told once, when ten transitions that it should have announced had their time', () => {
    const outcome = compare(steps, { until: 60 });
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toHaveLength(1);
    expect(outcome.stream).toBe('Silent');
    expect(outcome.missed).toEqual([]);
  });

  test('is not told of nine', () => {
    const { s5: _, ...four } = shown;
    const nine = [listed(0, {}), opened(1), listed(2, {}), listed(5, { ...four, c1: 'created' })];
    const outcome = compare(nine, { until: 60 });
    expect(outcome.stream).toBe('Arming');
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toEqual([]);
  });

  test('is not told of a stream whose first event is merely slow', () => {
    const outcome = compare([...steps, received(20, 's1', 'CREATED', { built: 4 })], { until: 60 });
    expect(outcome.stream).toBe('Active');
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toEqual([]);
  });

  test('is told once, however much more is not announced', () => {
    const more = { ...shown, s6: 'running' as const, s7: 'running' as const };
    const outcome = compare([...steps, listed(15, more), listed(20, more)], { until: 90 });
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toHaveLength(1);
  });

  test('is not told of a stream that anything was heard of', () => {
    const outcome = compare([...steps, received(20, 's0', 'STARTED', { built: 19 })], { until: 60 });
    expect(outcome.stream).toBe('Active');
    expect(outcome.findings.filter(({ kind }) => kind === 'silent_stream')).toEqual([]);
  });

  test('is not told of what may have happened before it was opened', () => {
    const outcome = compare([listed(0, {}), opened(1), listed(5, shown), listed(10, shown)], { until: 60 });
    expect(outcome.stream).toBe('Arming');
  });

  test('is silent no longer once an event comes', () => {
    expect(compare([...steps, received(50, 's1', 'STOPPED')], { until: 60 }).stream).toBe('Active');
  });
});
