import { expect, test } from 'vitest';
import { timeOf } from './time.ts';

test('a time has six digits of a second, and is in UTC', () => {
  expect(timeOf('2026-11-24 09:00:00.123456+00')).toBe('2026-11-24T09:00:00.123456Z');
  expect(timeOf('2026-11-24 09:00:00+00')).toBe('2026-11-24T09:00:00.000000Z');
  expect(timeOf('2026-11-24 09:00:00.5+00')).toBe('2026-11-24T09:00:00.500000Z');
  expect(timeOf('2026-11-24 09:00:00.12345+00')).toBe('2026-11-24T09:00:00.123450Z');
});

test('a time of a session in another time zone is the same moment', () => {
  expect(timeOf('2026-01-01 00:30:00.000001+02')).toBe('2025-12-31T22:30:00.000001Z');
  expect(timeOf('2025-12-31 23:30:00.25-05:30')).toBe('2026-01-01T05:00:00.250000Z');
  expect(timeOf('1890-01-01 00:53:28+00:53:28')).toBe('1890-01-01T00:00:00.000000Z');
});

test('a time outside of the years that RFC 3339 has is written as Date writes it', () => {
  expect(timeOf('12026-11-24 09:00:00+00')).toBe('+012026-11-24T09:00:00.000000Z');
  expect(timeOf('12026-11-24 09:00:00.12345+00')).toBe('+012026-11-24T09:00:00.123450Z');
  expect(timeOf('0044-03-15 12:00:00+00 BC')).toBe('-000043-03-15T12:00:00.000000Z');
  expect(timeOf('infinity')).toBe('infinity');
  expect(timeOf('-infinity')).toBe('-infinity');
});

test.each([
  ['24/11/2026 09:00:00 UTC'],
  ['11/24/2026 09:00:00 +00'],
  ['2026-11-24'],
  [''],
  [0],
  [null],
  [new Date(0)],
])('%s is not a time', (value) => {
  expect(timeOf(value)).toBeUndefined();
});
