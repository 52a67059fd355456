import { expect, test } from 'vitest';
import type { PoolHours } from './hours.ts';
import { changeSince } from './worse.ts';

const END = Date.parse('2026-11-26T12:00:00Z');
/** 48 hours, all zero but those given by their place. */
const hours = (given: Readonly<Record<number, number>> = {}, usual = 0) =>
  Array.from({ length: 48 }, (_, hour) => given[hour] ?? usual);
const pool = (name: string | null, more: Partial<PoolHours> = {}): PoolHours => ({
  ...{ cluster: 'east', pool: name, nodes: 10, silent: 0, pools: 1, missed: hours(), fallen: hours() },
  ...{ slow: hours(), knownSeconds: hours({}, 36_000), watchedSeconds: hours({}, 36_000) },
  ...more,
});
const sentenceOf = (...pools: PoolHours[]) => changeSince(pools, END).sentence;

test('where all was observed and nothing is worse, nothing became worse', () => {
  expect(changeSince([pool('general')], END)).toEqual({
    ...{ verdict: 'same', sentence: 'Nothing that was observed became worse since yesterday.' },
  });
});

test('a first missed event is worse where the day before was watched and none was missed, and nowhere else', () => {
  const first = { missed: hours({ 27: 1 }) };
  expect(sentenceOf(pool('general', first))).toBe(
    'Worse than yesterday: 1 missed event instead of 0 in pool general of east, since 2026-11-25 15:00 UTC.',
  );
  const hardlyWatched = hours(Object.fromEntries(hours().map((_, hour) => [hour, hour < 24 ? 100 : 36_000])));
  const change = changeSince([pool('general', { ...first, watchedSeconds: hardlyWatched })], END);
  expect(change.verdict).toBe('same');
});

test('as many missed events as chance explains are not worse, and more are', () => {
  const missed = (before: number, today: number) => ({ missed: hours({ 0: before, 47: today }) });
  expect(changeSince([pool('a', missed(100, 128))], END).verdict).toBe('same');
  expect(sentenceOf(pool('a', missed(100, 140)))).toMatch(
    /^Worse .* 140 missed events instead of 100 .* 11:00 UTC\.$/,
  );
});

test('a day that was watched for half as long is compared by what half a day would have missed', () => {
  const half = Array.from({ length: 48 }, (_, hour) => (hour < 24 ? 36_000 : 18_000));
  const change = changeSince([pool('a', { missed: hours({ 3: 100, 30: 80 }), watchedSeconds: half })], END);
  expect(change.sentence).toMatch(/80 missed events instead of 100/);
});

test('a fallback that goes on since two days ago is not worse, and another kubelet in it is, since it fell back', () => {
  expect(changeSince([pool('a', { fallen: hours({}, 1) })], END).verdict).toBe('same');
  const second = Array.from({ length: 48 }, (_, hour) => (hour < 40 ? 1 : 2));
  expect(sentenceOf(pool('a', { fallen: second }))).toMatch(
    /2 kubelets in fallback instead of 1 .* 04:00 UTC\.$/,
  );
});

test('the worst of several pools is named with the number of others, and the worst change comes first', () => {
  const missed = (n: number) => ({ missed: hours({ 30: n }) });
  const slow = { slow: hours({ 47: 3 }) };
  expect(sentenceOf(pool('a', missed(5)), pool(null, { ...missed(50), ...slow }), pool('c', missed(9)))).toBe(
    'Worse than yesterday: 50 missed events instead of 0 in nodes of east without a pool, since 2026-11-25 18:00 UTC (and in 2 other pools); PLEG slow or hung on up to 3 nodes instead of 0 in nodes of east without a pool, since 2026-11-26 11:00 UTC.',
  );
});

test('a pool that is no longer observed is worse itself, and nothing else is said of its nodes', () => {
  const until = Array.from({ length: 48 }, (_, hour) => (hour < 42 ? 36_000 : 0));
  const silent = pool('a', { silent: 10, watchedSeconds: until });
  expect(sentenceOf(silent, pool('b'))).toBe(
    'Worse than yesterday: 25 % of the time not observed instead of 0 % in pool a of east, since 2026-11-26 06:00 UTC; of 10 nodes without a reporting agent it cannot be known.',
  );
});

test('where nobody observes some nodes, it is said of how many it cannot be known', () => {
  const idle = pool(null, { nodes: 1, silent: 1, watchedSeconds: hours() });
  expect(sentenceOf(pool('a'), idle)).toBe(
    'Nothing that was observed became worse since yesterday; of one node without a reporting agent it cannot be known.',
  );
});

test('where nothing was observed on one of the days, whether anything became worse cannot be known', () => {
  expect(changeSince([pool('a', { silent: 10, watchedSeconds: hours() })], END)).toEqual({
    verdict: 'unknown',
    sentence: 'Whether anything became worse since yesterday cannot be known: no agent of 10 nodes reports.',
  });
  const since = Array.from({ length: 48 }, (_, hour) => (hour < 30 ? 0 : 36_000));
  const young = pool('a', { knownSeconds: since, watchedSeconds: since, missed: hours({ 40: 99 }) });
  expect(changeSince([young], END)).toEqual({
    verdict: 'unknown',
    sentence:
      'Whether anything became worse since yesterday cannot be known: nothing was observed a day ago.',
  });
  const off = pool('b', { silent: 1, watchedSeconds: hours() });
  expect(changeSince([young, off], END).sentence).toMatch(/: nothing was observed a day ago\.$/);
  expect(changeSince([off], END).sentence).toMatch(/: no agent of one node reports\.$/);
  const unsupported = pool('c', { watchedSeconds: hours() });
  expect(changeSince([unsupported], END).sentence).toMatch(/: no event stream was watched today\.$/);
});
