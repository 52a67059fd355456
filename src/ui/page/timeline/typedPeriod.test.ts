import { expect, test } from 'vitest';
import { typedPeriod } from './typedPeriod.ts';

const NOW = Date.parse('2026-11-27T09:00:00Z');
const HOUR = 3_600_000;

test.each([
  ['2026-11-22 03:12', '2026-11-22T02:57:00.000Z', '2026-11-22T03:27:00.000Z'],
  [' -5d 03:12 ', '2026-11-22T02:57:00.000Z', '2026-11-22T03:27:00.000Z'],
  ['2026-11-22 04:12+01:00', '2026-11-22T02:57:00.000Z', '2026-11-22T03:27:00.000Z'],
  ['2026-11-22', '2026-11-22T00:00:00.000Z', '2026-11-23T00:00:00.000Z'],
  ['03:05 – 03:20', '2026-11-27T03:05:00.000Z', '2026-11-27T03:20:00.000Z'],
  ['-5d 23:50 to 00:10', '2026-11-22T23:50:00.000Z', '2026-11-23T00:10:00.000Z'],
  ['2026-11-22 03:00 - 2026-11-23 04:00Z', '2026-11-22T03:00:00.000Z', '2026-11-23T04:00:00.000Z'],
  ['-2h to now', '2026-11-27T07:00:00.000Z', '2026-11-27T09:00:00.000Z'],
])('%s is a period of UTC', (text, from, to) => {
  expect(typedPeriod(text, NOW, HOUR)).toEqual({ from: Date.parse(from), to: Date.parse(to) });
});

test('around a typed moment nothing more is shown than before', () => {
  const at = Date.parse('2026-11-22T03:12:00Z');
  expect(typedPeriod('2026-11-22 03:12', NOW, 60_000)).toEqual({ from: at - 30_000, to: at + 30_000 });
});

test.each([
  ['', /^Write a time/],
  ['yesterday', /^Write a time/],
  ['03:00 to noon', /^Write a time/],
  ['01:00 to 02:00 to 03:00', /^Write a time/],
  ['2026-11-22 to 2026-11-21', /before the second/],
  ['2026-01-01 to 2026-11-22', /at most 31 days/],
])('%j is no period, and it is said why', (text, why) => {
  expect(typedPeriod(text, NOW, HOUR)).toMatch(why);
});
