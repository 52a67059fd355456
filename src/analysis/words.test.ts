import { expect, test } from 'vitest';
import { duration } from './words.ts';

test('a duration has two units at most, and no unit that is zero', () => {
  const durations = [-5, 0, 0.25, 12, 1_234, 59_600, 200_000, 3_600_000, 3_605_000, 90_000_000];
  expect(durations.map(duration)).toEqual([
    ...['0 ms', '0 ms', '250 µs', '12 ms', '1.2 s', '1 min', '3 min 20 s', '1 h', '1 h', '1 d 1 h'],
  ]);
});
