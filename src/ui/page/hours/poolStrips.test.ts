import { expect, test } from 'vitest';
import type { HoursAnswer, PoolSlices, VersionChange } from '../../api.ts';
import { runsOf, sliceInWords, storyOf } from './poolStrips.ts';

const FROM = '2026-11-22T00:00:00.000Z';
const pool = (name: string | null, more: Partial<PoolSlices> = {}): PoolSlices => ({
  ...{
    cluster: 'east',
    pool: name,
    nodes: 10,
    missed: [0, 0, 0, 0],
    fallen: [0, 0, 0, 0],
    slow: [0, 0, 0, 0],
  },
  ...{ knownSeconds: Array.from({ length: 4 }, () => 36_000) },
  ...{ watchedSeconds: Array.from({ length: 4 }, () => 36_000) },
  ...more,
});
const answerOf = (pools: readonly PoolSlices[], versions: readonly VersionChange[] = []): HoursAnswer => ({
  ...{ now: FROM, from: FROM, to: '2026-11-22T04:00:00.000Z', seconds: 3600, pools, leftOut: null, versions },
  ...{ versionsCut: false, empty: null },
});
const change: VersionChange = {
  ...{ cluster: 'east', pool: 'b', at: '2026-11-22T01:00:00.000000Z', what: 'kubelet', nodes: 3 },
  ...{ before: 'v1.35.4', after: 'v1.36.2' },
};

test('a slice is as strong as the share of nodes that it is about, and one node of many is seen', () => {
  expect(runsOf(pool('a', { nodes: 1000, fallen: [1, 1, 100, 500] }), 'fallen')).toEqual([
    { from: 0, to: 2, strength: 1 },
    { from: 2, to: 3, strength: 2 },
    { from: 3, to: 4, strength: 3 },
  ]);
});

test('time that nobody observed is a run, and time before a node was known is none', () => {
  const late = pool('a', {
    knownSeconds: [0, 36_000, 36_000, 36_000],
    watchedSeconds: [0, 0, 35_900, 18_000],
  });
  expect(runsOf(late, 'unobserved')).toEqual([
    { from: 1, to: 2, strength: 3 },
    { from: 3, to: 4, strength: 3 },
  ]);
  const [shown] = storyOf(answerOf([late])).shown;
  expect(shown?.first).toBe(1);
});

test('the pool with the most nodes that something was wrong with is first, and quiet are only those that were observed', () => {
  const unwatched = pool(null, { watchedSeconds: [0, 0, 0, 0], nodes: 1 });
  const pools = [pool('quiet'), unwatched, pool('a', { missed: [9, 0, 0, 0] }), pool('b')];
  const { shown, quiet } = storyOf(answerOf(pools, [change]));
  expect(shown.map((each) => each.pool.pool)).toEqual(['a', null, 'b']);
  expect(quiet.map((each) => each.pool)).toEqual(['quiet']);
});

test('a slice in which nobody watched shows the known facts, and no zero', () => {
  const unwatched = pool('a', { watchedSeconds: [0, 0, 0, 0], slow: [0, 2, 0, 0] });
  const answer = answerOf([unwatched]);
  const [shown] = storyOf(answer).shown;
  const factsOf = (slice: number) => shown && sliceInWords(answer, shown, slice).split(' nodes: ')[1];
  expect(factsOf(0)).toBe('0.0 % observed');
  expect(factsOf(1)).toBe('PLEG slow or hung on 2, 0.0 % observed');
});

test('a version that changed is in its slice, and in the words of that slice', () => {
  const answer = answerOf([pool('b', { missed: [0, 2, 0, 0] })], [change]);
  const [shown] = storyOf(answer).shown;
  expect(shown?.lines).toEqual([
    {
      ...{ slice: 1, label: 'v1.36.2' },
      title: '2026-11-22 01:00:00 UTC: kubelet v1.35.4 to v1.36.2 on 3 nodes',
    },
  ]);
  expect(shown && sliceInWords(answer, shown, 1)).toBe(
    'east / b, 2026-11-22 01:00 – 02:00 UTC, 10 nodes: 2 missed events, 0 in fallback, PLEG slow or hung on 0, 100 % observed, kubelet v1.35.4 to v1.36.2 on 3 nodes',
  );
});
