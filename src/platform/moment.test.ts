import { expect, test } from 'vitest';
import { moment } from './moment.ts';
import { BadValue } from './settings.ts';

const NOW = Date.parse('2026-11-22T02:00:00Z');

test.each([
  ['now', '2026-11-22T02:00:00.000Z'],
  ['-90m', '2026-11-22T00:30:00.000Z'],
  ['-1.5h', '2026-11-22T00:30:00.000Z'],
  ['-2d', '2026-11-20T02:00:00.000Z'],
  ['01:12', '2026-11-22T01:12:00.000Z'],
  ['03:12:30', '2026-11-21T03:12:30.000Z'],
  ['2026-11-20', '2026-11-20T00:00:00.000Z'],
  ['2026-11-20 03:12', '2026-11-20T03:12:00.000Z'],
  ['2026-11-20T03:12:00.5Z', '2026-11-20T03:12:00.500Z'],
  ['2026-11-20T03:12:00+02:00', '2026-11-20T01:12:00.000Z'],
])('%s is %s at two in the morning of 22 November, UTC', (raw, expected) => {
  expect(moment(raw, NOW).toISOString()).toBe(expected);
});

test.each([
  '',
  'yesterday',
  '1h',
  '-1w',
  '25:00',
  '2026-13-01',
  '22/11/2026',
  '-99999999999d',
  '2026-11-20T03:12 UTC',
])('%j is no moment', (raw) => {
  expect(() => moment(raw, NOW)).toThrow(BadValue);
});
