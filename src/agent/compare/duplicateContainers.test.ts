/*
 * Two running containers of one name, and two ready sandboxes of one pod.
 */
import { describe, expect, test } from 'vitest';
import {
  C1_EXITED,
  C1_RUNNING,
  clockStepped,
  compare,
  covered,
  identityOf,
  listed,
  listedAlike,
  received,
  status,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { findingsOf, proofsOf, running } from '../../../test/engine/timelinePods.ts';

describe('duplicate_container', () => {
  /** c1 and c1b are containers of one pod and one name. */
  const both = (at: number) => listed(at, { s1: 'running', c1: 'running', c1b: 'running' });
  const duplicates = (steps: readonly TimelineStep[]) =>
    findingsOf(steps, 25).filter((each) => each.startsWith('duplicate_container'));

  test('two containers of one name that two lists in a row show running are duplicates, reported once', () => {
    expect(identityOf('c1b')).toMatchObject({
      podUid: identityOf('c1').podUid,
      container: identityOf('c1').container,
    });
    expect(duplicates([both(10), both(15), both(20)])).toEqual([
      'duplicate_container c1 both_listed_running',
    ]);
  });

  test('one list proves no duplicates: its items are read one after the other', () => {
    expect(duplicates([both(10), listed(15, { s1: 'running', c1b: 'running' })])).toEqual([]);
  });

  test('a container that ran after the other is no duplicate', () => {
    const steps = [...listedAlike({ s1: 'running', c1: 'exited', c1b: 'running' }, 10, 15)];
    expect(duplicates(steps)).toEqual([]);
  });

  const exits = (started: number) => [
    listed(10, { s1: 'running', c1: 'exited', c1b: 'exited' }),
    status(11, 'c1', times({ created: 4, started: 5, finished: 8 })),
    status(11.2, 'c1b', times({ created: 6, started, finished: 9 })),
    listed(15, { s1: 'running', c1: 'exited', c1b: 'exited' }),
  ];

  test('containers whose exact times overlap are duplicates, although no list saw both', () => {
    expect(duplicates(exits(7))).toEqual(['duplicate_container c1 times_overlap']);
  });

  test('a duplicate finding says when lists showed each running, and the exact times of both', () => {
    expect(proofsOf('duplicate_container', [both(10), both(15)])).toMatchObject([
      {
        other: 'c1b',
        listedRunning: [{ from: 10_010_000 }, { from: 15_010_000 }],
        listedRunningOfOther: [{ from: 10_010_000 }, { from: 15_010_000 }],
      },
    ]);
    expect(proofsOf('duplicate_container', exits(7))).toMatchObject([
      { exactTimes: { exitCode: 0 }, exactTimesOfOther: { exitCode: 0 }, listedRunning: [null, null] },
    ]);
  });

  /** c1 runs all the time; c1b comes and goes between two lists. */
  const beside = (started: number, finished: number) => [
    listed(10, C1_RUNNING),
    received(14, 'c1b', 'STOPPED', { times: times({ created: 11, started, finished }) }),
    listed(15, C1_RUNNING),
  ];

  test('a container that ran while two lists show another running is its duplicate', () => {
    expect(duplicates(beside(12, 13.9))).toEqual(['duplicate_container c1 times_overlap']);
    expect(duplicates(beside(13.5, 13.9))).toEqual([]);
  });

  test('a duplicate finding says when both ran', () => {
    expect(proofsOf('duplicate_container', beside(12, 13.9))).toMatchObject([
      { together: { from: 12_000_000, to: 13_900_000 } },
    ]);
  });

  const onlySecond = (at: number) => listed(at, { s1: 'running', c1: 'exited', c1b: 'running' });
  /** c1 ends at 11, and c1b starts at 12.05; the clock is set back in between, and no tick has seen that yet. */
  const steppedBetween = [
    ...running,
    listed(6, C1_RUNNING),
    received(11.1, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 11 }) }),
    clockStepped(12.01, -5),
    received(12.06, 'c1b', 'STARTED', { times: times({ created: 12.02, started: 12.05 }, -5) }),
  ];

  test('a container that ran after the other is no duplicate where the clock was set back before any tick', () => {
    expect(duplicates([...steppedBetween, onlySecond(12.1), onlySecond(17)])).toEqual([]);
  });

  test('a duplicate that a clock step took back is reported by the next list, where it still holds', () => {
    const up = (at: number) => listed(at, C1_RUNNING);
    const [before, ended] = beside(12, 13.9);
    const steps = [...running, before, ended, clockStepped(15.01, -5), up(15.05)].filter(
      (step) => step !== undefined,
    );
    expect(duplicates(steps)).toEqual([]);
    expect(duplicates([...steps, up(20)])).toEqual(['duplicate_container c1 times_overlap']);
  });

  test('a container whose times lay ahead, by a clock set back before the agent started, is no duplicate', () => {
    const old = times({ created: 90, started: 100, finished: 200 });
    const now = (at: number) => listed(at, { s1: 'running', c1b: 'running' });
    const steps = [
      received(5, 'c1', 'STOPPED', { times: old }),
      received(105.5, 'c1b', 'STARTED', { times: times({ created: 104, started: 105 }) }),
      ...[110, 160, 210].map(now),
      received(250, 'c1', 'DELETED', { times: old }),
      now(260),
    ];
    const { findings } = compare([...covered, ...steps], { until: 280 });
    expect(findings.filter(({ kind }) => kind === 'duplicate_container')).toEqual([]);
  });

  test('a container that had stopped before the other started is no duplicate', () => {
    const [before, ended] = beside(12, 13.9);
    const steps = [before, ended, listed(15, C1_EXITED)].filter((step) => step !== undefined);
    expect(duplicates(steps)).toEqual([]);
  });

  test('a container that went back to running is no duplicate, as it may not have run all the time', () => {
    const steps = [listed(5, C1_RUNNING), listed(6, C1_EXITED), ...beside(12, 13.9)];
    expect(duplicates(steps)).toEqual([]);
  });

  test('exact times that overlap within the error of the wall clock prove no duplicates', () => {
    expect(duplicates(exits(7.4))).toHaveLength(1);
    expect(duplicates(exits(7.6))).toEqual([]);
  });

  test('two ready sandboxes of one pod are duplicates', () => {
    const ready = (at: number) => listed(at, { s1: 'running', s1b: 'running' });
    expect(duplicates([ready(10), ready(15)])).toEqual(['duplicate_container s1 both_listed_running']);
  });
});
