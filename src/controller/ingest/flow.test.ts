import { expect, test } from 'vitest';
import { windowOf } from './flow.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

test('the agents of a fleet share the unacknowledged bytes, each within its bounds', () => {
  expect(windowOf(0, null)).toBe(MIB);
  expect(windowOf(128, null)).toBe(MIB);
  expect(windowOf(1_024, null)).toBe(128 * KIB);
  expect(windowOf(100_000, null)).toBe(16 * KIB);
});

test('agents fill at most half of a small Redis, and no more of a large one than of any other', () => {
  expect(windowOf(4, 64 * MIB)).toBe(MIB);
  expect(windowOf(64, 64 * MIB)).toBe(MIB / 2);
  expect(windowOf(512, 64 * MIB)).toBe(64 * KIB);
  expect(windowOf(512, 64 * KIB * MIB)).toBe(256 * KIB);
});
