import { expect, test } from 'vitest';
import { duration, whyOfMode } from './words.ts';

test('a duration has two units at most, and no unit that is zero', () => {
  const durations = [-5, 0, 0.25, 12, 1_234, 59_600, 200_000, 3_600_000, 3_605_000, 90_000_000];
  expect(durations.map(duration)).toEqual([
    ...['0 ms', '0 ms', '250 µs', '12 ms', '1.2 s', '1 min', '3 min 20 s', '1 h', '1 h', '1 d 1 h'],
  ]);
});

test('a fallback is shown with what it means in its version, and any other mode with its reason', () => {
  const why = (mode: string, kubeletVersion: string) =>
    whyOfMode({ mode, reason: 'StreamBroke', kubeletVersion });
  expect(why('Fallback', 'v1.31.2')).toBe('StreamBroke, pods stay wrong until it restarts');
  expect(why('Fallback', 'v1.32.2')).toBe('StreamBroke, it relists every second');
  expect(why('Evented', 'v1.31.2')).toBe('StreamBroke');
});
