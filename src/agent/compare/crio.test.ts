/*
 * Timelines on CRI-O: what it announces, what it does not, and what of that may be held against it.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
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
  status,
  type TimelineOutcome,
  type TimelineSettings,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';

/** A pod that is up from 4 s on. */
const up: readonly TimelineStep[] = [received(4, 's1', 'STARTED'), listed(5, S1_RUNNING)];

const watch = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
  compare([...covered, ...steps], { until: 120, profile: CRIO, ...settings });
/** The findings on events and names as `<kind> <id> <type> <cause>`, in their order; without the blind spots of CRI-O. */
const findingsOf = ({ findings }: TimelineOutcome): string[] =>
  findings
    .filter(({ kind, cause }) => cause !== 'never_sent' && kind !== 'short_life')
    .map(({ kind, containerId, eventType, cause }) => `${kind} ${containerId} ${eventType} ${cause}`);

describe('a start that fails', () => {
  const created = received(6, 'c1', 'CREATED', { times: times({ created: 6 }) });
  const failedTimes = times({ created: 6, started: 6, finished: 6.8 });
  const ended = received(6.9, 'c1', 'STOPPED', { times: failedTimes });
  const gone = [listed(10, S1_RUNNING), listed(15, S1_RUNNING), listed(20, S1_RUNNING)];

  test('a failed start whose STOPPED came owes neither STARTED nor DELETED, although its end is later than its creation', () => {
    const outcome = watch([...up, created, ended, ...gone]);
    expect(findingsOf(outcome)).toEqual([]);
    expect(outcome.counters).toMatchObject({ expected: 3, matched: 3 });
  });

  test('a failed start that a list still shows owes neither STARTED nor DELETED', () => {
    const shown = listed(8, C1_EXITED);
    expect(findingsOf(watch([...up, created, ended, shown, ...gone]))).toEqual([]);
    expect(findingsOf(watch([...up, created, shown, status(8.5, 'c1', failedTimes), ...gone]))).toEqual([
      'unobservable c1 STOPPED start_failed',
    ]);
  });

  test('a STOPPED that no longer has the status of its removed container proves no run', () => {
    expect(findingsOf(watch([...up, created, received(6.9, 'c1', 'STOPPED'), ...gone]))).toEqual([]);
  });

  test('a STOPPED whose status shows a run proves that its STARTED was due', () => {
    const ran = times({ created: 6, started: 6.1, finished: 6.8 });
    const outcome = watch([
      ...up,
      created,
      received(6.9, 'c1', 'STOPPED', { times: ran }),
      listed(10, C1_EXITED),
    ]);
    expect(findingsOf(outcome)).toEqual(['missed c1 STARTED sequence']);
  });

  test('a failed start did not run beside another container of its name', () => {
    const beside = [
      received(6, 'c1a', 'CREATED', { times: times({ created: 6 }) }),
      received(6.1, 'c1a', 'STARTED', { times: times({ created: 6, started: 6.1 }) }),
      received(8, 'c1a', 'STOPPED', { times: times({ created: 6, started: 6.1, finished: 8 }) }),
      received(6.2, 'c1b', 'CREATED', { times: times({ created: 6.2 }) }),
      received(8.1, 'c1b', 'STOPPED', { times: times({ created: 6.2, started: 6.2, finished: 8 }) }),
      listed(10, { s1: 'running', c1a: 'exited' }),
    ];
    expect(findingsOf(watch([...up, ...beside]))).toEqual([]);
    expect(findingsOf(watch([...up, ...beside], { profile: CONTAINERD }))).toContain(
      'duplicate_container c1a null times_overlap',
    );
  });

  test('elsewhere a container that was started in the instant of its creation ran', () => {
    const outcome = watch([...up, received(4, 's1', 'CREATED'), created, ended, ...gone], {
      profile: CONTAINERD,
    });
    expect(outcome.everMissed).toEqual(['c1 STARTED', 'c1 DELETED']);
  });
});

describe('a sandbox that is removed', () => {
  test('a sandbox that was removed while it ran owes no STOPPED', () => {
    const removing = [...listedAlike(S1_EXITED, 10, 15), ...listedAlike({}, 20, 40)];
    const outcome = watch([...up, ...removing]);
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.unobservable).toEqual(['s1 STOPPED may_have_been_removed']);
    expect(watch([...up, ...removing], { profile: CONTAINERD }).everMissed).toContain('s1 STOPPED');
  });

  const shared = received(4, 's1', 'STARTED', {
    times: { ...times({ created: 3.9 }), trait: 'shared_pid' },
  });

  test('a sandbox whose containers share a PID namespace owes a STOPPED even if it was removed while it ran', () => {
    const removed = (...lists: readonly TimelineStep[]) =>
      watch([shared, listed(5, S1_RUNNING), ...lists]).everMissed;
    expect(removed(...listedAlike(S1_EXITED, 10, 15), ...listedAlike({}, 20, 40))).toEqual(['s1 STOPPED']);
    expect(removed(...listedAlike({}, 10, 40))).toEqual(['s1 STOPPED']);
    expect(removed(received(8, 's1', 'STOPPED'), ...listedAlike({}, 10, 40))).toEqual([]);
  });

  test('the sandbox status in an event of one of its containers counts too', () => {
    const other = {
      id: 's1',
      state: 'running',
      times: { ...times({ created: 3.9 }), trait: 'shared_pid' },
    } as const;
    const created = received(6, 'c1', 'CREATED', { others: [other] });
    expect(watch([...up, created, ...listedAlike({}, 10, 40)]).everMissed).toEqual(['s1 STOPPED']);
  });

  test('the namespaces in a status stay known when a later one does not name them', () => {
    const later = { id: 's1', state: 'running', times: times({ created: 3.9 }) } as const;
    const created = received(6, 'c1', 'CREATED', { others: [later] });
    expect(watch([shared, listed(5, S1_RUNNING), created, ...listedAlike({}, 10, 40)]).everMissed).toContain(
      's1 STOPPED',
    );
  });

  test('nobody knows what ended a sandbox that lists go on to show NOTREADY: a removal may wait, and fail', () => {
    const stays = [10, 15, 20, 40, 80].map((at) => listed(at, S1_EXITED));
    expect(findingsOf(watch([...up, ...stays]))).toEqual(['unobservable s1 STOPPED may_have_been_removed']);
    expect(findingsOf(watch([...up, received(9, 's1', 'STOPPED'), ...stays]))).toEqual([]);
  });
});

describe('a container that is gone without a DELETED', () => {
  const ran = [...up, ...announced(6, 'c1', 'CREATED', 'STARTED'), listed(7, C1_RUNNING)];
  const ended = [...ran, received(8, 'c1', 'STOPPED')];

  test('it may have been removed as part of its sandbox, however long that stays READY', () => {
    const gone = listedAlike(S1_RUNNING, 10, 15, 70, 100);
    expect(findingsOf(watch([...ended, ...gone]))).toEqual(['unobservable c1 DELETED may_have_been_removed']);
    expect(watch([...ended, ...gone], { profile: CONTAINERD }).everMissed).toContain('c1 DELETED');
  });

  test('it has a finding too where its sandbox is stopped at once', () => {
    const gone = [listed(10, S1_EXITED), received(10.5, 's1', 'STOPPED'), listed(15, {})];
    expect(findingsOf(watch([...ended, ...gone]))).toEqual(['unobservable c1 DELETED may_have_been_removed']);
  });

  test('nobody knows whether its end was sent either, where nothing says that it came', () => {
    expect(findingsOf(watch([...ran, ...listedAlike({}, 10, 15)]))).toEqual([
      'unobservable s1 STOPPED may_have_been_removed',
      'unobservable c1 DELETED may_have_been_removed',
      'unobservable c1 STOPPED end_not_shown',
    ]);
  });

  const created = received(6, 'c1', 'CREATED', { times: times({ created: 6 }) });
  const idle = [...up, created, listed(7, { s1: 'running', c1: 'created' })];

  test('one that nothing shows running owes none: CRI-O removes what failed to start', () => {
    const outcome = watch([...idle, ...listedAlike(S1_RUNNING, 10, 15, 60, 110)]);
    expect(findingsOf(outcome)).toEqual([]);
    expect(outcome.counters).toMatchObject({ expected: 2, matched: 2 });
    expect(outcome.decided).toBe(110e6);
  });

  test('its DELETED counts whether it comes before the list that lacks it or after', () => {
    for (const at of [9.9, 10.2]) {
      const { counters } = watch([
        ...idle,
        received(at, 'c1', 'DELETED'),
        listed(10, S1_RUNNING),
        listed(15, S1_RUNNING),
      ]);
      expect(counters).toMatchObject({ expected: 3, matched: 3, unobservable: 0 });
    }
  });

  const gone = ['unobservable c1 DELETED may_have_been_removed', 'unobservable c1 STOPPED end_not_shown'];

  test('one that a late event shows running has its findings', () => {
    const started = received(10.2, 'c1', 'STARTED', { times: times({ created: 6, started: 8 }) });
    const outcome = watch([...idle, listed(10, S1_RUNNING), started, ...listedAlike(S1_RUNNING, 15, 20)]);
    expect(findingsOf(outcome)).toEqual(['late c1 STARTED built_late', ...gone]);
  });

  test.each([15, 50])('one that lists lacked wrongly until %i s has them when it goes', (at) => {
    const started = received(at + 2, 'c1', 'STARTED', { times: times({ created: 6, started: at + 2 }) });
    const again = [...listedAlike(S1_RUNNING, 10, at - 1), listed(at, C1_RUNNING), started];
    const outcome = watch([...idle, ...again, ...listedAlike(S1_RUNNING, at + 5, at + 10)]);
    expect(findingsOf(outcome)).toEqual(expect.arrayContaining(gone));
  });
});

test('a sandbox that one list lacked and the next one shows up was not stopped', () => {
  const shared = received(4, 's1', 'STARTED', { times: { ...times({ created: 3.9 }), trait: 'shared_pid' } });
  for (const begun of [received(4, 's1', 'STARTED'), shared]) {
    const lacked = [begun, listed(5, S1_RUNNING), listed(10, {}), ...listedAlike(S1_RUNNING, 15, 20, 60)];
    expect(findingsOf(watch(lacked))).toEqual(['unobservable s1 STOPPED listed_again']);
    const stopped = watch([...lacked, received(69, 's1', 'STOPPED'), listed(70, S1_EXITED)]);
    expect(stopped.counters).toMatchObject({ expected: 3, matched: 2, unobservable: 1 });
  }
});

test('a sandbox that nothing shows up owes no STOPPED', () => {
  expect(findingsOf(watch([...listedAlike(S1_EXITED, 5, 10), ...listedAlike({}, 15, 20)]))).toEqual([]);
});

test('a stream is not silent because nobody announces what the removal of sandboxes ends', () => {
  const pods = (state: 'running' | 'exited') =>
    listed(
      state === 'running' ? 2 : 5,
      Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s${i}`, state])),
    );
  const removed = [opened(1), pods('running'), pods('exited'), ...listedAlike({}, 10, 15)];
  expect(compare(removed, { until: 90, profile: CRIO }).stream).toBe('Arming');
  expect(compare(removed, { until: 90, profile: CONTAINERD }).stream).toBe('Silent');
});

test('a container that a list lacks before its session ends is decided, and its DELETED of the next session changes nothing', () => {
  const lost = [
    ...up,
    ...announced(6, 'c1', 'CREATED', 'STARTED'),
    listed(7, C1_RUNNING),
    listed(11, {}),
    listed(12, {}),
    closed(13),
    opened(14, 2),
  ];
  const decided = ['s1 STOPPED stream_gap', 'c1 DELETED stream_gap', 'c1 STOPPED end_not_shown'].map(
    (each) => `unobservable ${each}`,
  );
  expect(findingsOf(watch(lost))).toEqual(decided);
  expect(findingsOf(watch([...lost, received(15, 'c1', 'DELETED'), listed(20, {})]))).toEqual(decided);
});

describe('events that CRI-O itself loses', () => {
  test('the CREATED of a container whose creation was retried after its deadline is missed', () => {
    const running = times({ created: 6, started: 6.5 });
    const outcome = watch([
      ...up,
      received(6.5, 'c1', 'STARTED', { times: running }),
      listed(10, C1_RUNNING),
    ]);
    expect(outcome.missed).toEqual(['c1 CREATED']);
  });

  test('the STARTED of a sandbox whose start was retried after its deadline is missed', () => {
    expect(watch([listed(5, S1_RUNNING)]).missed).toEqual(['s1 STARTED']);
  });
});

describe('the blind spots of CRI-O', () => {
  /** A pod that comes up and is stopped and removed, all announced that CRI-O announces. */
  const podRun = (n: number, at: number): TimelineStep[] => [
    received(at, `s${n}`, 'STARTED', { times: times({ created: at - 0.2 }) }),
    listed(at + 1, { [`s${n}`]: 'running' }),
    received(at + 2, `s${n}`, 'STOPPED'),
    listed(at + 3, { [`s${n}`]: 'exited' }),
    listed(at + 5, {}),
  ];
  const blindSpots = ({ findings }: TimelineOutcome) =>
    findings
      .filter(({ cause }) => cause === 'never_sent')
      .map(({ containerId, eventType }) => `${containerId} ${eventType}`);

  test('a sandbox event that CRI-O never announces is reported once, with the first pod that shows it', () => {
    const outcome = watch([...podRun(1, 4), ...podRun(2, 12), ...podRun(3, 20)]);
    expect(blindSpots(outcome)).toEqual(['s1 CREATED', 's1 DELETED']);
    expect(findingsOf(outcome)).toEqual([]);
    expect(outcome.counters).toMatchObject({ expected: 6, matched: 6 });
  });

  test('the blind spots of a runtime that replaces another are reported anew', () => {
    const outcome = watch([...podRun(1, 4), runtimeReplaced(11, CRIO), ...podRun(2, 12)]);
    expect(blindSpots(outcome)).toEqual(['s1 CREATED', 's1 DELETED', 's2 CREATED', 's2 DELETED']);
  });
});

test('a STOPPED before the STARTED of a container is out of order, and known to be a habit of CRI-O', () => {
  const at = times({ created: 6, started: 6.1, finished: 6.2 });
  const outcome = watch([
    ...up,
    received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }),
    received(6.3, 'c1', 'STOPPED', { times: at }),
    received(6.4, 'c1', 'STARTED', { times: at }),
    listed(10, C1_EXITED),
  ]);
  expect(findingsOf(outcome)).toEqual(['out_of_order c1 STARTED after_a_later_stage']);
  const [outOfOrder] = outcome.findings.filter(({ kind }) => kind === 'out_of_order');
  expect(outOfOrder?.proof['habitOfRuntime']).toBe(true);
});

test('a STOPPED that CRI-O builds late in a burst is late, and was built late', () => {
  const at = times({ created: 6, started: 6.1, finished: 6.2 });
  const outcome = watch([
    ...up,
    received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }),
    received(6.1, 'c1', 'STARTED', { times: times({ created: 6, started: 6.1 }) }),
    received(8.6, 'c1', 'STOPPED', { times: at, built: 8.55 }),
    listed(10, C1_EXITED),
  ]);
  expect(findingsOf(outcome)).toEqual(['late c1 STOPPED built_late']);
});
