/*
 * Timelines in which an event did not come, or seems not to have come, and is not missed.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  CONTAINERD,
  CRIO,
  closed,
  compare,
  covered,
  listed,
  listedAlike,
  opened,
  received,
  runtimeReplaced,
  S1_EXITED,
  S1_RUNNING,
  seconds,
  status,
  streamGap,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { createdPod, everMissed, pod } from '../../../test/engine/timelinePods.ts';
import { EVENT_TYPES } from '../../protocol/record.ts';

describe('an end that no list shows', () => {
  const up: readonly TimelineStep[] = [
    ...covered,
    listed(5, {}),
    ...['s1', 'c1'].flatMap((id) => announced(6, id, 'CREATED', 'STARTED')),
    listed(10, C1_RUNNING),
  ];
  const gone = listedAlike({}, 15, 20);

  test('where nothing announces that something running was removed, nobody can say whether its end was announced', () => {
    const outcome = compare([...up, ...gone], { until: 60 });
    expect(outcome.missed).toEqual(['s1 DELETED', 'c1 DELETED']);
    expect(outcome.unobservable).toEqual(['s1 STOPPED end_not_shown', 'c1 STOPPED end_not_shown']);
    const window = { from: seconds(10), to: seconds(15.01) };
    expect(outcome.findings).toContainEqual(expect.objectContaining({ cause: 'end_not_shown', window }));
  });

  test('where a stream gap makes a removal unobservable, so is the end that no list shows', () => {
    expect(compare([...up, streamGap(12), ...gone], { until: 60 })).toMatchObject({
      everMissed: [],
      unobservable: [
        's1 DELETED window_not_covered',
        's1 STOPPED end_not_shown',
        'c1 DELETED window_not_covered',
        'c1 STOPPED end_not_shown',
      ],
    });
  });

  test('the end of what was removed without an event is known if its STOPPED came', () => {
    const stopped = ['s1', 'c1'].map((id) => received(12, id, 'STOPPED'));
    expect(compare([...up, ...stopped, ...gone], { until: 60 }).unobservable).toEqual([]);
  });

  test('the end of a removed container is not asked for if nothing shows that it ever ran', () => {
    const created = [...covered, listed(5, {}), received(6, 's1', 'CREATED'), received(6, 'c1', 'CREATED')];
    const outcome = compare([...created, listed(10, C1_CREATED), listed(15, S1_RUNNING)], { until: 60 });
    expect(outcome.unobservable.filter((each) => each.startsWith('c1'))).toEqual([]);
  });

  test('the end of what is listed again in time is not asked for', () => {
    const again = [listed(15, S1_RUNNING), ...listedAlike(C1_RUNNING, 20, 25)];
    const outcome = compare([...up, ...again], { until: 60 });
    expect(outcome.unobservable.filter((each) => each.includes('STOPPED'))).toEqual([]);
  });
});

describe('events', () => {
  test('events that come seconds late from a slow runtime are matched', () => {
    const steps = [
      ...covered,
      listed(5, C1_RUNNING),
      ...[10, 15, 20, 25, 30].map((at) => listed(at, C1_EXITED)),
      ...(['s1', 'c1'] as const).flatMap((id) => [
        received(33, id, 'CREATED', { built: 32 }),
        received(33.1, id, 'STARTED', { built: 33 }),
      ]),
      received(34, 'c1', 'STOPPED', { built: 34 }),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      everMissed: [],
      counters: { expected: 5, matched: 5 },
    });
  });

  test('a buffered start and stop that come after the relist that saw the end are stale and late, never missed', () => {
    const ended = times({ created: 4, started: 6, finished: 8 });
    const steps = [
      ...createdPod,
      listed(5, C1_CREATED),
      listed(10, C1_EXITED),
      // Built before that list, delivered a while after it; without times, and with them.
      received(14, 'c1', 'STARTED', { built: 6 }),
      received(14.1, 'c1', 'STOPPED', { built: 8, times: ended }),
      listed(15, C1_EXITED),
    ];
    const { everMissed: misses, findings, counters } = compare(steps, { until: 90 });
    expect(misses).toEqual([]);
    const kinds = findings.map(({ kind, eventType, cause }) => `${kind} ${eventType} ${cause}`);
    expect(kinds).toEqual(['stale STARTED after_the_list', 'late STOPPED delivered_late']);
    expect(counters).toMatchObject({ missed: 0, unobservable: 0 });
  });

  test('events that were overtaken by a list that shows the id gone are matched', () => {
    const steps = [
      ...covered,
      received(6, 'c1', 'DELETED'),
      listed(10, {}),
      received(12, 'c1', 'CREATED', { built: 5, times: times({ created: 5 }) }),
      received(12, 'c1', 'STARTED', { built: 5 }),
      received(12, 'c1', 'STOPPED', { built: 5 }),
      listed(15, {}),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({ everMissed: [], pending: 0 });
  });

  test('events in any order discharge what they announce', () => {
    const own = { times: times({ created: 5, started: 5.1, finished: 5.2 }) };
    const orders = [
      ['STOPPED', 'STARTED', 'CREATED', 'DELETED'],
      ['DELETED', 'STOPPED', 'STARTED', 'CREATED'],
      ['STARTED', 'CREATED', 'DELETED', 'STOPPED'],
    ] as const;
    for (const order of orders) {
      const events = order.map((type, i) => received(6 + i / 10, 'c1', type, own));
      expect(compare([...covered, ...events, listed(10, {}), listed(15, {})], { until: 90 })).toMatchObject({
        everMissed: [],
        counters: { expected: 4, matched: 4 },
      });
    }
  });

  test('events without an identity, of an id that no list showed yet, are matched', () => {
    const steps = [
      ...covered,
      received(4, 's1', 'CREATED', { nameless: true }),
      received(4, 's1', 'STARTED', { nameless: true }),
      listed(5, S1_RUNNING),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({
      everMissed: [],
      counters: { expected: 2, matched: 2 },
    });
  });

  test('events that came twice are one event', () => {
    const twice = [
      received(4, 's1', 'CREATED'),
      received(4.1, 's1', 'CREATED'),
      received(4.2, 's1', 'STARTED'),
    ];
    expect(compare([...covered, ...twice, listed(5, S1_RUNNING)], { until: 60 })).toMatchObject({
      counters: { expected: 2, matched: 2 },
    });
  });

  test('events of an unknown type are recorded and prove nothing', () => {
    const outcome = compare([...covered, received(4, 'c1', 7), listed(5, {}), listed(10, {})], { until: 60 });
    expect(outcome.counters.expected).toBe(0);
    expect(outcome.records.filter((record) => record.type === 'container_event')).toHaveLength(2);
  });

  test('events of an unknown type and an untracked id may be any that is due', () => {
    const steps = [...covered, received(4, 's1', 7, { nameless: true }), ...listedAlike(S1_RUNNING, 5, 10)];
    expect(everMissed(steps)).toEqual([]);
  });

  test('events of a forgotten id prove nothing of its past', () => {
    const long = 20 * 60;
    const steps = [
      ...createdPod,
      received(5, 'c1', 'DELETED'),
      listed(10, {}),
      received(long, 'c1', 'STOPPED', { built: 5, times: times({ created: 4, started: 4.2, finished: 5 }) }),
      ...listedAlike({}, long + 5, long + 10),
    ];
    expect(everMissed(steps, { until: long + 120 })).toEqual([]);
  });
});

describe('containers that never ran', () => {
  const failures = {
    'started_at is 0': times({ created: 4.5, finished: 5 }),
    'all three times are one': times({ created: 5, started: 5, finished: 5 }),
  };

  test.each(Object.entries(failures))(
    'neither start nor stop is due of a container that never ran: %s',
    (_, exact) => {
      const steps = [
        ...createdPod,
        listed(5, C1_CREATED),
        listed(10, C1_EXITED),
        status(10.3, 'c1', exact),
        listed(15, C1_EXITED),
        received(16, 'c1', 'DELETED'),
        listed(20, S1_RUNNING),
      ];
      expect(compare(steps, { until: 90 })).toMatchObject({
        everMissed: [],
        queries: ['c1'],
        counters: { expected: 4, matched: 4 },
      });
    },
  );

  test.each(Object.entries(failures))(
    'the start of a container that never ran is not due although its end was announced: %s',
    (_, exact) => {
      const steps = [...createdPod, received(7, 'c1', 'STOPPED', { times: exact }), listed(10, C1_EXITED)];
      const outcomeWithStatus = compare(steps, { until: 60 });
      expect(outcomeWithStatus.everMissed).toEqual([]);
      // It is not even waited for.
      expect(outcomeWithStatus.records.filter(({ type }) => type === 'event_overdue')).toEqual([]);
      // Nor when only its status shows the failed start, after an event that did not.
      const bare = [
        ...createdPod,
        received(7, 'c1', 'STOPPED'),
        listed(10, C1_EXITED),
        status(12, 'c1', exact),
      ];
      const outcome = compare(bare, { until: 60 });
      expect(outcome.findings.filter(({ kind }) => kind !== 'short_life')).toEqual([]);
      expect(outcome.counters).toMatchObject({ expected: 4, matched: 4 });
    },
  );

  test('a container that started in the instant of its creation and ended later did run', () => {
    const steps = [
      ...createdPod,
      received(4.1, 'c1', 'STARTED'),
      listed(5, C1_RUNNING),
      listed(10, C1_EXITED),
      status(12, 'c1', times({ created: 4, started: 4, finished: 8 })),
    ];
    expect(everMissed(steps)).toEqual(['c1 STOPPED']);
  });

  test.each(Object.entries(failures))(
    'a container that never ran may be removed silently where one that ran may not: %s',
    (_, exact) => {
      const steps = [
        ...createdPod,
        listed(5, C1_CREATED),
        listed(10, C1_EXITED),
        status(10.3, 'c1', exact),
        ...listedAlike(S1_RUNNING, 15, 20),
      ];
      expect(everMissed(steps, { profile: CRIO })).toEqual([]);
    },
  );

  test('nothing is due of an exited container whose status is gone', () => {
    const steps = [
      ...createdPod,
      listed(10, C1_EXITED),
      status(10.3, 'c1', null),
      received(11, 'c1', 'DELETED'),
      listed(15, S1_RUNNING),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('an id that is gone without proof that it ran is gone, and nothing more', () => {
    const steps = [...covered, ...pod, listed(5, C1_CREATED), listed(10, S1_RUNNING)];
    expect(everMissed(steps)).toEqual(['c1 DELETED']);
    expect(everMissed([...steps, received(8, 'c1', 'DELETED')])).toEqual([]);
  });

  test('a status taken before the start does not make a run a failed start', () => {
    const steps = [
      ...createdPod,
      received(4.5, 'c1', 'CREATED', { times: times({ created: 4.4 }) }),
      received(8, 'c1', 'STOPPED'),
      listed(10, C1_EXITED),
    ];
    expect(everMissed(steps)).toEqual(['c1 STARTED']);
  });
});

describe('a sandbox', () => {
  test('the DELETED of a sandbox may come before it leaves the list', () => {
    const steps = [
      ...covered,
      ...announced(4, 's1', 'CREATED', 'STARTED'),
      listed(5, S1_RUNNING),
      received(6, 's1', 'STOPPED'),
      received(7, 's1', 'DELETED'),
      ...listedAlike(S1_EXITED, 10, 15),
      listed(20, {}),
    ];
    expect(compare(steps, { until: 90 }).findings).toEqual([]);
  });

  test('the DELETED of a sandbox is not due where it may have been announced before the stream was covered', () => {
    // Announced at 1.5, before anybody listened; gone from the list at 8.
    const steps = [listed(0, S1_RUNNING), opened(1), received(2, 's0', 'STARTED'), listed(3, S1_EXITED)];
    expect(everMissed([...steps, listed(6, S1_EXITED), listed(11.9, {})])).toEqual([]);
    // One that a covered list lacked was not announced gone before that list.
    const young = [...steps, listed(4, { s2: 'running' }), listed(8, { s2: 'running' }), listed(11, {})];
    const born = (['CREATED', 'STARTED'] as const).map((type) => received(3.5, 's2', type));
    expect(everMissed([...young, ...born])).toEqual(['s2 DELETED']);
    // When it was still there long after, the announcement must have come to us.
    expect(everMissed([...steps, listed(12.1, S1_EXITED), listed(20, {})])).toEqual(['s1 DELETED']);
  });

  test('a sandbox that never came up owes nothing: first seen NOTREADY, then gone, announced or not', () => {
    const steps = [...covered, listed(5, S1_EXITED), listed(10, S1_EXITED), listed(30, {})];
    expect(everMissed(steps)).toEqual([]);
    expect(everMissed([...steps, received(25, 's1', 'DELETED')])).toEqual([]);
    expect(everMissed([...covered, received(4, 's1', 'DELETED'), listed(5, {}), listed(10, {})])).toEqual([]);
  });

  test('a sandbox that was never seen up owes nothing where only other statuses carry its creation', () => {
    const steps = [
      ...covered,
      received(4, 's1', 'CREATED'),
      listed(5, {}),
      received(6, 'c1', 'CREATED', { others: [{ id: 's1', state: 'exited', times: times({ created: 4 }) }] }),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a sandbox that never came up, first seen as UNKNOWN, owes nothing', () => {
    expect(everMissed([...covered, listed(5, { s1: 'unknown' }), listed(10, {}), listed(30, {})])).toEqual(
      [],
    );
  });

  test('a removed sandbox takes its containers along unannounced where the runtime works that way', () => {
    const alive = [
      ...covered,
      received(4, 's1', 'STARTED'),
      ...EVENT_TYPES.slice(0, 3).map((type) => received(5, 'c1', type)),
      listed(6, C1_EXITED),
      received(7, 's1', 'STOPPED'),
    ];
    const both = [...alive, listed(10, {}), listed(15, {})];
    expect(everMissed(both, { profile: CRIO })).toEqual([]);
    // On its way out: the containers have gone already, the sandbox is still there.
    const slowly = [...alive, listed(10, S1_EXITED), listed(15, S1_EXITED), listed(20, {})];
    expect(everMissed(slowly, { profile: CRIO })).toEqual([]);
    // Between the two calls of one relist.
    const between = [
      ...alive.slice(0, -1),
      listed(10, S1_RUNNING),
      received(11, 's1', 'STOPPED'),
      listed(15, {}),
    ];
    expect(everMissed(between, { profile: CRIO })).toEqual([]);
    expect(everMissed(both, { profile: CONTAINERD })).toContain('c1 DELETED');
  });

  test('the creation and removal of a sandbox are not due where the runtime never announces them', () => {
    const steps = [
      ...covered,
      received(4, 's1', 'STARTED'),
      listed(5, S1_RUNNING),
      received(6, 's1', 'STOPPED'),
      listed(10, S1_EXITED),
      ...listedAlike({}, 25, 40),
    ];
    const outcome = compare(steps, { until: 90, profile: CRIO });
    expect(outcome.findings.map(({ kind, eventType }) => [kind, eventType])).toEqual([
      ['unannounced', 'DELETED'],
    ]);
    expect(outcome.counters).toMatchObject({ expected: 2, matched: 2 });
  });
});

describe('another runtime', () => {
  test('after a replacement the events are due that the new runtime announces, from its own session on', () => {
    const steps = [
      ...covered,
      listed(5, S1_RUNNING),
      closed(6),
      runtimeReplaced(7, CRIO),
      opened(8, 2),
      received(9, 's0', 'STOPPED'),
      listed(10, S1_RUNNING),
      received(11, 's2', 'STARTED'),
      listed(15, { s1: 'running', s2: 'running' }),
      received(16, 's1', 'STOPPED'),
      received(16, 's2', 'STOPPED'),
      ...listedAlike({}, 20, 40),
    ];
    expect(everMissed(steps)).toEqual([]);
  });
});
