import { expect, test } from 'vitest';
import { Backoff, doubled, jittered } from './backoff.ts';

const LOWEST = () => 0;
const HIGHEST = () => 1;

test('a backoff doubles from the first wait to the maximum and stays there', () => {
  const backoff = new Backoff({ firstMs: 500, maxMs: 3_000, random: HIGHEST });
  expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([500, 1_000, 2_000, 3_000, 3_000]);
});

test('a backoff never waits less than half of its step', () => {
  const backoff = new Backoff({ firstMs: 500, maxMs: 3_000, random: LOWEST });
  expect([1, 2, 3].map(() => backoff.next())).toEqual([250, 500, 1_000]);
});

test('a backoff waits as long as the server asked, even beyond its maximum', () => {
  const backoff = new Backoff({ firstMs: 500, maxMs: 3_000, random: HIGHEST });
  expect(backoff.next(60_000)).toBe(60_000);
  expect(backoff.next(10)).toBe(1_000);
});

test('a backoff begins again with the first wait after a success', () => {
  const backoff = new Backoff({ firstMs: 500, maxMs: 3_000, random: HIGHEST });
  backoff.next();
  backoff.next();
  backoff.reset();
  expect(backoff.next()).toBe(500);
});

test('a backoff stays finite after any number of failures', () => {
  expect(doubled(1, Number.MAX_VALUE, 1e9)).toBe(2 ** 30);
});

test('a jittered period lies within its share on both sides', () => {
  expect(jittered(1_000, 0.1, LOWEST)).toBeCloseTo(900);
  expect(jittered(1_000, 0.1, HIGHEST)).toBeCloseTo(1_100);
});
