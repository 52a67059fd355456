/*
 * A wall clock that is set: what lists prove stays, and times that it makes doubtful prove nothing.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  armed,
  C1_EXITED,
  C1_RUNNING,
  clockStepped,
  compare,
  covered,
  listed,
  listedAlike,
  opened,
  received,
  S1_EXITED,
  S1_RUNNING,
  status,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { everMissed, pod } from '../../../test/engine/timelinePods.ts';

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
