import { expect, test } from 'vitest';
import { millis, mono } from '../../protocol/units.ts';
import { Allowance } from './allowance.ts';

test('so many are allowed at once, one more for every while that passes, and the others are counted', () => {
  const allowance = new Allowance(3, millis(1000), mono(0));
  const takes = (ms: number, count: number) =>
    Array.from({ length: count }, () => allowance.take(mono(ms * 1000))).filter(Boolean).length;
  expect(takes(0, 5)).toBe(3);
  expect(allowance.refused).toBe(2);
  expect(takes(999, 1)).toBe(0);
  expect(takes(2500, 5)).toBe(2);
  expect(takes(1_000_000, 10)).toBe(3);
  expect(allowance.refused).toBe(2 + 1 + 3 + 7);
});
