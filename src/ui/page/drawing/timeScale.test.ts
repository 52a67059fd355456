import { expect, test } from 'vitest';
import { MAX_SPAN_MS, MIN_SPAN_MS, moved, TimeScale, widened, zoomed } from './timeScale.ts';

const from = Date.parse('2026-11-22T03:00:00Z');
const hour = { from, to: from + 3_600_000 };
const scale = new TimeScale(hour, 100, 700);

test('a moment and its place lead to each other', () => {
  expect(scale.x(from)).toBe(100);
  expect(scale.x(hour.to)).toBe(700);
  expect(scale.moment(scale.x(from + 1234))).toBeCloseTo(from + 1234);
});

test('a period is cut at the edges, has at least a pixel, and is nothing where it is outside', () => {
  expect(scale.span(from - 1e9, from + 1_800_000)).toEqual({ x: 100, width: 300 });
  expect(scale.span(from, from + 1)).toMatchObject({ width: 1 });
  expect(scale.span(from + 1_800_000, null)).toEqual({ x: 400, width: 300 });
  expect(scale.span(from - 2, from - 1)).toBeUndefined();
});

test('ticks are at round moments, as far apart as asked, and say no more than the step needs', () => {
  expect(scale.ticks(90).map(({ label }) => label)).toEqual([
    '03:00',
    '03:10',
    '03:20',
    '03:30',
    '03:40',
    '03:50',
    '04:00',
  ]);
  const second = new TimeScale({ from, to: from + 1000 }, 0, 400).ticks(90);
  expect(second.map(({ label }) => label)).toEqual(['03:00:00.000', '03:00:00.500', '03:00:01.000']);
  const days = new TimeScale({ from, to: from + 3 * 86_400_000 }, 0, 300).ticks(90);
  expect(days.map(({ label }) => label)).toEqual(['23 Nov', '24 Nov', '25 Nov']);
});

test('zooming keeps the moment under the pointer where it is', () => {
  const around = from + 900_000;
  const half = zoomed(hour, 0.5, around);
  expect(half.to - half.from).toBe(1_800_000);
  expect(new TimeScale(half, 100, 700).x(around)).toBeCloseTo(scale.x(around));
});

test('zooming ends at a second and at a month', () => {
  const near = zoomed(hour, 1e-9, from);
  const far = zoomed(hour, 1e9, from);
  expect([near.to - near.from, far.to - far.from]).toEqual([MIN_SPAN_MS, MAX_SPAN_MS]);
});

test('moving and widening keep the middle or the length', () => {
  expect(moved(hour, 5)).toEqual({ from: from + 5, to: hour.to + 5 });
  expect(widened(hour, 0.5)).toEqual({ from: from - 1_800_000, to: hour.to + 1_800_000 });
});
