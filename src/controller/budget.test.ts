import { expect, test } from 'vitest';
import { Budget } from './budget.ts';

test('a burst of one second is free, then writes come at the rate, in order', () => {
  let now = 0;
  const budget = new Budget(20, 20, () => now);
  const waits = Array.from({ length: 24 }, () => budget.reserve());
  expect(waits.slice(0, 20)).toEqual(Array(20).fill(0));
  expect(waits.slice(20)).toEqual([50, 100, 150, 200]);
  now = 200;
  expect(budget.reserve()).toBe(50);
});

test('what was not used is kept for one second only', () => {
  let now = 0;
  const budget = new Budget(20, 20, () => now);
  now = 3_600_000;
  const free = Array.from({ length: 30 }, () => budget.reserve()).filter((wait) => wait === 0);
  expect(free).toHaveLength(20);
});

test('what may not wait is done only where a token is there', () => {
  let now = 0;
  const budget = new Budget(0.5, 3, () => now);
  const taken = (count: number) =>
    Array.from({ length: count }, () => budget.takeNow()).filter(Boolean).length;
  expect(taken(5)).toBe(3);
  now = 1_999;
  expect(taken(1)).toBe(0);
  now = 4_000;
  expect(taken(3)).toBe(2);
});
