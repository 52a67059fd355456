import { expect, test } from 'vitest';
import { type Mono, mono, wall } from '../protocol/units.ts';
import { readClocks } from './clock.ts';

/** Reads both clocks while the machine is busy for this many milliseconds at each reading of the monotonic clock. */
function readWhileBusy(...busyMs: readonly number[]) {
  let now = 0;
  let readings = 0;
  const readMono = (): Mono => {
    const at = now;
    now += (busyMs[readings] ?? 0) * 1000;
    readings += 1;
    return mono(at);
  };
  const { mono: at, wall: shown } = readClocks(readMono, () => wall(1e12 + now));
  return { apartMs: (shown - 1e12 - at) / 1000, readings };
}

test('both clocks are read at once', () => {
  expect(readWhileBusy()).toEqual({ apartMs: 0, readings: 2 });
});

test('the clocks are read again if the process did not run between the two', () => {
  expect(readWhileBusy(300, 0, 40)).toEqual({ apartMs: 0, readings: 6 });
});

test('on a machine that is always slow, the closest of ten readings is taken', () => {
  const slow = Array.from({ length: 20 }, (_, i) => (i === 8 ? 2 : 5));
  expect(readWhileBusy(...slow)).toEqual({ apartMs: 2, readings: 20 });
});
