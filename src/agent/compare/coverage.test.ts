/*
 * Events from times when the stream was not covered, or may not have been, are not missed.
 */
import { describe, expect, test } from 'vitest';
import {
  armed,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  clockStepped,
  closed,
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
import { createdPod, everMissed, runningPod } from '../../../test/engine/timelinePods.ts';

/** The runtime restarts. */
const newSession = [closed(6), opened(8, 2), received(9, 's0', 'STARTED')];

describe('the beginning of a stream', () => {
  test('a stage that the first list of an agent shows is not due', () => {
    const outcome = compare([opened(0.1), received(0.2, 's0', 'CREATED'), listed(1, { c1: 'exited' })], {
      until: 60,
    });
    expect(outcome.counters.expected).toBe(0);
  });

  test('a stage that a list shows before any event came is not due to a stream that may not be registered yet', () => {
    expect(everMissed([listed(0, {}), opened(1), listed(5, S1_RUNNING)])).toEqual([]);
  });

  test('a stage reached between the opening and the first event of a stream is not due', () => {
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

  test('a stage that a replayed backlog lacks is not missed', () => {
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

  test('a stage reached before a new session is not due to it, even if it is proven only then', () => {
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

  test('a stage reached while there is no stream is unobservable', () => {
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

  test('a stage that a stream gap makes unobservable is found no earlier than the end of the gap', () => {
    // A tick every quarter of a second would come later.
    const { findings } = compare([...covered, listed(5, S1_RUNNING), streamGap(20.1)], { until: 20.2 });
    expect(findings.map(({ t }) => t)).toEqual([20_100_000, 20_100_000]);
  });

  test('a container that begins in covered time after a stream gap is judged again', () => {
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
