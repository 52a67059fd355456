/*
 * Lives between two lists.
 */
import { describe, expect, test } from 'vitest';
import {
  C1_EXITED,
  C1_RUNNING,
  clockStepped,
  compare,
  covered,
  listed,
  received,
  S1_RUNNING,
  streamGap,
  type TimelineOutcome,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { running } from '../../../test/engine/timelinePods.ts';

describe('short_life', () => {
  const short = ({ findings }: TimelineOutcome) => findings.filter(({ kind }) => kind === 'short_life');
  const shortLived = [
    listed(5, S1_RUNNING),
    received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }),
    received(6.2, 'c1', 'STARTED', { times: times({ created: 6, started: 6.2 }) }),
    received(6.4, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.2, finished: 6.4 }) }),
    received(6.5, 'c1', 'DELETED'),
  ];
  const sandbox = [received(4, 's1', 'CREATED'), received(4.1, 's1', 'STARTED')];

  test('a container that lived between two lists is a short life, with its duration and both lists', () => {
    const steps = [...sandbox, ...shortLived, listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      {
        cause: 'life',
        containerId: 'c1',
        proof: { lifeMinMs: 400, lifeMaxMs: 5010, listBefore: 5_020_000, listAfter: 10_010_000 },
      },
    ]);
  });

  test('a container that lived after a list which was compared later is a short life', () => {
    const [, ...events] = shortLived;
    const older = listed(5.5, S1_RUNNING, { compared: 2 });
    const steps = [...sandbox, listed(5, S1_RUNNING), ...events, older, listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'life', containerId: 'c1', proof: { listBefore: 5_520_000, listAfter: 10_010_000 } },
    ]);
  });

  test('a run that no list saw is a short life', () => {
    const steps = [...sandbox, ...shortLived.slice(0, 4), listed(10, C1_EXITED), listed(15, C1_EXITED)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'start', proof: { lifeMinMs: 200, lifeMaxMs: 200 } },
    ]);
  });

  test('an end that no list saw is a short life', () => {
    const steps = [
      ...running,
      listed(6, C1_RUNNING),
      received(7, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 7 }) }),
      received(7.3, 'c1', 'DELETED'),
      listed(11, S1_RUNNING),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      // Only the lists show when it was removed: at the latest when the second one was made.
      { cause: 'exit', proof: { lifeMinMs: 0, lifeMaxMs: 4020 } },
    ]);
  });

  test('a short life is not reported across a failed list', () => {
    const failing: TimelineStep = { at: 8, act: ({ comparison }) => comparison.listFailed() };
    const steps = [...sandbox, ...shortLived, failing, listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a short life is not reported across a list that could not be read whole', () => {
    const steps = [
      ...sandbox,
      ...shortLived,
      listed(8, S1_RUNNING, { partial: true }),
      listed(10, S1_RUNNING),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a container that a list saw before did not run unseen, even if a list lacked it since', () => {
    const steps = [...running, listed(6, C1_RUNNING), listed(11, S1_RUNNING), listed(16, C1_EXITED)];
    const summaries = short(compare([...covered, ...steps], { until: 20 }));
    expect(summaries.map(({ cause }) => cause)).toEqual(['exit']);
  });

  test('a short life is reported once although an event came again while the list was made', () => {
    const slow = listed(10, S1_RUNNING, { took: 1 });
    const steps = [...sandbox, ...shortLived, slow, received(11.5, 'c1', 'DELETED')];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toHaveLength(1);
  });

  test('a container that may have ended after the second list began is no short life', () => {
    const slow = listed(10, S1_RUNNING, { took: 1 });
    const ends = (at: number) => [...shortLived.slice(0, 4), received(at, 'c1', 'DELETED'), slow];
    expect(short(compare([...covered, ...sandbox, ...ends(10.9)], { until: 20 }))).toHaveLength(1);
    expect(short(compare([...covered, ...sandbox, ...ends(11.5)], { until: 20 }))).toEqual([]);
  });

  test('a failed start that other statuses show is no short life', () => {
    const failed = times({ created: 6, finished: 6.4 });
    const steps = [
      ...sandbox,
      listed(5, S1_RUNNING),
      received(6, 'c1', 'CREATED'),
      received(6.4, 'c1', 'STOPPED'),
      received(6.5, 'c1b', 'CREATED', { others: [{ id: 'c1', state: 'exited', times: failed }] }),
      listed(10, { s1: 'running', c1: 'exited', c1b: 'created' }),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a short life is not reported after a stream gap while the list before was made', () => {
    const [, ...events] = shortLived;
    const slow = listed(4.2, S1_RUNNING, { took: 0.7 });
    const pause = { ...streamGap(5.5), at: 5.55 };
    const steps = [...sandbox, slow, pause, ...events, listed(10, S1_RUNNING)];
    const paused = steps.filter((step) => step !== pause);
    expect(short(compare([...covered, ...paused], { until: 20 }))).toHaveLength(1);
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a time from after a step that no tick had seen does not bound a short life', () => {
    const steps = [
      ...sandbox,
      ...shortLived.slice(0, 3),
      clockStepped(6.3, -5),
      received(6.4, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.2, finished: 6.4 - 5 }) }),
      listed(6.42, C1_EXITED),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'start', proof: { lifeMinMs: 0, lifeMaxMs: 1430 } },
    ]);
  });

  test('a short life is not reported where the stream was not covered since the list before', () => {
    const steps = [...sandbox, ...shortLived, streamGap(7), listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });
});
