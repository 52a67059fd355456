/*
 * Timelines in which an event did not come, or seems not to have come, and is not missed.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  armed,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  CONTAINERD,
  CRIO,
  clockStepped,
  closed,
  compare,
  covered,
  type EventDetails,
  listed,
  listedAlike,
  opened,
  readerStalled,
  received,
  runtimeReplaced,
  S1_EXITED,
  S1_RUNNING,
  seconds,
  status,
  streamGap,
  type TimelineSettings,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { EVENT_TYPES } from '../../protocol/record.ts';

/** A pod whose events were all received. */
const pod = [...announced(4, 's1', 'CREATED', 'STARTED'), received(4, 'c1', 'CREATED')];
const createdPod = [...covered, ...pod];
const runningPod = [...createdPod, received(4.5, 'c1', 'STARTED'), listed(5, C1_RUNNING)];
/** The runtime restarts. */
const newSession = [closed(6), opened(8, 2), received(9, 's0', 'STARTED')];

const everMissed = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
  compare(steps, { until: 120, ...settings }).everMissed;

describe('the beginning of a stream', () => {
  test('what the first list of an agent shows is not due', () => {
    const outcome = compare([opened(0.1), received(0.2, 's0', 'CREATED'), listed(1, { c1: 'exited' })], {
      until: 60,
    });
    expect(outcome.counters.expected).toBe(0);
  });

  test('what a list shows before any event came is not due to a stream that may not be registered yet', () => {
    expect(everMissed([listed(0, {}), opened(1), listed(5, S1_RUNNING)])).toEqual([]);
  });

  test('what happened between the opening and the first event of a stream is not due', () => {
    const steps = [
      listed(0, {}),
      opened(1),
      listed(5, C1_CREATED),
      // The stream was registered only now; c1 started at 7.
      received(9, 's0', 'STARTED'),
      ...listedAlike(C1_RUNNING, 10, 15),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a subscription that is registered after a list owes nothing of what that list showed or lacked', () => {
    const steps = [
      listed(0, {}),
      opened(1),
      listed(3, C1_RUNNING),
      received(4, 's0', 'STARTED'),
      listed(5, { s1: 'running', c1: 'exited', c2: 'created' }),
      listed(10, S1_RUNNING),
    ];
    expect(everMissed(steps)).toEqual(['c1 DELETED', 'c2 DELETED']);
    expect(everMissed(steps.slice(0, -1))).toEqual([]);
  });

  test('a list that began before the stream was armed is no baseline', () => {
    const steps = [
      listed(0, {}),
      opened(1),
      listed(3, S1_RUNNING, { took: 2 }),
      received(4, 's0', 'STARTED'),
      listed(8, S1_EXITED),
    ];
    const outcome = compare(steps, { until: 60 });
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.unobservable).toContain('s1 STOPPED before_baseline');
  });

  test('a list that began in the moment of the arming is no baseline', () => {
    const steps = [...armed, listed(2, {}), listed(5, S1_RUNNING)];
    expect(everMissed(steps)).toEqual([]);
    expect(everMissed([...steps.slice(0, 3), listed(2.01, {}), listed(5, S1_RUNNING)])).toHaveLength(2);
  });

  test('an event that was built in the moment of the subscription is not replayed', () => {
    expect(compare([opened(1), received(2, 's0', 'STARTED', { built: 1 })], { until: 5 })).toMatchObject({
      records: [{ type: 'container_event', replayed: false }],
    });
  });

  test('what a replayed backlog lacks is not missed', () => {
    const steps = [
      listed(0, {}),
      opened(10),
      received(10.1, 's1', 'CREATED', { built: 2 }),
      received(10.1, 'c1', 'CREATED', { built: 4, times: times({ created: 4 }) }),
      received(10.1, 'c1', 'STOPPED', { built: 8, times: times({ created: 4, started: 5, finished: 8 }) }),
      ...listedAlike(C1_EXITED, 11, 15),
      received(16, 'c1', 'DELETED'),
      listed(20, S1_RUNNING),
    ];
    const outcome = compare(steps, { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    expect(
      outcome.records.filter((record) => record.type === 'container_event' && record.replayed),
    ).toHaveLength(3);
  });

  test('a replayed event of an id that only a later list shows counts', () => {
    const steps = [
      ...covered.slice(0, 2),
      received(2, 's1', 'CREATED', { built: 0.5 }),
      received(2, 's1', 'STARTED', { built: 0.5 }),
      listed(3, S1_RUNNING),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({ unobservable: [], counters: { expected: 0 } });
  });

  test('a removal that is announced after the id left the list, before the baseline, proves nothing of its past', () => {
    const steps = [...covered, received(6, 'c1', 'DELETED'), listed(10, {}), listed(15, {})];
    expect(everMissed(steps)).toEqual([]);
  });

  test('an event whose own times lie before the stream proves nothing that is due', () => {
    const late = received(6, 'c1', 'STOPPED', {
      times: times({ created: 0.5, started: 0.7, finished: 0.9 }),
    });
    expect(everMissed([...covered, late, listed(10, {}), listed(15, {})])).toEqual([]);
  });
});

describe('the end of a stream', () => {
  test('a stream that breaks before an event is overdue makes it unobservable', () => {
    const steps = [...covered, listed(5, S1_RUNNING), closed(6), opened(7, 2), listed(10, S1_RUNNING)];
    expect(compare(steps, { until: 90 })).toMatchObject({
      everMissed: [],
      unobservable: ['s1 CREATED stream_gap', 's1 STARTED stream_gap'],
    });
  });

  test('the STOPPED of what its DELETED announced as gone is unobservable where the stream ended before a list lacked it', () => {
    // The list was begun before the DELETED, and only it shows that c1 ran.
    const steps = [
      ...createdPod,
      received(5.05, 'c1', 'DELETED', { times: times({ created: 4 }) }),
      listed(5, C1_RUNNING, { took: 0.1 }),
    ];
    const restarted = [...steps, ...newSession, ...listedAlike(S1_RUNNING, 10, 15)];
    expect(compare(restarted, { until: 120 })).toMatchObject({
      everMissed: [],
      unobservable: ['c1 STARTED stream_gap', 'c1 STOPPED stream_gap'],
    });
  });

  test('a new session between proof and judgement makes the event unobservable', () => {
    const steps = [
      ...covered,
      listed(5, S1_RUNNING),
      opened(20, 2),
      received(21, 's0', 'STARTED'),
      listed(25, S1_RUNNING),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({
      everMissed: [],
      unobservable: ['s1 CREATED stream_gap', 's1 STARTED stream_gap'],
    });
  });

  test('what was reached before a new session is not due to it, even if it is proven only then', () => {
    const steps = [
      ...createdPod,
      listed(5, C1_CREATED),
      // Its payload was lost: nothing says yet whether it ever ran.
      received(6, 'c1', 'STOPPED', { nameless: true }),
      closed(8),
      opened(9, 2),
      listed(10, C1_EXITED),
    ];
    const answer = status(11, 'c1', times({ created: 4, started: 5.5, finished: 6 }));
    const { counters, unobservable } = compare([...steps, answer], { until: 60 });
    expect(unobservable).toEqual([]);
    expect(counters).toEqual(compare(steps, { until: 60 }).counters);
  });

  test('what happens while there is no stream is unobservable', () => {
    expect(compare([...covered, closed(4), listed(5, S1_RUNNING)], { until: 60 })).toMatchObject({
      everMissed: [],
      unobservable: ['s1 CREATED stream_down', 's1 STARTED stream_down'],
    });
  });

  test('nothing is due where policy forbids the stream', () => {
    expect(compare([...covered, closed(4, 'absent'), listed(5, S1_RUNNING)], { until: 60 })).toMatchObject({
      counters: { expected: 0 },
    });
  });

  test('an event of an older session that arrives late changes nothing', () => {
    const steps = [
      ...covered,
      closed(4),
      opened(5, 2),
      received(6, 's0', 'STARTED', { session: 1 }),
      listed(10, {}),
      listed(15, S1_RUNNING),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({ stream: 'Arming', everMissed: [] });
  });

  test('a stop while the runtime was down is not missed', () => {
    const steps = [
      ...runningPod,
      ...newSession,
      ...listedAlike(C1_EXITED, 10, 15),
      received(16, 'c1', 'DELETED'),
      listed(20, S1_RUNNING),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a stop while the runtime was down is not missed when lists show it after the baseline, if its exact time says so', () => {
    const exit = times({ created: 4, started: 4.5, finished: 7 });
    const steps = [
      ...runningPod,
      ...newSession,
      listed(10, C1_RUNNING),
      listed(15, C1_EXITED),
      status(18, 'c1', exit),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({
      everMissed: [],
      unobservable: ['c1 STOPPED exact_time_not_covered'],
    });
    // An event with older statuses does not make it forget.
    const older = received(20, 'c1', 'STARTED', { times: times({ created: 4, started: 4.5 }) });
    expect(everMissed([...steps, older])).toEqual([]);
    // And neither does a step of the wall clock.
    expect(everMissed([...steps, clockStepped(25, 3600)])).toEqual([]);
    expect(everMissed([...steps, clockStepped(25, -3600)])).toEqual([]);
  });

  describe('a stop that lists show after the baseline, without an exact time', () => {
    const restarted = (stopped: number) => [
      ...runningPod,
      ...newSession,
      ...listedAlike(C1_RUNNING, 10, stopped - 5),
    ];

    test.each([
      ['nobody answers', []],
      ['the container is not found', [status(18, 'c1', null)]],
    ])('a stop that lists show soon after the baseline is unobservable where %s', (_, asked) => {
      const steps = [...restarted(15), listed(15, C1_EXITED), ...asked];
      expect(compare(steps, { until: 60 })).toMatchObject({
        everMissed: [],
        unobservable: ['c1 STOPPED may_have_ended_before'],
      });
    });

    test('a stop that lists show soon after the baseline is not missed where its DELETED comes', () => {
      const steps = [...restarted(15), received(14, 'c1', 'DELETED'), listed(15, S1_RUNNING)];
      expect(everMissed(steps)).toEqual([]);
    });

    test('a sandbox stop that lists show soon after the baseline is not missed', () => {
      expect(everMissed([...restarted(15), listed(15, { s1: 'exited', c1: 'running' })])).toEqual([]);
    });

    test('six minutes into a session its lists are trusted to show a stop in time', () => {
      const late = (by: number) => [...restarted(by), listed(by, C1_EXITED)];
      expect(compare(late(370), { until: 420 }).everMissed).toEqual([]);
      expect(compare(late(380), { until: 430 }).everMissed).toEqual(['c1 STOPPED']);
    });

    test('lists are trusted to show the stop of what started within the session', () => {
      const steps = [
        ...restarted(15),
        received(11, 'c2', 'CREATED'),
        received(11.5, 'c2', 'STARTED'),
        listed(15, { s1: 'running', c1: 'running', c2: 'running' }),
        listed(20, { s1: 'running', c1: 'running', c2: 'exited' }),
      ];
      expect(compare(steps, { until: 70 }).everMissed).toEqual(['c2 STOPPED']);
    });
  });
});

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

describe('stream gaps and unread items', () => {
  test('a stream gap between the last list and the proof makes the event unobservable', () => {
    const outcome = compare([...covered, streamGap(4), listed(5, S1_RUNNING)], { until: 60 });
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.unobservable.map((each) => each.split(' ')[2])).toEqual([
      'window_not_covered',
      'window_not_covered',
    ]);
  });

  test('a stream gap between the proof and the judgement makes the event unobservable', () => {
    expect(compare([...covered, listed(5, S1_RUNNING), streamGap(20)], { until: 60 })).toMatchObject({
      everMissed: [],
      unobservable: ['s1 CREATED agent_stalled', 's1 STARTED agent_stalled'],
    });
  });

  test('what begins in covered time after a stream gap is judged again', () => {
    expect(everMissed([...covered, streamGap(4), listed(5, {}), listed(10, S1_RUNNING)])).toEqual([
      's1 CREATED',
      's1 STARTED',
    ]);
  });

  test('an event that is still in the socket at the deadline is waited for', () => {
    const steps = [
      ...covered,
      ...readerStalled(5, 60),
      listed(5, S1_RUNNING),
      received(59, 's1', 'CREATED', { built: 4 }),
      received(59, 's1', 'STARTED', { built: 4 }),
    ];
    expect(compare(steps, { until: 58 }).pending).toBe(2);
    expect(everMissed(steps)).toEqual([]);
  });

  test('an event that came to the socket between its proof and the deadline is waited for', () => {
    const steps = [...covered, listed(5, S1_RUNNING), ...readerStalled(20, 60)];
    expect(compare(steps, { until: 59 })).toMatchObject({ everMissed: [], pending: 2 });
    expect(everMissed(steps)).toEqual(['s1 CREATED', 's1 STARTED']);
  });

  test('a stream gap that ended inside the window and is reported after the proof makes the event unobservable', () => {
    const gap: TimelineStep = {
      at: 11,
      act: ({ comparison }) => comparison.streamGap(seconds(7), 'reader_stalled'),
    };
    expect(compare([...covered, listed(5, {}), listed(10, S1_RUNNING), gap], { until: 60 })).toMatchObject({
      unobservable: ['s1 CREATED reader_stalled', 's1 STARTED reader_stalled'],
    });
  });

  test('a stream gap that ended before the window and is reported after the proof changes nothing', () => {
    const gap: TimelineStep = {
      at: 11,
      act: ({ comparison }) => comparison.streamGap(seconds(4), 'reader_stalled'),
    };
    expect(everMissed([...covered, listed(5, {}), listed(10, S1_RUNNING), gap])).toEqual([
      's1 CREATED',
      's1 STARTED',
    ]);
  });

  test('a stream gap that is reported after a later one does not bring back what that one ended', () => {
    const gap: TimelineStep = {
      at: 7.5,
      act: ({ comparison }) => comparison.streamGap(seconds(4), 'reader_stalled'),
    };
    const steps = [...covered, listed(5, {}), streamGap(7), gap, listed(10, S1_RUNNING)];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a list with an item that could not be read proves nothing by what it lacks', () => {
    const steps = [
      ...covered,
      listed(5, S1_RUNNING),
      listed(10, {}, { partial: true }),
      listed(15, { s1: 'running', c2: 'running' }),
    ];
    const outcome = compare(steps, { until: 12 });
    expect(outcome.findings).toEqual([]);
    expect(
      outcome.records.filter(
        (record) => record.type === 'relist_change' && record.newState === 'non-existent',
      ),
    ).toEqual([]);
  });

  test('an id that was in the list unread was not created since', () => {
    const steps = [...armed, listed(3, {}, { partial: true }), listed(5, C1_RUNNING)];
    expect(everMissed(steps)).toEqual([]);
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

describe('lists that fail so long that events are forgotten', () => {
  const long = 20 * 60;
  const back = [listed(long, C1_RUNNING), listed(long + 5, C1_RUNNING)];
  const events = (how: EventDetails = {}) => [
    received(4, 's1', 'CREATED', how),
    received(4, 's1', 'STARTED', how),
    received(4, 'c1', 'CREATED', how),
    received(5, 'c1', 'STARTED', how),
  ];

  test('what lists show after a long failure is not missed', () => {
    expect(everMissed([...covered, ...events(), ...back], { until: long + 120 })).toEqual([]);
  });

  test('what lists show after a long failure is not missed although its status says when it was created', () => {
    const young = status(long + 2, 'c1', times({ created: long - 30, started: long - 29 }));
    expect(everMissed([...covered, ...back, young], { until: long + 120 })).toEqual([]);
  });

  test('what lists show after a long failure is not missed where the events had no identity', () => {
    expect(everMissed([...covered, ...events({ nameless: true }), ...back], { until: long + 120 })).toEqual(
      [],
    );
  });

  test('what lists show after a long failure is not missed where lists came but each had an unread item', () => {
    const unread = Array.from({ length: 190 }, (_, i) => listed(6 + i * 6, {}, { partial: true }));
    expect(everMissed([...covered, ...events(), ...unread, ...back], { until: long + 120 })).toEqual([]);
  });
});

describe('lists', () => {
  test('an answer older than an event already received is no regression', () => {
    const steps = [
      ...createdPod,
      received(5, 'c1', 'STARTED'),
      received(9.5, 'c1', 'STOPPED'),
      // Asked before the exit, answered after it.
      listed(9, C1_RUNNING, { took: 1 }),
      listed(15, C1_EXITED),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      findings: [],
      counters: { expected: 5, matched: 5 },
    });
  });

  test('an answer that lacks an id does not prove it gone where an event came while it was made', () => {
    const steps = [
      ...covered,
      received(5.5, 's1', 'CREATED'),
      received(5.6, 's1', 'STARTED'),
      listed(5, {}, { took: 1 }),
      listed(10, S1_RUNNING),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      findings: [],
      counters: { expected: 2, matched: 2 },
    });
  });

  test('the two calls of a relist are two moments: what happens between them belongs to the second', () => {
    // The container call lacks c1 at 7 s; it was created at 7.5, its sandbox is in the answer before.
    const steps = [
      ...covered,
      ...announced(4, 's1', 'CREATED', 'STARTED'),
      listed(5, S1_RUNNING, { took: 2 }),
      received(7.5, 'c1', 'CREATED'),
      listed(10, C1_CREATED, { took: 2 }),
    ];
    expect(everMissed(steps)).toEqual([]);
    // A session that began between the two moments of one relist does not cover the first.
    const between = [
      listed(0, {}),
      opened(1),
      received(6, 's0', 'STARTED'),
      listed(5, {}, { took: 2 }),
      listed(10, S1_RUNNING, { took: 2 }),
    ];
    expect(everMissed(between)).toEqual([]);
  });

  test('a list that is compared after newer events proves nothing new', () => {
    const steps = [
      ...createdPod,
      received(5.2, 'c1', 'STARTED'),
      received(6, 'c1', 'STOPPED'),
      received(6.5, 'c1', 'DELETED'),
      listed(5, C1_CREATED, { compared: 2 }),
      listed(10, S1_RUNNING),
    ];
    expect(compare(steps, { until: 90 }).findings).toEqual([]);
  });

  test('an id that a list lacked by mistake is not gone, and is judged when it is removed', () => {
    const steps = [...covered, listed(5, C1_RUNNING), listed(10, S1_RUNNING), listed(15, C1_RUNNING)].concat(
      ['s1 CREATED', 's1 STARTED', 'c1 CREATED', 'c1 STARTED'].map(ofText),
    );
    expect(compare(steps, { until: 90 })).toMatchObject({
      everMissed: [],
      unobservable: ['c1 DELETED listed_again'],
    });
    const gone = compare([...steps, received(17, 'c1', 'STOPPED'), listed(20, S1_RUNNING)], {
      until: 90,
    });
    expect(gone.everMissed).toEqual(['c1 DELETED']);
    // Since it was listed again, not since it was lacked.
    const window = { from: seconds(15.01), to: seconds(20.02) };
    expect(gone.findings).toContainEqual(expect.objectContaining({ kind: 'missed', window }));
  });

  test('a missed removal is resolved when the id is listed again', () => {
    const steps = [
      ...covered,
      listed(5, { c1: 'running' }),
      ...['c1 CREATED', 'c1 STARTED'].map(ofText),
      listed(20, {}),
      listed(60, { c1: 'running' }),
    ];
    expect(compare(steps, { until: 59 }).missed).toEqual(['c1 DELETED']);
    expect(compare(steps, { until: 90 })).toMatchObject({
      missed: [],
      // Nobody saw it end either.
      counters: { expected: 4, matched: 2, missed: 0, unobservable: 2 },
    });
  });

  test('a regression is recorded, and neither start nor stop is due any more', () => {
    const steps = [
      ...createdPod,
      received(5, 'c1', 'STARTED'),
      listed(6, C1_RUNNING),
      listed(10, C1_EXITED),
      listed(15, C1_RUNNING),
      listed(20, C1_EXITED),
    ];
    const outcome = compare(steps, { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.findings.map(({ kind }) => kind)).toEqual(['regression', 'unobservable']);
    expect(everMissed([...steps, listed(25, S1_RUNNING)])).toEqual(['c1 DELETED']);
  });

  test('events of a container that regressed are neither late nor out of order', () => {
    const steps = [
      ...createdPod,
      received(4.5, 'c1', 'STARTED'),
      received(8, 'c1', 'STOPPED'),
      listed(10, C1_EXITED),
      received(12, 'c1', 'STARTED'),
      listed(15, C1_RUNNING),
      received(17, 'c1', 'STARTED'),
    ];
    const { findings } = compare(steps, { until: 60 });
    expect(findings.map(({ kind }) => kind)).toEqual(['short_life', 'duplicate', 'regression']);
  });

  test('the end that went back is not due where its event turns out to be spurious', () => {
    const steps = [
      ...runningPod,
      listed(10, C1_EXITED),
      received(12, 'c1', 'STOPPED'),
      ...listedAlike(C1_RUNNING, 15, 20),
      listed(25, C1_EXITED),
      status(27, 'c1', times({ created: 4, started: 4.5, finished: 22 })),
    ];
    const { findings, counters } = compare(steps, { until: 90 });
    expect(findings.map(({ kind }) => kind)).toEqual(['regression', 'spurious']);
    expect(counters).toMatchObject({ expected: 4, matched: 4 });
  });

  test('a regression over UNKNOWN is a regression too', () => {
    const steps = [
      ...covered,
      listed(5, { c1: 'exited' }),
      listed(10, { c1: 'unknown' }),
      listed(15, { c1: 'running' }),
    ];
    expect(compare(steps, { until: 20 }).findings.map(({ kind }) => kind)).toEqual(['regression']);
  });

  test('a list that is slow or fails for a while only widens the window', () => {
    const steps = [
      ...covered,
      received(30, 's1', 'CREATED'),
      received(50, 's1', 'STARTED'),
      listed(60, S1_RUNNING),
    ];
    expect(everMissed(steps)).toEqual([]);
  });
});

describe('UNKNOWN', () => {
  test('UNKNOWN proves nothing but that the id existed', () => {
    // c1 came and ran before the stream was armed; the baseline shows it as UNKNOWN.
    const steps = [...armed, ...listedAlike({ c1: 'unknown' }, 3, 5), listed(10, { c1: 'running' })];
    expect(everMissed(steps)).toEqual([]);
  });

  test('UNKNOWN in the first list of an agent waives what came before it', () => {
    const steps = [
      opened(0.1),
      received(0.2, 's0', 'STARTED'),
      listed(1, { c1: 'unknown' }),
      listed(5, { c1: 'running' }),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('UNKNOWN for a while hides nothing: the stop within it is due', () => {
    const steps = [
      ...runningPod,
      listed(10, { s1: 'running', c1: 'unknown' }),
      listed(15, C1_RUNNING),
      listed(20, { s1: 'running', c1: 'unknown' }),
      listed(25, C1_EXITED),
    ];
    const { missed, findings } = compare(steps, { until: 90 });
    expect(missed).toEqual(['c1 STOPPED']);
    expect(findings[0]?.window).toEqual({ from: 15_010_000, to: 25_020_000 });
  });
});

describe('what never ran', () => {
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

  test('what started in the instant of its creation and ended later did run', () => {
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

describe('the wall clock', () => {
  const shortLife = (offset: number): TimelineStep[] => {
    const own = times({ created: 30, started: 30.1, finished: 30.2 }, offset);
    return [
      received(30.1, 'c1', 'STARTED', { times: own }),
      received(30.2, 'c1', 'STOPPED', { times: own }),
      received(30.3, 'c1', 'DELETED'),
      listed(35, {}),
    ];
  };
  const base = [...covered, listed(25, {})];

  test.each([3600, -3600, 5, -5])(
    'a clock step of %i s after the proof voids a bound that was computed from the wall clock',
    (by) => {
      expect(compare([...base, ...shortLife(0), clockStepped(40, by)], { until: 90 })).toMatchObject({
        everMissed: [],
        unobservable: ['c1 CREATED clock_step'],
      });
      expect(everMissed([...base, ...shortLife(0)])).toEqual(['c1 CREATED']);
    },
  );

  test.each([3600, -3600, 5, -5])('a clock step of %i s leaves a bound that a list has given since', (by) => {
    const ended = { c1: 'exited' } as const;
    const steps = [
      opened(0.1),
      received(1, 'c1', 'STOPPED'),
      ...listedAlike(ended, 2, 4),
      clockStepped(6, by),
    ];
    expect(compare(steps, { until: 60 })).toMatchObject({
      unobservable: ['c1 CREATED before_baseline', 'c1 STARTED before_baseline'],
    });
  });

  test.each([3600, -3600, 5, -5])('a clock step of %i s changes nothing that lists prove', (by) => {
    const steps = [
      ...covered,
      clockStepped(6, by),
      ...announced(8, 's1', 'CREATED', 'STARTED'),
      listed(10, S1_RUNNING),
      clockStepped(12, -by),
      listed(15, S1_EXITED),
      clockStepped(18, by),
    ];
    expect(everMissed(steps)).toEqual(['s1 STOPPED']);
  });

  test('events that look replayed after a step back just after the subscription still count', () => {
    const steps = [
      listed(0, {}),
      opened(1),
      clockStepped(1.5, -3600),
      received(2, 's0', 'STARTED'),
      listed(3, {}),
      ...announced(6, 's1', 'CREATED', 'STARTED'),
      listed(10, S1_RUNNING),
      received(12, 's1', 'STOPPED'),
      listed(15, S1_EXITED),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      everMissed: [],
      counters: { expected: 3, matched: 3 },
    });
  });

  test('after a step back the times that the clock shows twice prove nothing', () => {
    // Created at 1 s by the old clock, long before the stream; 20 s back, the same reading is 21 s later.
    const steps = [
      listed(0, {}),
      opened(5),
      received(6, 's0', 'STARTED'),
      listed(7, {}),
      clockStepped(10, -20),
      received(40, 'c1', 'STOPPED', { times: times({ created: 1, started: 2, finished: 3 }) }),
      listed(45, {}),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a time is not placed where no tick has seen the clock step yet', () => {
    const steps = [...pod, received(4.5, 'c1', 'STARTED'), listed(10, C1_RUNNING), listed(15, C1_EXITED)];
    const exact = (offset: number) => times({ created: 4, started: 4.5, finished: 14 }, offset);
    const seen = [...steps, clockStepped(17.6, -3600), status(18, 'c1', exact(-3600))];
    const unseen = [...steps, clockStepped(17.6, -3600), status(17.7, 'c1', exact(-3600))];
    // By the clock as it was, it had ended an hour ago, before anything was watched.
    expect(everMissed([...covered, ...seen])).toEqual(['c1 STOPPED']);
    expect(everMissed([...covered, ...unseen])).toEqual(['c1 STOPPED']);
  });

  test('a clock that varies a little at each reading still bounds a short life', () => {
    const wobble = [1, 2, 3, 4, 5].map((i) => clockStepped(3 + i, i % 2 === 0 ? 0.003 : -0.003));
    expect(everMissed([...base, ...wobble, ...shortLife(-0.003)])).toEqual(['c1 CREATED']);
  });

  test('a clock set back by less than a step does not put a creation after the arming', () => {
    const own = times({ created: 1.8, started: 1.9, finished: 6 });
    const steps = [
      ...armed,
      clockStepped(2.1, -0.4),
      listed(3, {}),
      received(6, 'c1', 'STOPPED', { times: own }),
      listed(10, {}),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a clock set back little by little does not put a creation after the arming', () => {
    const own = times({ created: 1.8, started: 1.9, finished: 6 });
    const steps = [
      ...armed,
      clockStepped(2.1, -0.4),
      clockStepped(2.6, -0.4),
      listed(3, {}),
      received(6, 'c1', 'STOPPED', { times: own }),
      listed(10, {}),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('a clock set back does not bring an event back into the 15 minutes that are remembered', () => {
    const steps = [
      ...covered,
      received(9.9, 'c1', 'CREATED', { built: 9.9 }),
      received(9.92, 'c1', 'STARTED', { built: 9.92 }),
      clockStepped(9.95, -0.4),
      // Forgotten at 910.
      received(910.1, 'c1', 'STOPPED', { times: times({ created: 9.9, started: 9.92, finished: 910 }) }),
      ...listedAlike({}, 912, 917),
    ];
    expect(everMissed(steps, { until: 960 })).toEqual([]);
  });

  test('a clock set back does not put an end that lists show late after the arming', () => {
    const up = { s1: 'running', c1: 'running' } as const;
    const steps = [
      listed(0, up),
      opened(1),
      received(2, 's0', 'STARTED'),
      clockStepped(2.1, -0.4),
      listed(3, up),
      listed(10, C1_EXITED),
      status(13, 'c1', times({ created: -100, started: -90, finished: 1.8 })),
    ];
    expect(everMissed(steps)).toEqual([]);
  });
});

/** An event of a pod that appeared before the list at 5 s. */
function ofText(text: string): TimelineStep {
  const [id = '', type] = text.split(' ');
  return received(4, id, EVENT_TYPES.find((each) => each === type) ?? 255);
}
