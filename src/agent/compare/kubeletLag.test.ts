import { describe, expect, test } from 'vitest';
import {
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  clockStepped,
  compare,
  covered,
  ISULAD,
  listed,
  listedAlike,
  podAnswered,
  podEnded,
  podShown,
  podsBroken,
  podsWatched,
  podUnknown,
  received,
  status,
  streamGap,
  type TimelineSettings,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { pod, runningPod, summaries } from '../../../test/engine/timelinePods.ts';

/** The stream is covered, and the kubelet's pods are watched; it knows the pod u1. */
const watched: readonly TimelineStep[] = [...covered, ...podsWatched(1), podShown(3.5, 'u1', {})];
/** c1 starts unnoticed by the kubelet: the list at 5 s proves it. */
const started: readonly TimelineStep[] = [...watched, ...runningPod];
/** c1 runs, and the kubelet shows it; it stops, which the list at 10 s proves, and of which no event comes. */
const stopped: readonly TimelineStep[] = [
  ...started,
  podShown(4.6, 'u1', { c1: 'running' }),
  listed(10, C1_EXITED),
  ...listedAlike(C1_EXITED, 15, 20, 25, 30),
];
/** The kubelet is asked at 20.25 s, ten seconds after the list ended. */
const runs = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
  compare(steps, { until: 60, ...settings });
const lateOf = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
  summaries(runs(steps, settings)).filter((summary) => summary.startsWith('kubelet_late'));
const LATE_STOP = 'kubelet_late c1 STOPPED not_shown';
const LATE_START = 'kubelet_late c1 STARTED not_shown';
const stillRunning = podAnswered(20.3, 'u1', { c1: 'running' });

describe('late starts and stops', () => {
  test('a stop is late if the kubelet, asked after the deadline, shows the container running', () => {
    const { findings } = runs([...stopped, stillRunning]);
    const late = findings.find(({ kind }) => kind === 'kubelet_late');
    expect(late).toMatchObject({
      eventType: 'STOPPED',
      containerId: 'c1',
      cause: 'not_shown',
      window: { from: 5_010_000, to: 10_020_000 },
      lateness: 10_280_000,
      proof: {
        asked: 20_300_000,
        answered: 20_310_000,
        lateAfter: 10_000_000,
        watchSince: 1_000_000,
        podState: 'running',
        evidence: 'listed exited',
        lowerBoundKnown: true,
      },
    });
  });

  test('a start is late if the kubelet shows the container waiting', () => {
    const answer = podAnswered(15.3, 'u1', { c1: 'waiting' });
    expect(lateOf([...started, ...listedAlike(C1_RUNNING, 10, 15), answer])).toEqual([LATE_START]);
  });

  test('a start is late only once no other container of the pod has still to be created: its worker may be pulling an image', () => {
    const until = (second: number) => listedAlike(C1_RUNNING, 10, 15, second);
    const pulling = podAnswered(15.3, 'u1', { c1: 'waiting' }, { uncreated: ['sidecar'] });
    expect(lateOf([...started, ...until(20), pulling])).toEqual([]);
    const own = podAnswered(15.3, 'u1', { c1: 'waiting' }, { uncreated: ['app'] });
    expect(lateOf([...started, ...until(20), own])).toEqual([LATE_START]);
    const pulled = podAnswered(27, 'u1', { c1: 'waiting' });
    expect(lateOf([...started, ...until(25), pulling, pulled])).toEqual([LATE_START]);
  });

  test('a stop is late whatever the kubelet has still to create', () => {
    const pulling = podAnswered(20.3, 'u1', { c1: 'running' }, { uncreated: ['sidecar'] });
    expect(lateOf([...stopped, pulling])).toEqual([LATE_STOP]);
  });

  test('a start is late if the kubelet does not name a container that a later list still shows', () => {
    const steps = [...started, ...listedAlike(C1_RUNNING, 10, 15), podAnswered(15.3, 'u1', {})];
    expect(lateOf([...steps, listed(20, C1_RUNNING)])).toEqual([LATE_START]);
  });

  test('a start and a stop are late whose container two answers lack, the one from before the deadline of the stop, and a list still shows', () => {
    const answers = [podAnswered(15.3, 'u1', {}), podAnswered(15.6, 'u1', {})];
    const lists = [...listedAlike(C1_EXITED, 5.5, 10, 16), listed(20, { s1: 'running' })];
    expect(lateOf([...started, ...lists, ...answers])).toEqual([LATE_START, LATE_STOP]);
  });

  test('a start is late by an answer that lacks the container and a list from after it, whatever is asked before that list is compared', () => {
    const answers = [podAnswered(15.3, 'u1', {}), podAnswered(15.6, 'u1', {})];
    const lists = [listed(10, C1_RUNNING), listed(15.5, C1_RUNNING, { compared: 0.4 })];
    expect(lateOf([...started, ...lists, ...answers, listed(20, { s1: 'running' })])).toEqual([LATE_START]);
  });

  test('a start is not late by an answer that lacks the container and a list from before it: the container may have been removed between the two', () => {
    const lists = [listed(10, C1_RUNNING), listed(15.296, C1_RUNNING), listed(20, { s1: 'running' })];
    expect(lateOf([...started, ...lists, podAnswered(15.3, 'u1', {})])).toEqual([]);
  });

  test('a start is late by the last answer that does not show it, although a list confirms an earlier one after that', () => {
    const answers = [podAnswered(14.9, 'u1', {}), podAnswered(15.3, 'u1', { c1: 'waiting' })];
    const lists = [...listedAlike(C1_RUNNING, 10, 16), listed(20, { s1: 'running' })];
    expect(lateOf([...started, ...lists, ...answers])).toEqual([LATE_START]);
  });

  test('a start is late if the kubelet names only the container before it', () => {
    const before = [podShown(2.5, 'u1', { c1: 'terminated' }), ...listedAlike(C1_EXITED, 3.5, 5)];
    const both = { ...C1_EXITED, c1b: 'running' } as const;
    const answer = podAnswered(20.3, 'u1', { c1: 'terminated' });
    const steps = [...watched, ...before, ...listedAlike(both, 10, 15, 20, 25), answer];
    expect(lateOf(steps)).toEqual(['kubelet_late c1b STARTED not_shown']);
    expect(runs(steps).records.filter(({ type }) => type === 'finding_resolved')).toEqual([]);
  });

  test('a stop is late although the kubelet shows a container of another name that is newer', () => {
    const other = podShown(12, 'u1', { c1: 'running', c1b: 'running' }, { names: { c1b: 'other' } });
    expect(lateOf([...stopped, other, stillRunning])).toEqual([LATE_STOP]);
  });

  test('a list alone proves a stop to the kubelet, whether the event came or not', () => {
    const announced = received(9, 'c1', 'STOPPED');
    expect(lateOf([...stopped, announced, stillRunning])).toEqual([LATE_STOP]);
  });

  test('a stop is late without any subscription', () => {
    const steps = [
      listed(0, {}),
      ...podsWatched(1),
      podShown(3.5, 'u1', {}),
      listed(3, {}),
      listed(5, C1_RUNNING),
    ];
    const shown = podShown(4.6, 'u1', { c1: 'running' });
    expect(lateOf([...steps, shown, listed(10, C1_EXITED), stillRunning])).toEqual([LATE_STOP]);
  });

  test('a late stop is resolved when the status shows it', () => {
    const { records } = runs([...stopped, stillRunning, podShown(40, 'u1', { c1: 'terminated' })]);
    expect(records.filter(({ type }) => type === 'finding_resolved')).toEqual([
      { type: 'finding_resolved', t: 40_000_000, findingId: expect.any(String) },
    ]);
  });

  test('a late stop is resolved by an answer that shows it', () => {
    const answer = podAnswered(41, 'u1', { c1: 'terminated' });
    const { records, kubeletCounters } = runs([...stopped, stillRunning, answer]);
    expect(records.filter(({ type }) => type === 'finding_resolved')).toMatchObject([{ t: 41_010_000 }]);
    expect(kubeletCounters.notBrought).toBe(1);
  });

  test('a late stop is resolved when its pod has ended', () => {
    const { records } = runs([...stopped, stillRunning, podEnded(40, 'u1')]);
    expect(records.filter(({ type }) => type === 'finding_resolved')).toMatchObject([{ t: 40_000_000 }]);
  });

  test('a late stop is resolved, and says why, when its container went back to running', () => {
    const { records } = runs([...stopped, stillRunning, listed(40, C1_RUNNING)]);
    const resolved = { t: 40_250_000, cause: 'state_went_back' };
    expect(records.filter(({ type }) => type === 'finding_resolved')).toMatchObject([resolved]);
  });

  test('a late start of a container that the status never named is resolved when its pod has ended', () => {
    const steps = [...started, ...listedAlike(C1_RUNNING, 10, 15), podAnswered(15.3, 'u1', {})];
    const { records } = runs([...steps, listed(20, C1_RUNNING), podEnded(40, 'u1')]);
    expect(records.filter(({ type }) => type === 'finding_resolved')).toEqual([
      { type: 'finding_resolved', t: 40_000_000, findingId: expect.any(String) },
    ]);
  });

  test('a start is late from the first list that proves it, whatever later ones show', () => {
    const lists = [listed(10, C1_EXITED), listed(15, C1_EXITED)];
    const { findings } = runs([...started, ...lists, podAnswered(15.3, 'u1', { c1: 'waiting' })], {
      until: 25,
    });
    expect(findings.filter(({ kind }) => kind === 'kubelet_late')).toMatchObject([
      { eventType: 'STARTED', window: { to: 5_020_000 } },
    ]);
  });

  test('a late stop is resolved when the kubelet shows the container that replaced it', () => {
    const next = [listed(39, { ...C1_EXITED, c1b: 'running' }), podShown(40.1, 'u1', { c1b: 'running' })];
    const { records } = runs([...stopped, stillRunning, ...next]);
    expect(records.filter(({ type }) => type === 'finding_resolved')).toMatchObject([{ t: 40_250_000 }]);
  });

  test('a late stop is not resolved once its container is forgotten, a quarter of an hour after its last sign', () => {
    const gone = listed(31, { s1: 'running' });
    const { records } = runs([...stopped, stillRunning, gone, podEnded(1_000, 'u1')], { until: 1_001 });
    expect(records.filter(({ type }) => type === 'finding_resolved')).toEqual([]);
  });

  test('a late stop is reported once', () => {
    const again = podAnswered(40.6, 'u1', { c1: 'running' });
    expect(lateOf([...stopped, stillRunning, again], { until: 100 })).toEqual([LATE_STOP]);
  });

  test('at most 20 late stops are reported at once, and the others are counted', () => {
    const ids = Array.from({ length: 25 }, (_, i) => i + 1);
    const both = (state: 'running' | 'exited') =>
      Object.fromEntries(ids.flatMap((n) => [[`s${n}`, 'running'] as const, [`c${n}`, state] as const]));
    const shown = ids.map((n) => podShown(4, `u${n}`, { [`c${n}`]: 'running' as const }));
    const answers = ids.map((n) => podAnswered(20.3, `u${n}`, { [`c${n}`]: 'running' as const }));
    const lists = [listed(5, both('running')), listed(10, both('exited'))];
    const steps = [...covered, ...podsWatched(1), ...shown, ...lists, ...answers];
    expect(lateOf(steps)).toHaveLength(20);
    expect(runs(steps).kubeletCounters.lateSuppressed).toBe(5);
  });
});

describe('when the kubelet is asked', () => {
  test('the kubelet is asked once the deadline has passed and its status has not shown the stop', () => {
    expect(runs(stopped, { until: 25 }).podQueries).toEqual(['20.25 u1']);
  });

  test('the kubelet is not asked for what its status has shown', () => {
    expect(runs([...stopped, podShown(20, 'u1', { c1: 'terminated' })]).podQueries).toEqual([]);
  });

  test('the kubelet is asked again after a pause that doubles with each answer without a verdict, up to five minutes', () => {
    const failures = [20.3, 30.6, 51, 91.5, 172, 332.5].map((asked) => podAnswered(asked, 'u1', null));
    expect(runs([...stopped, ...failures], { until: 690 }).podQueries).toEqual([
      ...['20.25 u1', '30.5 u1', '50.75 u1', '91.25 u1', '171.75 u1', '332.25 u1', '632.75 u1'],
    ]);
  });

  test('an answer to a question from before the deadline does not put off the next question', () => {
    const early = podAnswered(19.9, 'u1', { c1: 'running' });
    expect(runs([...stopped, early], { until: 25 }).podQueries).toEqual(['20.25 u1']);
  });

  describe('questions for another container of the pod', () => {
    /** c1 starts unnoticed by the kubelet, and c1b only after that list. */
    const both = (state: 'created' | 'running') => ({ s1: 'running', c1: 'running', c1b: state }) as const;
    const ofC1: readonly TimelineStep[] = [
      ...[...watched, ...pod, received(4, 'c1b', 'CREATED'), received(4.5, 'c1', 'STARTED')],
      listed(5, both('created')),
      ...[15.3, 25.6].map((asked) => podAnswered(asked, 'u1', {})),
    ];
    const exact = times({ created: 4, started: 5.5 });
    /** An event of c1 shows that c1b has started, and none of c1b does: a miss, to be judged at 36 s. */
    const shownByC1 = received(6, 'c1', 'STARTED', {
      others: [{ id: 'c1b', state: 'running', times: exact }],
    });

    test('they do not put off the first one after the deadline, where they are from before the proof', () => {
      const proven = [received(6, 'c1b', 'STARTED', { times: exact }), listed(26, both('running'))];
      const { podQueries } = runs([...ofC1, ...proven], { until: 40 });
      expect(podQueries).toEqual(['15.25 u1', '25.5 u1', '36.25 u1']);
    });

    test('they do not put off the one before a miss', () => {
      const { podQueries } = runs([...ofC1, shownByC1], { until: 40 });
      expect(podQueries).toEqual(['15.25 u1', '25.5 u1', '31 u1']);
    });

    test('they do not put off the first one after the deadline, where they are from after a miss and before the proof', () => {
      const asked = [31.1, 71.3, 82.3].map((at) => podAnswered(at, 'u1', {}));
      const { podQueries } = runs([...ofC1, shownByC1, ...asked, listed(72, both('running'))], { until: 95 });
      expect(podQueries.slice(2)).toEqual(['31 u1', '71.25 u1', '82.25 u1', '92.5 u1']);
    });
  });

  test('the kubelet is asked about a stop for no longer than a quarter of an hour without a verdict', () => {
    expect(runs(stopped, { until: 1_100 }).podQueries.at(-1)).toBe('860.25 u1');
  });

  test('a question without an answer is asked again after a minute', () => {
    expect(runs(stopped, { until: 90 }).podQueries).toEqual(['20.25 u1', '80.25 u1']);
  });

  test('a pod is asked for once, however many of its containers are waited for', () => {
    const two = { s1: 'running', c1: 'exited', c1b: 'exited' } as const;
    const names = { c1: 'one', c1b: 'two' };
    const steps = [
      ...watched,
      listed(5, { s1: 'running', c1: 'running', c1b: 'running' }),
      podShown(4.6, 'u1', { c1: 'running', c1b: 'running' }, { names }),
      listed(10, two),
    ];
    expect(runs(steps, { until: 25 }).podQueries).toEqual(['20.25 u1']);
  });

  test('the kubelet is asked before a miss is judged, where it was not asked before', () => {
    const { podQueries } = runs(stopped, { until: 39, missedAfter: 8 });
    expect(podQueries[0]).toBe('13.25 u1');
  });

  test('the kubelet is asked before a miss is judged, where it was asked only before the proof of the miss', () => {
    const early = podAnswered(10.015, 'u1', { c1: 'running' });
    const { podQueries } = runs([...stopped, early], { until: 39, missedAfter: 8 });
    expect(podQueries[0]).toBe('13.25 u1');
  });
});

describe('late changes that accuse nobody', () => {
  /** Steps that come on top of a stop that would be late, or in place of what makes it so. */
  const harmless: Readonly<Record<string, readonly TimelineStep[]>> = {
    'that no message shows a stop proves nothing without an answer': stopped,
    'an answer to a question from before the deadline proves nothing': [
      ...stopped,
      podAnswered(19.9, 'u1', { c1: 'running' }),
    ],
    'an answer that shows the stop accuses nobody': [
      ...stopped,
      podAnswered(20.3, 'u1', { c1: 'terminated' }),
    ],
    'a message that shows the stop counts, although an older one comes after it': [
      ...stopped,
      podShown(11, 'u1', { c1: 'terminated' }),
      podShown(12, 'u1', { c1: 'running' }),
      stillRunning,
    ],
    'a stop that the status shows until the verdict is not late': [
      ...stopped,
      stillRunning,
      podShown(21, 'u1', { c1: 'terminated' }),
    ],
    'nothing is late of a pod that is terminating': [
      ...stopped,
      podShown(12, 'u1', { c1: 'running' }, { terminating: true }),
      stillRunning,
    ],
    'nothing is late of a pod that the answer shows terminating': [
      ...stopped,
      podAnswered(20.3, 'u1', { c1: 'running' }, { terminating: true }),
    ],
    'nothing is late of a pod that has ended': [...stopped, podEnded(12, 'u1'), stillRunning],
    'nothing is late that may have happened before its pod ended, although the pod came back at once': [
      ...started,
      podEnded(5.1, 'u1'),
      podShown(5.15, 'u1', {}),
      ...listedAlike(C1_RUNNING, 10, 15, 20),
      podAnswered(15.3, 'u1', {}),
    ],
    'nothing is late that may have happened before its pod ended, although its end overtook all else of it': [
      ...[...covered, ...podsWatched(1), ...runningPod],
      podEnded(4.8, 'u1'),
      podShown(4.85, 'u1', {}),
      ...listedAlike(C1_RUNNING, 10, 15, 20),
      podAnswered(15.3, 'u1', {}),
    ],
    'nothing is late of a pod that the kubelet does not know': [
      ...covered,
      ...podsWatched(1),
      ...runningPod,
      listed(10, C1_EXITED),
      stillRunning,
    ],
    'nothing is late of a pod that was first reported after the stop was proven': [
      ...covered,
      ...podsWatched(1),
      ...runningPod,
      listed(10, C1_EXITED),
      podShown(11, 'u1', { c1: 'running' }),
      stillRunning,
    ],
    'nothing is late of a pod of which the last message could not be read': [
      ...stopped,
      podUnknown(12, 'u1'),
      stillRunning,
    ],
    'nothing is late where the watch began after the last list that showed the container running': [
      ...covered,
      ...runningPod,
      ...podsWatched(6),
      podShown(6, 'u1', { c1: 'running' }),
      listed(10, C1_EXITED),
      stillRunning,
    ],
    'nothing is late where the watch broke before the answer': [
      ...stopped,
      podsBroken(12),
      ...podsWatched(13),
      podShown(13, 'u1', { c1: 'running' }),
      stillRunning,
    ],
    'nothing is late where the watch breaks within two seconds after the answer': [
      ...stopped,
      stillRunning,
      podsBroken(22),
    ],
    'a pod that the kubelet does not find accuses nobody': [...stopped, podAnswered(20.3, 'u1', null)],
    'what has been replaced by a container that the kubelet names is known to have stopped': [
      ...stopped,
      podShown(12, 'u1', { c1b: 'running' }),
      podAnswered(20.3, 'u1', { c1b: 'running' }),
    ],
    'a container that the answer lacks accuses nobody before a list shows it': [
      ...stopped,
      podAnswered(30.1, 'u1', {}),
    ],
    'nothing is late of a container whose name the status gives to one that no list has shown': [
      ...watched,
      podShown(2.5, 'u1', { unlisted: 'terminated' }),
      ...runningPod,
      ...listedAlike(C1_RUNNING, 10, 15, 20),
      podAnswered(15.3, 'u1', { unlisted: 'terminated' }),
    ],
    'nothing is late of a container that lists lack': [
      ...stopped.filter(({ at }) => at < 11),
      ...listedAlike({ s1: 'running' }, 15, 20, 25),
      stillRunning,
    ],
    'nothing is late of a container whose state the runtime does not know': [
      ...stopped.filter(({ at }) => at < 11),
      ...listedAlike({ s1: 'running', c1: 'unknown' }, 15, 20, 25),
      stillRunning,
    ],
    'an answer about another pod accuses nobody': [
      ...stopped,
      podShown(4, 'u2', {}),
      podAnswered(20.3, 'u2', { c1: 'running' }),
    ],
    'nothing is late of a container whose name the status gave before to one that was created later': [
      ...watched,
      podShown(2.5, 'u1', { c1b: 'terminated' }),
      listed(3.5, { s1: 'running', c1b: 'exited' }),
      ...listedAlike({ ...C1_RUNNING, c1b: 'exited' }, 5, 10, 15, 20),
      podAnswered(15.3, 'u1', { c1: 'waiting', c1b: 'terminated' }),
    ],
    'nothing is late of which a step of the clock leaves no bound': [
      ...watched,
      received(5.1, 'c1', 'CREATED', { times: times({ created: 5 }) }),
      status(6, 'c1', times({ created: 5, started: 5.2 })),
      ...listedAlike(C1_RUNNING, 10, 15, 20),
      clockStepped(12, 3_600),
      podAnswered(16.3, 'u1', { c1: 'waiting' }),
    ],
    'a stop is not late if the kubelet no longer shows a container running that it has shown running': [
      ...stopped,
      podAnswered(20.3, 'u1', { c1: 'waiting' }),
    ],
    'a stop is not late if this process has just been stalled': [
      ...stopped,
      stillRunning,
      streamGap(22.2, 'agent_stalled'),
      podsBroken(23),
    ],
    'nothing is late of a container that went back to running': [
      ...stopped.filter(({ at }) => at < 11),
      ...listedAlike(C1_RUNNING, 15, 20, 25),
      stillRunning,
    ],
    'a stop that only an event announces is not late': [
      ...started,
      podShown(4.6, 'u1', { c1: 'running' }),
      received(9, 'c1', 'STOPPED'),
      podAnswered(20.3, 'u1', { c1: 'running' }),
    ],
    'nothing is late that the first list already shows': [
      listed(2, C1_EXITED),
      ...podsWatched(1),
      podShown(1.5, 'u1', { c1: 'running' }),
      ...listedAlike(C1_EXITED, 5, 10),
      podAnswered(20.3, 'u1', { c1: 'running' }),
    ],
  };
  test.each(Object.entries(harmless))('%s', (_name, steps) => {
    expect(lateOf(steps)).toEqual([]);
  });

  test('a start that failed is not late', () => {
    const failed = times({ created: 4.2, started: 4.2, finished: 4.2 });
    const steps = [...watched, listed(5, C1_EXITED), status(5.5, 'c1', failed), listed(10, C1_EXITED)];
    const answer = podAnswered(20.3, 'u1', { c1: 'waiting' });
    expect(lateOf([...steps, answer])).toEqual([]);
  });

  test('a container that was created and never started is not late', () => {
    const created = { s1: 'running', c1: 'created' } as const;
    const answer = podAnswered(20.3, 'u1', { c1: 'waiting' });
    expect(lateOf([...watched, ...listedAlike(created, 5, 10, 15, 20, 25), answer])).toEqual([]);
  });

  test('a run that only a status proves is late, with the times of the status', () => {
    const ran = times({ created: 4.2, started: 4.3, finished: 4.4 });
    const steps = [...watched, listed(5, C1_EXITED), status(5.5, 'c1', ran), listed(10, C1_EXITED)];
    const answer = podAnswered(20.3, 'u1', { c1: 'waiting' });
    expect(lateOf([...steps, answer])).toEqual([LATE_START, LATE_STOP]);
  });

  test('a run is late from the list that proves it, not from a status that is older than what an event shows of it', () => {
    const ran = times({ created: 4.2, started: 6.1, finished: 6.4 });
    const older = { ...status(6, 'c1', times({ created: 4.2 })), at: 7.6 };
    const steps = [
      ...[...watched, listed(5, C1_CREATED), listed(7, C1_EXITED)],
      ...[received(7.5, 'c1', 'STARTED', { times: ran }), older],
      ...[...listedAlike(C1_EXITED, 10, 15, 20), podAnswered(20.3, 'u1', { c1: 'waiting' })],
    ];
    const { findings } = runs(steps);
    expect(findings.filter(({ kind }) => kind === 'kubelet_late')).toMatchObject([
      { eventType: 'STARTED', window: { to: 10_020_000 } },
      { eventType: 'STOPPED', window: { to: 10_020_000 } },
    ]);
  });

  test('nothing is late whose exact time may be from before the watch', () => {
    const ran = times({ created: 4.8, started: 4.9, finished: 4.95 });
    const steps = [...covered, ...podsWatched(4.6), podShown(4.6, 'u1', {}), listed(4.7, {})];
    const shown = [listed(5, C1_EXITED), status(5.5, 'c1', ran), podAnswered(20.3, 'u1', { c1: 'waiting' })];
    expect(lateOf([...steps, ...shown])).toEqual([]);
  });
});

describe('how long it took', () => {
  const at = (s: number) => times({ created: 4.2, started: s });
  /** c1 starts at 5 s, by its own time. */
  const startedAt5 = [
    ...watched,
    received(4, 's1', 'CREATED'),
    received(4.2, 'c1', 'CREATED'),
    received(5, 'c1', 'STARTED', { times: at(5) }),
    listed(5.5, C1_RUNNING),
  ];
  const lagOf = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
    runs(steps, settings).kubeletLag;

  test('a start is counted by the time from its exact time to the message that shows it', () => {
    expect(lagOf([...startedAt5, podShown(5.003, 'u1', { c1: 'running' })])).toEqual({
      starts: [0, 0, 1],
      stops: [],
    });
  });

  test('a start is counted if the message that shows it comes before the event', () => {
    const steps = [...watched, podShown(5.003, 'u1', { c1: 'running' })];
    const event = received(5.2, 'c1', 'STARTED', { times: at(5) });
    expect(lagOf([...steps, received(4.2, 'c1', 'CREATED'), event])?.starts).toEqual([0, 0, 1]);
  });

  test('a start is counted if its exact time becomes known after a list has proven it and a message has shown it', () => {
    const event = received(6.2, 'c1', 'STARTED', { times: at(5) });
    const steps = [...watched, podShown(5.003, 'u1', { c1: 'running' }), listed(5.5, C1_RUNNING), event];
    expect(lagOf([...steps, received(4.2, 'c1', 'CREATED')])?.starts).toEqual([0, 0, 1]);
  });

  test('a stop that the status showed before it happened is not counted', () => {
    const ran = times({ created: 4.2, started: 4.9, finished: 20 });
    const steps = [podShown(5, 'u1', { c1: 'terminated' }), received(20.1, 'c1', 'STOPPED', { times: ran })];
    expect(lagOf([...watched, received(4.2, 'c1', 'CREATED'), ...steps])?.stops).toEqual([]);
  });

  test('a stop is counted apart from starts', () => {
    const stop = received(20, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 20 }) });
    const shown = [podShown(5.001, 'u1', { c1: 'running' }), podShown(20.5, 'u1', { c1: 'terminated' })];
    expect(lagOf([...startedAt5, stop, listed(21, C1_EXITED), ...shown])).toEqual({
      starts: [1],
      stops: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    });
  });

  test('the end of a pod shows the stops of all its containers', () => {
    const stop = received(20, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 20 }) });
    const shown = [podShown(5.001, 'u1', { c1: 'running' }), podEnded(20.5, 'u1')];
    expect(lagOf([...startedAt5, stop, ...shown])?.stops).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  });

  test('a lag of more than 65 seconds is in the last bucket', () => {
    const shown = podShown(75, 'u1', { c1: 'running' });
    const lists = listedAlike(C1_RUNNING, 20, 40, 60);
    expect(lagOf([...startedAt5, ...lists, shown], { until: 80 })?.starts).toHaveLength(18);
  });

  test('a start that the status has not shown is not counted', () => {
    expect(lagOf(startedAt5)).toBeNull();
  });

  const uncounted: Readonly<Record<string, readonly TimelineStep[]>> = {
    'a start without an exact time is not counted': [...started, podShown(5, 'u1', { c1: 'running' })],
    'a start of a pod that is terminating is not counted': [
      ...startedAt5,
      podShown(5.003, 'u1', { c1: 'running' }, { terminating: true }),
    ],
    'a start less than half a second after the watch began is not counted': [
      ...covered,
      ...podsWatched(4.6),
      podShown(4.6, 'u1', {}),
      received(4.2, 'c1', 'CREATED'),
      received(5, 'c1', 'STARTED', { times: at(5) }),
      podShown(5.003, 'u1', { c1: 'running' }),
      listed(5.5, C1_RUNNING),
    ],
    'a start is not counted if the watch broke meanwhile': [
      ...startedAt5,
      podsBroken(6),
      ...podsWatched(7),
      podShown(7.1, 'u1', { c1: 'running' }),
    ],
    'a start is not counted if a message about its pod could not be read meanwhile': [
      ...startedAt5,
      podUnknown(5.003, 'u1'),
      podShown(9, 'u1', { c1: 'running' }),
    ],
    'a start is not counted if the message that shows it may have waited for this process': [
      ...startedAt5,
      streamGap(8, 'agent_stalled'),
      podShown(8.001, 'u1', { c1: 'running' }),
    ],
    'what only an answer shows is not counted': [
      ...startedAt5,
      podAnswered(15.6, 'u1', { c1: 'running' }),
      podShown(40, 'u1', { c1: 'running' }),
    ],
    'what an answer showed long before a message did is not counted': [
      ...watched,
      podAnswered(15.6, 'u1', { c1: 'running' }),
      podShown(40, 'u1', { c1: 'running' }),
      received(41, 'c1', 'STARTED', { times: at(5) }),
    ],
    'a time from before a step of the clock that no tick had seen is not counted': [
      ...watched,
      received(4.2, 'c1', 'CREATED'),
      clockStepped(4.9, 3_600),
      received(4.95, 'c1', 'STARTED', { times: at(4.9) }),
      podShown(4.96, 'u1', { c1: 'running' }),
    ],
  };
  test.each(Object.entries(uncounted))('%s', (_name, steps) => {
    expect(lagOf(steps)).toBeNull();
  });

  test('the end of a start that failed is not counted', () => {
    const failed = times({ created: 4.2, started: 4.2, finished: 4.2 });
    const stop = received(5, 'c1', 'STOPPED', { times: failed });
    expect(lagOf([...watched, stop, podShown(5.1, 'u1', { c1: 'terminated' })])).toBeNull();
  });

  test('a stop is not counted of a container that went back to running', () => {
    const stop = received(20, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 20 }) });
    const shown = [podShown(5.001, 'u1', { c1: 'running' }), podShown(25.1, 'u1', { c1: 'terminated' })];
    const lists = [listed(21, C1_EXITED), listed(25.05, C1_RUNNING)];
    expect(lagOf([...startedAt5, stop, ...lists, ...shown])).toEqual({ starts: [1], stops: [] });
  });

  test('an end that the runtime dates by when it noticed it is not counted', () => {
    const stop = received(20, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 20 }) });
    const shown = [podShown(5.001, 'u1', { c1: 'running' }), podShown(20.5, 'u1', { c1: 'terminated' })];
    expect(lagOf([...startedAt5, stop, ...shown], { profile: ISULAD })).toEqual({ starts: [1], stops: [] });
  });

  test('a stage that an answer showed and no message brought within five seconds is counted as not brought', () => {
    const answer = podAnswered(15.6, 'u1', { c1: 'running' });
    expect(runs([...startedAt5, answer]).kubeletCounters.notBrought).toBe(1);
    const brought = podShown(16, 'u1', { c1: 'running' });
    expect(runs([...startedAt5, answer, brought]).kubeletCounters.notBrought).toBe(0);
  });
});

describe('the kubelet lag of a miss', () => {
  const kubeletOf = (steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) =>
    runs(steps, settings).findings.find(({ kind }) => kind === 'missed')?.proof['kubelet'];

  test('a miss says between which bounds the kubelet took to show it', () => {
    const shown = podShown(21, 'u1', { c1: 'terminated' });
    expect(kubeletOf([...stopped, stillRunning, shown])).toEqual({
      is: 'shown',
      atLeast: 10_280_000,
      atMost: 15_990_000,
    });
  });

  test('a miss with an exact time says how long after that the kubelet showed it', () => {
    const exact = status(11, 'c1', times({ created: 4.2, started: 4.5, finished: 9 }));
    expect(kubeletOf([...stopped, exact, podShown(12, 'u1', { c1: 'terminated' })])).toEqual({
      is: 'shown',
      atLeast: 0,
      atMost: 3_000_000,
    });
  });

  test('a miss that the kubelet showed at once says so', () => {
    const shown = podShown(6, 'u1', { c1: 'terminated' });
    expect(kubeletOf([...stopped, shown])).toEqual({ is: 'shown', atLeast: 0, atMost: 990_000 });
  });

  test('a miss says until when the kubelet is known not to have shown it', () => {
    expect(kubeletOf([...stopped, stillRunning])).toEqual({ is: 'not_shown', until: 20_300_000 });
  });

  const unknown: Readonly<Record<string, readonly TimelineStep[]>> = {
    no_pods_api: [...covered, ...runningPod, listed(10, C1_EXITED)],
    before_watch: [
      ...[...covered, ...runningPod, ...podsWatched(6), podShown(6, 'u1', { c1: 'running' })],
      ...[listed(10, C1_EXITED), ...listedAlike(C1_EXITED, 15, 20, 25), stillRunning],
    ],
    watch_gap: [...stopped, podsBroken(12)],
    pod_unknown: [...covered, ...podsWatched(1), ...runningPod, listed(10, C1_EXITED)],
    pod_ended: [...watched, ...pod, listed(5, C1_RUNNING), podEnded(12, 'u1')],
    pod_terminating: [...stopped, podShown(12, 'u1', { c1: 'running' }, { terminating: true })],
    superseded: [...stopped, podShown(12, 'u1', { c1b: 'running' })],
    not_asked: stopped,
  };
  test.each(Object.entries(unknown))('a miss whose kubelet was not observed says why: %s', (why, steps) => {
    expect(kubeletOf(steps)).toEqual({ is: 'not_observed', why });
  });

  test('a miss of a start after the end of its pod says so: no status shows that start', () => {
    const ended = [...covered, ...podsWatched(1), podShown(1.5, 'u1', {}), podEnded(2, 'u1')];
    expect(kubeletOf([...ended, ...pod, listed(5, C1_RUNNING)])).toEqual({
      is: 'not_observed',
      why: 'pod_ended',
    });
  });

  test('an answer to a question from before the proof of a miss says nothing of it', () => {
    const early = podAnswered(10.015, 'u1', { c1: 'running' });
    expect(kubeletOf([...stopped, early])).toEqual({ is: 'not_observed', why: 'not_asked' });
  });

  test('the miss of a CREATED, or of a sandbox, says nothing of the kubelet, whose status does not show it', () => {
    const { findings } = runs([...watched, listed(5, C1_RUNNING), podShown(4.6, 'u1', { c1: 'running' })]);
    const proofs = findings
      .filter(({ kind }) => kind === 'missed')
      .map(({ containerId, eventType, proof }) => [`${containerId} ${eventType}`, 'kubelet' in proof]);
    expect(Object.fromEntries(proofs)).toEqual({
      ...{ 's1 CREATED': false, 's1 STARTED': false, 'c1 CREATED': false, 'c1 STARTED': true },
    });
  });
});
