/*
 * Timelines on iSulad: what it announces, what it does not, and what of that may be held against it.
 */
import { describe, expect, test } from 'vitest';
import {
  CONTAINERD,
  closed,
  compare,
  ISULAD,
  listed,
  opened,
  received,
  sandboxStatus,
  status,
  type TimelineOutcome,
  type TimelineSettings,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';

/** A stream that is covered from the list at 3 s on. */
const covered: readonly TimelineStep[] = [
  listed(0, {}),
  opened(1),
  received(2, 's0', 'CREATED', { built: 1.9 }),
  listed(3, {}),
];
/** A pod that is up from 4 s on. */
const up: readonly TimelineStep[] = [
  received(4, 's1', 'CREATED', { times: times({ created: 4 }) }),
  listed(5, { s1: 'running' }),
];
const created = received(6, 'c1', 'CREATED', { times: times({ created: 6 }) });
const started = received(6.1, 'c1', 'STARTED', { times: times({ created: 6, started: 6.1 }) });

const watch = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
  compare([...covered, ...steps], { until: 120, profile: ISULAD, ...settings });
/** The findings as `<kind> <id> <type> <cause>`, in their order; without the blind spots of iSulad. */
const findingsOf = ({ findings }: TimelineOutcome): string[] =>
  findings
    .filter(({ cause }) => cause !== 'never_sent')
    .map(({ kind, containerId, eventType, cause }) => `${kind} ${containerId} ${eventType} ${cause}`);

describe('the seven events of a pod with one container', () => {
  const life: readonly TimelineStep[] = [
    ...up,
    created,
    started,
    listed(7, { s1: 'running', c1: 'running' }),
    received(9, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.1, finished: 8.9 }) }),
    listed(10, { s1: 'running', c1: 'exited' }),
    received(11, 's1', 'STOPPED'),
    received(11.5, 'c1', 'DELETED'),
    received(12, 's1', 'DELETED', { nameless: true }),
    listed(13, {}),
  ];

  test('all seven events discharge what is due, and the STARTED of the sandbox is reported once as never sent', () => {
    const outcome = watch(life);
    expect(findingsOf(outcome)).toEqual([]);
    expect(outcome.findings.map(({ containerId, eventType }) => `${containerId} ${eventType}`)).toEqual([
      's1 STARTED',
    ]);
    expect(outcome.counters).toMatchObject({ expected: 7, matched: 7 });
  });

  test('a build that still sends the STARTED of a sandbox leads to no finding', () => {
    const announced = received(4.5, 's1', 'STARTED', { times: times({ created: 4 }) });
    expect(watch([...life, announced]).findings).toEqual([]);
  });

  test('any of the seven events that does not come is missed', () => {
    const without = (at: number) => watch(life.filter((step) => step.at !== at)).missed;
    expect([4, 6, 6.1, 9, 11, 11.5, 12].map(without)).toEqual([
      ['s1 CREATED'],
      ['c1 CREATED'],
      ['c1 STARTED'],
      ['c1 STOPPED'],
      ['s1 STOPPED'],
      ['c1 DELETED'],
      ['s1 DELETED'],
    ]);
  });
});

describe('a sandbox that is listed before it starts', () => {
  const starting: readonly TimelineStep[] = [
    received(4, 's1', 'CREATED', { times: times({ created: 4 }) }),
    listed(5, { s1: 'exited' }),
    listed(10, { s1: 'running' }),
  ];

  test('NOTREADY and then READY is a start, no regression', () => {
    expect(findingsOf(watch([...starting, listed(15, { s1: 'running' })]))).toEqual([]);
    expect(findingsOf(watch(starting, { profile: CONTAINERD }))).toContain(
      'regression s1 null state_went_back',
    );
  });

  test('a list that was read before the start is no end, although an event that came meanwhile shows the sandbox up', () => {
    const isUp = [{ id: 's1', state: 'running' as const, times: times({ created: 4 }) }];
    const slow = [
      listed(5, { s1: 'exited' }, { took: 0.5, compared: 2 }),
      received(7, 'c1', 'CREATED', { times: times({ created: 6.9 }), others: isUp }),
    ];
    const after = listed(10, { s1: 'running', c1: 'created' });
    expect(findingsOf(watch([...starting.slice(0, 1), ...slow, after]))).toEqual([]);
  });

  test('a list that was read before the start is no end, although its STOPPED came meanwhile', () => {
    const slow = [
      listed(5, { s1: 'exited' }, { took: 0.5, compared: 2 }),
      received(7, 's1', 'STOPPED', { times: times({ created: 4 }) }),
    ];
    const wrong = listed(10, { s1: 'running' });
    expect(findingsOf(watch([...starting.slice(0, 1), ...slow, wrong]))).not.toContainEqual(
      expect.stringContaining('regression'),
    );
  });

  test('the removal of a sandbox that never was READY lies after the last list that showed it', () => {
    const failed = [...starting.slice(0, 2), listed(10, { s1: 'exited' }), listed(15, {})];
    const removal = watch(failed).records.find(
      (record) => record.type === 'relist_change' && record.newState === 'non-existent',
    );
    expect(removal).toMatchObject({ window: { from: 10_000_000 } });
  });

  test('its CREATED is due once a list shows it READY, and is not stale when it comes after the list that showed it NOTREADY', () => {
    expect(watch(starting.slice(1)).missed).toEqual(['s1 CREATED']);
    const slow = received(8, 's1', 'CREATED', { built: 4.5 });
    expect(findingsOf(watch([...starting.slice(1), slow]))).toEqual([]);
  });

  test('a sandbox that was up, then NOTREADY and READY again, went back', () => {
    const back = [listed(15, { s1: 'exited' }), received(16, 's1', 'STOPPED'), listed(20, { s1: 'running' })];
    expect(findingsOf(watch([...starting, ...back]))).toEqual(['regression s1 null state_went_back']);
  });

  test('a sandbox whose start failed owes nothing after its CREATED, however long it stays NOTREADY', () => {
    const stays = [10, 15, 20].map((at) => listed(at, { s1: 'exited' }));
    const failed = [...starting.slice(0, 2), ...stays, sandboxStatus(21, 's1', 'exited', 4), listed(40, {})];
    expect(watch(failed).everMissed).toEqual([]);
    expect(findingsOf(watch([...failed, received(39, 's1', 'DELETED', { nameless: true })]))).toEqual([]);
  });

  test('the kubelet sees a sandbox that is listed before it starts as exited, and so does the record of the change', () => {
    const changes = watch(starting).records.filter((record) => record.type === 'relist_change');
    expect(changes.map(({ oldState, newState }) => `${oldState} ${newState}`)).toEqual([
      'non-existent exited',
      'exited running',
    ]);
  });
});

describe('a start that fails', () => {
  const failedTimes = times({ created: 6, finished: 6.8 });
  const shown = [8, 13, 18].map((at) => listed(at, { s1: 'running', c1: 'exited' }));
  const failed: readonly TimelineStep[] = [...up, created, ...shown, status(8.5, 'c1', failedTimes)];

  test('a failed start is a blind spot: neither its start nor its end is announced, and neither is missed', () => {
    expect(findingsOf(watch(failed))).toEqual(['unannounced c1 STOPPED failed_start']);
  });

  test('the removal of a container that never started is announced, also where it goes with its sandbox', () => {
    const gone = [received(20, 's1', 'STOPPED'), received(21, 's1', 'DELETED'), listed(23, {})];
    expect(watch([...failed, ...gone]).missed).toEqual(['c1 DELETED']);
    const announced = received(20.5, 'c1', 'DELETED');
    expect(watch([...failed, ...gone, announced]).everMissed).toEqual([]);
    const never = [listed(8, { s1: 'running', c1: 'created' }), ...gone];
    expect(watch([...up, created, ...never]).missed).toEqual(['c1 DELETED']);
  });
});

test('a sandbox that is removed while it runs owes its STOPPED', () => {
  const removed = [
    listed(10, { s1: 'exited' }),
    received(12, 's1', 'DELETED', { nameless: true }),
    listed(15, {}),
  ];
  expect(watch([...up, ...removed]).missed).toEqual(['s1 STOPPED']);
});

test('the end of a sandbox that was created in the session is missed, although the last list before it is older than the session', () => {
  const between = [
    listed(0, {}),
    opened(1),
    received(2, 's0', 'CREATED', { built: 1.9 }),
    received(4, 's1', 'CREATED', { times: times({ created: 4 }) }),
    listed(10, { s1: 'running' }),
    listed(20, { s1: 'exited' }),
  ];
  expect(compare(between, { until: 120, profile: ISULAD }).missed).toContain('s1 STOPPED');
});

describe('a finished_at that is only when iSulad noticed the exit', () => {
  const noticed = times({ created: 6, started: 6.1, finished: 10 });
  const running = [...up, created, started, listed(7, { s1: 'running', c1: 'running' })];
  const exited = (at: number) => listed(at, { s1: 'running', c1: 'exited' });

  test('a STOPPED that comes long after the exit was noticed is late', () => {
    const late = received(11.5, 'c1', 'STOPPED', { times: noticed, built: 11.4 });
    expect(findingsOf(watch([...running, late, exited(12)]))).toEqual(['late c1 STOPPED built_late']);
  });

  test('a STOPPED whose own status still says RUNNING is neither late nor spurious, and proves a run', () => {
    const stale = received(10.1, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.1 }) });
    expect(findingsOf(watch([...running, stale, exited(12), exited(17)]))).toEqual([]);
    const withoutStart = [...up, created, stale, exited(12)];
    expect(watch(withoutStart).missed).toEqual(['c1 STARTED']);
  });

  test('a run is at most as long as its times say, and may have been shorter', () => {
    const end = received(10.1, 'c1', 'STOPPED', { times: noticed });
    const steps = [...up, created, started, end, exited(12)];
    const proofOf = (profile = ISULAD) =>
      watch(steps, { profile }).findings.find(({ kind }) => kind === 'short_life')?.proof;
    expect(proofOf()).toMatchObject({ lifeMinMs: 0, lifeMaxMs: 3900 });
    expect(proofOf(CONTAINERD)).toMatchObject({ lifeMinMs: 3900, lifeMaxMs: 3900 });
  });

  test('a whole life may have been shorter than its times say', () => {
    const life = [
      created,
      started,
      received(10.1, 'c1', 'STOPPED', { times: noticed }),
      received(10.2, 'c1', 'DELETED'),
      listed(11, { s1: 'running' }),
    ];
    const short = watch([...up, ...life]).findings.find(({ kind }) => kind === 'short_life');
    expect(short).toMatchObject({ cause: 'life', proof: { lifeMinMs: 0 } });
  });

  test('times that overlap only because the exit was noticed late prove no duplicate', () => {
    const beside = [
      received(6, 'c1a', 'CREATED', { times: times({ created: 6 }) }),
      received(6.1, 'c1a', 'STARTED', { times: times({ created: 6, started: 6.1 }) }),
      received(8.2, 'c1b', 'CREATED', { times: times({ created: 8.2 }) }),
      received(8.3, 'c1b', 'STARTED', { times: times({ created: 8.2, started: 8.3 }) }),
      received(10, 'c1a', 'STOPPED', { times: times({ created: 6, started: 6.1, finished: 9.9 }) }),
      listed(11, { s1: 'running', c1a: 'exited', c1b: 'running' }),
    ];
    const kinds = (profile = ISULAD) =>
      watch([...up, ...beside], { profile }).findings.map(({ kind }) => kind);
    expect(kinds()).not.toContain('duplicate_container');
    expect(kinds(CONTAINERD)).toContain('duplicate_container');
  });

  test('a container that ended while iSulad was down is not missed, although its finished_at lies in the new session', () => {
    const restarted = [
      closed(20),
      opened(25, 2),
      received(26, 's2', 'CREATED'),
      listed(27, { s1: 'running', c1: 'running', s2: 'running' }),
      listed(30, { s1: 'exited', c1: 'exited', s2: 'running' }),
      status(30.5, 'c1', times({ created: 6, started: 6.1, finished: 28 })),
    ];
    const outcome = watch([...running, ...restarted]);
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.unobservable).toContain('c1 STOPPED may_have_ended_before');
    expect(watch([...running, ...restarted], { profile: CONTAINERD }).everMissed).toContain('c1 STOPPED');
  });
});
