import { expect, test } from 'vitest';
import { poolPeriod } from './poolPeriod.ts';

const at = (time: string) => new Date(`2026-11-26T${time}Z`);
const period = (from: string, to: string, now: string, hasMinutes = true) => {
  const shown = poolPeriod({ from: at(from), to: at(to) }, at(now), hasMinutes);
  return { ...shown, from: shown.from.toISOString().slice(11, 16), to: shown.to.toISOString().slice(11, 16) };
};

test('a short period is read by its minutes, in slices in which every agent has one', () => {
  expect(period('03:12:20', '03:19:40', '12:00:00')).toEqual({
    ...{ from: '03:12', to: '03:20', isByHour: false, sliceSeconds: 120, slices: 4 },
  });
});

test('a long period, and one whose minutes are deleted, is read by the hours in which it begins and ends', () => {
  const hours = { from: '03:00', to: '11:00', isByHour: true, sliceSeconds: 3600, slices: 8 };
  expect(period('03:12:00', '10:30:00', '12:00:00')).toEqual(hours);
  expect(period('03:12:00', '03:20:00', '12:00:00', false)).toEqual({ ...hours, to: '04:00', slices: 1 });
});

test('a slice of which nothing can be stored yet is still to come', () => {
  expect(period('11:00:00', '12:00:00', '12:00:00').slices).toBe(29);
  expect(period('04:00:00', '12:01:00', '12:01:00').slices).toBe(8);
  expect(period('04:00:00', '12:05:00', '12:05:00').slices).toBe(9);
  expect(period('13:00:00', '14:00:00', '12:00:00').slices).toBe(0);
});

test('there are few slices, whatever the period', () => {
  const days = (n: number) => new Date(at('12:00:00').getTime() - n * 86_400_000);
  const year = poolPeriod({ from: days(400), to: at('12:00:00') }, at('12:00:00'), true);
  expect(year.slices).toBeLessThanOrEqual(200);
  expect(year.slices * year.sliceSeconds).toBeGreaterThanOrEqual(400 * 86_400);
});
