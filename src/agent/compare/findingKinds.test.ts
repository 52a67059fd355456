/*
 * Findings about events that came, and about lists: when each kind is reported, and when it is not. Spurious events, short lives and duplicate
 * containers have files of their own.
 */
import { describe, expect, test } from 'vitest';
import {
  armed,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  CONTAINERD,
  CRIO,
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
  status,
  streamGap,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { findingsOf, proofsOf, running, summaries } from '../../../test/engine/timelinePods.ts';

test('a container whose events come in time and in order has no finding', () => {
  const steps = [
    ...running,
    listed(6, C1_RUNNING),
    received(12, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 12 }) }),
    listed(13, C1_EXITED),
    received(14, 'c1', 'DELETED'),
    received(15, 's1', 'STOPPED'),
    listed(16, S1_EXITED),
    received(17, 's1', 'DELETED'),
    listed(28, {}),
  ];
  expect(findingsOf(steps, 90)).toEqual([]);
});

describe('duplicate', () => {
  test('the same event type again for an id is a duplicate', () => {
    expect(findingsOf([...running, received(6, 'c1', 'STARTED')])).toEqual([
      'duplicate c1 STARTED same_type_again',
    ]);
  });

  test('a duplicate says when the first event of its type came', () => {
    expect(proofsOf('duplicate', [...running, received(6, 'c1', 'STARTED')])).toMatchObject([
      { received: 6_000_000, firstReceived: 5_000_000 },
    ]);
  });

  test('duplicate takes precedence over late: one event has one finding', () => {
    const again = received(20, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) });
    expect(findingsOf([...running, again])).toEqual(['duplicate c1 STARTED same_type_again']);
  });

  test('a replayed event is never a duplicate', () => {
    const steps = [...running, opened(20, 2), received(20.5, 'c1', 'STARTED', { session: 2, built: 5 })];
    expect(findingsOf(steps).filter((each) => each.startsWith('duplicate'))).toEqual([]);
  });
});

describe('late', () => {
  const slow = (at: number, built: number) => [
    ...running.slice(0, 3),
    received(at, 'c1', 'STARTED', { built, times: times({ created: 4.2, started: 5 }) }),
  ];

  test('a start that is received more than the limit after its true time is late', () => {
    const { findings } = compare([...covered, ...slow(6.5, 6.4)], { until: 20 });
    expect(findings).toMatchObject([
      {
        kind: 'late',
        eventType: 'STARTED',
        cause: 'built_late',
        occurred: 5_000_000,
        lateness: 1_500_000,
        delivery: 100_000,
      },
    ]);
  });

  test('a late event is classified as built late or delivered late', () => {
    expect(findingsOf(slow(6.5, 5.1))).toEqual(['late c1 STARTED delivered_late']);
  });

  test('an event within the limit is not late', () => {
    expect(findingsOf(slow(5.9, 5.8))).toEqual([]);
  });

  test('a delay as long as the limit is not late', () => {
    expect(findingsOf(slow(6, 5.9))).toEqual([]);
    expect(findingsOf(slow(6.1, 6))).toEqual(['late c1 STARTED built_late']);
  });

  test('an event is not late where the reader was silent so long that the delay may be its own', () => {
    const silent = (from: number, at: number) => [...readerStalled(from, 20), ...slow(at, at - 0.1)];
    expect(findingsOf(silent(5.1, 6.4))).toEqual([]);
    // It had taken everything when the start was late already.
    expect(findingsOf(silent(6.4, 7.8))).toEqual(['late c1 STARTED built_late']);
  });

  test('an event is not late in a stream that no list has covered yet', () => {
    const steps = [...armed, ...slow(6.5, 6.4)];
    expect(summaries(compare(steps, { until: 20 }))).toEqual([]);
  });

  test('an event is not late where its time was read after a step that no tick had seen', () => {
    const steps = [
      ...running.slice(0, 3),
      clockStepped(9.1, -5),
      received(9.2, 'c1', 'STARTED', { times: times({ created: 4.2, started: 9.15 }, -5) }),
    ];
    expect(findingsOf(steps)).toEqual([]);
  });

  test('an event is not late by a time from before a step, however long that was known', () => {
    const own = times({ created: 4.2, started: 5 });
    const known = [...running.slice(0, 3), status(5.5, 'c1', own)];
    const later = received(9, 'c1', 'STARTED', { times: own });
    const late = (steps: readonly TimelineStep[]) =>
      findingsOf(steps).filter((each) => each.startsWith('late'));
    expect(late([...known, later])).toHaveLength(1);
    expect(late([...known, clockStepped(7, 5), later])).toEqual([]);
  });

  test('an event after its missed is late, and the miss is resolved', () => {
    const steps = [...running.slice(0, 3), ...listedAlike(C1_RUNNING, 6, 11), received(50, 'c1', 'STARTED')];
    const outcome = compare([...covered, ...steps], { until: 60 });
    expect(summaries(outcome)).toEqual([
      'missed c1 STARTED unannounced_by_list',
      'late c1 STARTED after_missed',
    ]);
    expect(outcome.missed).toEqual([]);
  });

  test('an event is not late over a stretch with a stream gap', () => {
    expect(findingsOf([...slow(8, 7.9), streamGap(7)].sort((a, b) => a.at - b.at))).toEqual([]);
  });

  test('an event is not late across a step of the wall clock', () => {
    const steps = [
      ...running.slice(0, 3),
      clockStepped(5.5, -100),
      received(9, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) }),
    ];
    expect(findingsOf(steps).filter((each) => each.startsWith('late'))).toEqual([]);
  });

  test('lateness is never negative', () => {
    const steps = [
      ...running.slice(0, 3),
      received(5, 'c1', 'STARTED', { built: 5.05, times: times({ created: 4.2, started: 5.05 }) }),
    ];
    expect(findingsOf(steps)).toEqual([]);
  });

  test('lateness and delivery of other kinds are never negative', () => {
    const ahead = { built: 6.05, times: times({ created: 4.2, started: 6.05 }) };
    const steps = [...running.slice(0, 3), received(5, 'c1', 'STARTED'), received(6, 'c1', 'STARTED', ahead)];
    expect(compare([...covered, ...steps], { until: 20 }).findings).toMatchObject([
      { kind: 'duplicate', lateness: 0, delivery: 0 },
    ]);
  });
});

describe('out_of_order', () => {
  test('an event of a lower stage after one of a higher stage is out of order', () => {
    const steps = [...running.slice(0, 3), received(5, 'c1', 'STOPPED'), received(5.1, 'c1', 'STARTED')];
    expect(findingsOf(steps)).toEqual(['out_of_order c1 STARTED after_a_later_stage']);
  });

  test('out_of_order says after which event, and whether that is a habit of the runtime', () => {
    const early = [...running.slice(0, 3), received(5, 'c1', 'STOPPED'), received(6, 'c1', 'STARTED')];
    const after = { after: 'STOPPED', afterReceived: 5_000_000 };
    expect(proofsOf('out_of_order', early)).toMatchObject([{ ...after, habitOfRuntime: true }]);
    const profile = { ...CONTAINERD, stoppedMayComeFirst: false };
    expect(proofsOf('out_of_order', early, { profile })).toMatchObject([{ ...after, habitOfRuntime: false }]);
  });

  test('late takes precedence over out_of_order, and that over stale', () => {
    const late = { times: times({ created: 4.2, started: 5 }) };
    const [stopped, started] = [received(6.4, 'c1', 'STOPPED'), received(6.5, 'c1', 'STARTED', late)];
    expect(findingsOf([...running.slice(0, 3), stopped, started])).toEqual(['late c1 STARTED built_late']);
    const steps = [
      ...running.slice(0, 3),
      listed(6, C1_EXITED),
      received(14, 'c1', 'STOPPED'),
      received(14.1, 'c1', 'STARTED', { built: 5 }),
    ];
    expect(findingsOf(steps)).toContain('out_of_order c1 STARTED after_a_later_stage');
  });

  test('an event is not out of order because of another id', () => {
    expect(findingsOf([...running, received(6, 'c1', 'STOPPED'), received(6.1, 'c2', 'CREATED')])).toEqual(
      [],
    );
  });
});

describe('stale', () => {
  const lists = [listed(6, C1_RUNNING), listed(11, C1_EXITED)];

  test('an event built before, and received long after, a list that had shown its stage passed is stale', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(14, 'c1', 'STARTED', { built: 5 }),
      received(14.1, 'c1', 'STOPPED', { built: 10 }),
    ];
    expect(findingsOf(steps)).toEqual(['stale c1 STARTED after_the_list']);
    expect(proofsOf('stale', steps)).toMatchObject([{ list: { from: 11_010_000, to: 11_020_000 } }]);
  });

  test('an event received before overdueAfter has passed since the list is not stale', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(12, 'c1', 'STARTED', { built: 5 }),
      received(12.1, 'c1', 'STOPPED', { built: 10 }),
    ];
    expect(findingsOf(steps)).toEqual([]);
  });

  test('an event built after the list is not stale', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(14, 'c1', 'STARTED', { built: 13 }),
      received(14.1, 'c1', 'STOPPED', { built: 13.1 }),
    ];
    expect(findingsOf(steps)).toEqual([]);
    // Nor when more lists show the same.
    const more = [listed(16, C1_EXITED), received(20, 'c1', 'STARTED', { built: 13 })];
    expect(findingsOf([...running.slice(0, 3), ...lists, ...more], 25)).toEqual([]);
  });

  test('an event built while the list was made is not stale', () => {
    const slow = listed(10, C1_EXITED, { took: 1 });
    const stop = received(15, 'c1', 'STOPPED', { built: 10.5 });
    const started = (built: number) => [received(14.9, 'c1', 'STARTED', { built }), stop];
    expect(findingsOf([...running.slice(0, 3), slow, ...started(11.5)])).toEqual([]);
    expect(findingsOf([...running.slice(0, 3), slow, ...started(10.9)])).toEqual([
      'stale c1 STARTED after_the_list',
    ]);
  });

  test('overdueAfter counts from the end of the list for a stale event', () => {
    const slow = listed(10, C1_EXITED, { took: 1 });
    const started = (at: number) => [
      received(at, 'c1', 'STARTED', { built: 9 }),
      received(15, 'c1', 'STOPPED'),
    ];
    expect(findingsOf([...running.slice(0, 3), slow, ...started(13.9)])).toEqual([]);
    expect(findingsOf([...running.slice(0, 3), slow, ...started(14.1)])).toEqual([
      'stale c1 STARTED after_the_list',
    ]);
  });

  test('an event is not stale over a stretch with a stream gap', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      streamGap(12),
      received(14, 'c1', 'STARTED', { built: 5 }),
    ];
    expect(findingsOf(steps, 20).filter((each) => each.startsWith('stale'))).toEqual([]);
  });
});

describe('unannounced', () => {
  const failed = [
    ...running.slice(0, 3),
    listed(6, C1_CREATED),
    listed(11, C1_EXITED),
    status(11.5, 'c1', times({ created: 4.2, finished: 8 })),
  ];

  test('a failed start is unannounced once, and only after its event had time to come', () => {
    expect(findingsOf(failed, 40)).toEqual([]);
    expect(findingsOf(failed, 60)).toEqual(['unannounced c1 STOPPED failed_start']);
  });

  test('a failed start whose end was announced is not unannounced', () => {
    const announced = received(11.2, 'c1', 'STOPPED', { times: times({ created: 4.2, finished: 11 }) });
    expect(findingsOf([...failed, announced], 60)).toEqual([]);
  });

  test('a transition whose event the runtime never sends is unannounced', () => {
    const steps = [listed(5, S1_RUNNING), received(5.5, 's1', 'STARTED'), listed(10, S1_RUNNING)];
    const outcome = compare([...covered, ...steps], { until: 60, profile: CRIO });
    expect(summaries(outcome)).toEqual(['unannounced s1 CREATED never_sent']);
    expect(outcome.counters).toMatchObject({ expected: 1, matched: 1 });
  });

  test('nothing is unannounced by an unknown runtime', () => {
    const profile = { ...CONTAINERD, sandboxEvents: [], containerEvents: [] };
    const steps = [listed(5, S1_RUNNING), received(5.5, 's1', 'STARTED'), listed(10, S1_RUNNING)];
    expect(summaries(compare([...covered, ...steps], { until: 60, profile }))).toEqual([]);
  });

  test('nothing is unannounced over a stretch with a stream gap', () => {
    const steps = [listed(5, {}), streamGap(7), listed(10, S1_RUNNING), received(10.5, 's1', 'STARTED')];
    expect(summaries(compare([...covered, ...steps], { until: 60, profile: CRIO }))).toEqual([]);
  });

  test('an event that a runtime never sends is unannounced once, although a spurious event announced it', () => {
    const up = (at: number) => listed(at, S1_RUNNING);
    const steps = [
      up(5),
      received(5.5, 's1', 'STARTED'),
      // Both the list and the event are wrong.
      listed(10, {}),
      received(11, 's1', 'DELETED'),
      up(15),
      up(20),
      listed(25, {}),
    ];
    expect(summaries(compare([...covered, ...steps], { until: 90, profile: CRIO }))).toEqual([
      'unannounced s1 CREATED never_sent',
      'unannounced s1 DELETED never_sent',
      'unobservable s1 STOPPED listed_again',
      'spurious s1 DELETED lists_contradict',
      'unobservable s1 STOPPED may_have_been_removed',
    ]);
  });
});

test('a miss whose true time lies long before the lists noticed has the cause runtime_state_late', () => {
  const finished = (at: number) => [
    ...running,
    ...listedAlike(C1_RUNNING, 6, 11),
    listed(16, C1_EXITED),
    status(19, 'c1', times({ created: 4.2, started: 5, finished: at })),
  ];
  expect(findingsOf(finished(7), 60)).toEqual(['missed c1 STOPPED runtime_state_late']);
  // Not where they noticed before the event was overdue.
  expect(findingsOf(finished(10), 60)).toEqual(['missed c1 STOPPED unannounced_by_list']);
});

test('a regression says which lists showed it exited and running', () => {
  const steps = [
    ...running,
    listed(6, C1_RUNNING),
    ...listedAlike(C1_EXITED, 11, 16),
    listed(21, C1_RUNNING),
  ];
  expect(proofsOf('regression', steps)).toMatchObject([
    { listedExited: { from: 11_010_000 }, listedRunning: { from: 21_010_000 } },
  ]);
});

test('a second regression says which list showed it exited that time, not one that lacked it', () => {
  const up = (at: number) => listed(at, C1_RUNNING);
  const down = (at: number) => listed(at, C1_EXITED);
  const steps = [...running, up(6), listed(8, S1_RUNNING), down(11), up(16), down(21), down(26), up(31)];
  expect(proofsOf('regression', steps)).toMatchObject([
    { listedExited: { from: 11_010_000 }, listedRunning: { from: 16_010_000 } },
    { listedExited: { from: 21_010_000 }, listedRunning: { from: 31_010_000 } },
  ]);
});
