import { expect, test } from 'vitest';
import { WriteBudget } from './budget.ts';

test('a burst of one second is free, then writes come at the rate, in order', () => {
  let now = 0;
  const budget = new WriteBudget(20, () => now);
  const waits = Array.from({ length: 24 }, () => budget.reserve());
  expect(waits.slice(0, 20)).toEqual(Array(20).fill(0));
  expect(waits.slice(20)).toEqual([50, 100, 150, 200]);
  now = 200;
  expect(budget.reserve()).toBe(50);
});

test('what was not used is kept for one second only', () => {
  let now = 0;
  const budget = new WriteBudget(20, () => now);
  now = 3_600_000;
  const free = Array.from({ length: 30 }, () => budget.reserve()).filter((wait) => wait === 0);
  expect(free).toHaveLength(20);
});
