import { expect, test } from 'vitest';
import { ageOf, humanDuration } from './table.ts';

const M = 60;
const H = 3600;
const D = 86_400;
const Y = 365 * D;

test.each([
  [0, '0s'],
  [119, '119s'],
  [2 * M, '2m'],
  [2 * M + 1, '2m1s'],
  [10 * M - 1, '9m59s'],
  [10 * M, '10m'],
  [3 * H - 1, '179m'],
  [3 * H, '3h'],
  [7 * H + 59 * M, '7h59m'],
  [8 * H, '8h'],
  [2 * D - 1, '47h'],
  [2 * D, '2d'],
  [3 * D + 5 * H, '3d5h'],
  [8 * D, '8d'],
  [2 * Y - 1, '729d'],
  [2 * Y, '2y'],
  [2 * Y + 3 * D, '2y3d'],
  [8 * Y, '8y'],
])('%i seconds are %s', (seconds, text) => {
  expect(humanDuration(seconds)).toBe(text);
});

test('a second in the future is skew, more is invalid', () => {
  const now = '2026-11-20T12:00:00Z';
  expect(ageOf('2026-11-20T12:00:01.9Z', now)).toBe('0s');
  expect(ageOf('2026-11-20T12:00:02Z', now)).toBe('<invalid>');
});
