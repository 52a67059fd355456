import { expect, test } from 'vitest';
import { decadeAbove, logScale } from './logScale.ts';

test('each decade is as long as the next, and has a tick', () => {
  const { at, ticks } = logScale(1, 1000);
  expect(ticks).toEqual([1, 10, 100, 1000]);
  expect(ticks.map(at).map((place) => Math.round(place * 300))).toEqual([0, 100, 200, 300]);
});

test('zero and less than the least are at the beginning, more than the greatest at the end', () => {
  const { at } = logScale(1, 1000);
  expect([0, -1, 0.5, 1e9].map(at)).toEqual([0, 0, 0, 1]);
});

test('a greatest of zero still makes a scale', () => {
  expect(logScale(1, 0).ticks).toEqual([1, 10]);
  expect([0, 1, 11, 100].map(decadeAbove)).toEqual([1, 1, 100, 100]);
});
