/*
 * Unconfirmed events and other cases where little is known: each test isolates one condition of the comparison.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  C1_CREATED,
  C1_RUNNING,
  CRIO,
  closed,
  compare,
  covered,
  listed,
  listedAlike,
  opened,
  received,
  S1_RUNNING,
  streamGap,
  times,
} from '../../../test/engine/timeline.ts';

test('a replayed event proves nothing, whether its id is tracked or not', () => {
  const own = { times: times({ created: 4, started: 5, finished: 8 }) };
  const steps = [
    listed(0, { c1: 'created' }),
    opened(10),
    received(10.1, 'c1', 'STOPPED', { built: 8, ...own }),
    received(10.1, 'c2', 'STOPPED', { built: 8, ...own }),
    ...listedAlike({ c1: 'created' }, 11, 15),
  ];
  expect(compare(steps, { until: 60 }).counters.expected).toBe(0);
});

test('a stage that a spurious event proved first, and lists show by themselves, is missed once, and as the lists show it', () => {
  const steps = [
    ...covered,
    received(4, 'c1', 'CREATED'),
    listed(5, C1_CREATED),
    received(8, 'c1', 'STOPPED'),
    ...listedAlike(C1_RUNNING, 10, 15),
  ];
  const { findings } = compare(steps, { until: 90 });
  const ofStart = findings.filter(
    ({ containerId, eventType }) => containerId === 'c1' && eventType === 'STARTED',
  );
  expect(ofStart).toMatchObject([{ kind: 'missed', proof: { evidence: 'listed running' } }]);
});

describe('a DELETED that proves nothing when it comes', () => {
  test('a STOPPED is unobservable where the DELETED of its container came before anything else of it', () => {
    const steps = [
      ...covered,
      listed(5, {}),
      received(6, 'c1', 'DELETED', { nameless: true }),
      ...announced(6.1, 'c1', 'CREATED', 'STARTED'),
      ...listedAlike({}, 10, 15),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      everMissed: [],
      unobservable: ['c1 STOPPED end_not_shown'],
    });
  });

  test('a STOPPED is unobservable where the DELETED of its container was replayed, and it was not', () => {
    const steps = [listed(0, C1_RUNNING), opened(10)];
    const replayed = (type: 'STOPPED' | 'DELETED') => received(10.2, 'c1', type, { built: 8 });
    const gone = [received(10.3, 's0', 'STARTED'), ...listedAlike(S1_RUNNING, 11, 15)];
    expect(compare([...steps, replayed('DELETED'), ...gone], { until: 90 }).unobservable).toEqual([
      'c1 STOPPED end_not_shown',
    ]);
    const forbidden = [
      ...steps,
      replayed('DELETED'),
      closed(10.5, 'absent'),
      ...listedAlike(S1_RUNNING, 11, 15),
    ];
    expect(compare(forbidden, { until: 90 })).toMatchObject({ unobservable: [], counters: { expected: 0 } });
    const both = [...steps, replayed('STOPPED'), replayed('DELETED'), ...gone];
    expect(compare(both, { until: 90 }).unobservable).toEqual([]);
  });
});

test('a stream gap during the list that lacked an id makes its creation unobservable', () => {
  const steps = [...covered, listed(5, {}, { took: 2 }), streamGap(6), listed(10, S1_RUNNING)];
  expect(compare(steps, { until: 90 }).everMissed).toEqual([]);
});

test('the creation of an id that the first list of an agent shows as UNKNOWN is not due', () => {
  const steps = [
    opened(0.1),
    received(0.2, 's0', 'STARTED'),
    listed(1, { c1: 'unknown' }),
    listed(5, { c1: 'running' }),
  ];
  const { everMissed, unobservable } = compare(steps, { until: 60 });
  expect(everMissed).toEqual([]);
  expect(unobservable).not.toContain('c1 CREATED no_lower_bound');
});

test('a container that never ran may be removed silently where removed sandboxes take containers along, even while its own is up', () => {
  const idle = [
    ...covered,
    received(4, 's1', 'STARTED'),
    received(5, 'c1', 'CREATED'),
    listed(6, C1_CREATED),
    ...listedAlike(S1_RUNNING, 10, 15),
  ];
  expect(compare(idle, { until: 90, profile: CRIO }).everMissed).toEqual([]);
});

describe('stages that only an event proves, while no list confirms it', () => {
  /** c1 was created and stopped, as its STOPPED says, and no list follows. */
  const steps = [
    ...covered,
    listed(5, {}),
    received(6.2, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.1, finished: 6.2 }) }),
  ];

  test('a stage that only an event proves is pending beyond missedAfter', () => {
    expect(compare(steps, { until: 100 })).toMatchObject({ everMissed: [], unobservable: [], pending: 2 });
  });

  test('a stage that only an event proves is not missed, and not pending for ever', () => {
    expect(compare(steps, { until: 400 })).toMatchObject({
      everMissed: [],
      unobservable: ['c1 CREATED unconfirmed', 'c1 STARTED unconfirmed'],
      pending: 0,
    });
  });

  test('a stage that only an event proves is missed once missedAfter has passed since a list confirmed the event', () => {
    const confirmed = [...steps, listed(100, {})];
    expect(compare(confirmed, { until: 129 })).toMatchObject({ everMissed: [], pending: 3 });
    expect(compare(confirmed, { until: 131 }).missed).toEqual(['c1 CREATED', 'c1 STARTED', 'c1 DELETED']);
  });

  test('a stage that a wrong event announced too early is not missed where it happened before the list that seems to confirm it', () => {
    const outcome = compare(
      [
        ...covered,
        ...announced(6, 'c1', 'CREATED', 'STARTED'),
        listed(7, C1_RUNNING),
        received(8, 'c1', 'DELETED'),
        // It stopped at 25 s and was removed, and that DELETED was dropped.
        listed(30, S1_RUNNING),
        received(45, 'c1', 'STOPPED'),
      ],
      { until: 90 },
    );
    expect(outcome.everMissed).not.toContain('c1 STOPPED');
  });

  test('a list that began before the event and shows the same stage confirms it', () => {
    const slow = listed(5.5, { c1: 'exited' }, { took: 0.7 });
    expect(compare([...steps, slow], { until: 60 }).missed).toEqual(['c1 CREATED', 'c1 STARTED']);
  });

  test('a confirmed event that comes again needs no other list', () => {
    const again = received(20, 'c1', 'STOPPED');
    expect(compare([...steps, listed(10, {}), again], { until: 60 })).toMatchObject({
      missed: ['c1 DELETED', 'c1 CREATED', 'c1 STARTED'],
    });
  });

  test('a list that began before the event and lacks the id does not confirm it', () => {
    expect(compare([...steps, listed(5.5, {}, { took: 0.7 })], { until: 100 })).toMatchObject({
      everMissed: [],
      pending: 2,
    });
  });

  test('a list that could not be read whole does not confirm an event', () => {
    expect(compare([...steps, listed(10, {}, { partial: true })], { until: 100 })).toMatchObject({
      everMissed: [],
      pending: 2,
    });
  });
});

const MOST = 50_000;

test('an event that no memory is left for is a stream gap, not a miss', () => {
  const flood = Array.from({ length: MOST }, (_, i) =>
    received(6, `c${i + 100}`, 'CREATED', { nameless: true }),
  );
  const steps = [
    ...covered,
    listed(5, {}),
    ...flood,
    received(7, 's1', 'CREATED', { nameless: true }),
    received(7, 's1', 'STARTED', { nameless: true }),
    listed(10, S1_RUNNING),
  ];
  expect(compare(steps, { until: 60 }).everMissed).toEqual([]);
});

test('ids beyond the limit are counted, and nothing is due of them', () => {
  const many = Object.fromEntries(
    Array.from({ length: MOST + 5 }, (_, i) => [`c${i + 1}`, 'running' as const]),
  );
  expect(compare([listed(0, many)], { until: 1 })).toMatchObject({ counters: { untracked: 6, expected: 0 } });
});
