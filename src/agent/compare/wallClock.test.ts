import { expect, test } from 'vitest';
import { type Mono, mono } from '../../protocol/units.ts';
import { WallClock } from './wallClock.ts';

const at = (seconds: number): Mono => mono(seconds * 1e6);
const ns = (seconds: number): bigint => BigInt(Math.round(seconds * 1e9));

/** A clock that showed `wall` at 0, and was set by this many seconds at each of these moments. */
function clockWith(wall: number, ...steps: readonly (readonly [at: number, by: number])[]) {
  const clock = new WallClock();
  let now = wall;
  clock.tick(at(0), wall * 1e6);
  for (const [moment, by] of steps) {
    now += by;
    clock.tick(at(moment), (now + moment) * 1e6);
  }
  return clock;
}

test('a wall-clock time is placed where both clocks met', () => {
  const clock = clockWith(1000);
  expect(clock.place(ns(1005), at(10))).toBe(at(5));
  expect(clock.place(ns(990), at(10))).toBe(at(-10));
});

test('nothing is placed before the first reading, and 0 is no time', () => {
  expect(new WallClock().place(ns(5), at(10))).toBeNull();
  expect(clockWith(1000).place(0n, at(10))).toBeNull();
  expect(clockWith(1000).place(-5n, at(10))).toBeNull();
});

test('a time that lies ahead was read after a step that no tick has seen', () => {
  const clock = clockWith(1000);
  expect(clock.place(ns(1010.05), at(10))).toBe(at(10.05));
  expect(clock.place(ns(1011), at(10))).toBeNull();
});

test('a time that no record may carry is not placed, even if it is from 1970', () => {
  const year = 366 * 86_400;
  const clock = clockWith(50 * year);
  expect(clock.place(ns(49 * year), at(10))).toBe(at(-year));
  expect(clock.place(ns(48 * year), at(10))).toBeNull();
  expect(clock.place(1n, at(10))).toBeNull();
});

test('only a step is reported', () => {
  const clock = new WallClock();
  expect(clock.tick(at(0), 1000e6)).toBe(false);
  expect(clock.tick(at(1), 1001.4e6)).toBe(false);
  expect(clock.tick(at(2), 1001.9e6)).toBe(false);
  expect(clock.tick(at(3), 1003.5e6)).toBe(true);
  expect(clock.tick(at(4), 1004.5e6)).toBe(false);
  expect(clock.tick(at(5), 905e6)).toBe(true);
});

test('a clock that is moved little by little is stepped too', () => {
  const clock = new WallClock();
  expect(clock.tick(at(0), 1000e6)).toBe(false);
  expect(clock.tick(at(1), 1000.7e6)).toBe(false);
  expect(clock.tick(at(2), 1001.4e6)).toBe(true);
  // Times that it may have shown before are placed no more, nor those that it showed twice.
  expect(clock.place(ns(1001.35), at(9))).toBeNull();
  expect(clock.place(ns(1001.9), at(9))).toBeNull();
  expect(clock.place(ns(1003), at(9))).toBe(at(3.6));
});

test('after a step forward only what the clock showed since is placed', () => {
  const clock = clockWith(1000, [100, 50]);
  expect(clock.place(ns(1090), at(200))).toBeNull();
  expect(clock.place(ns(1120), at(200))).toBeNull();
  expect(clock.place(ns(1160), at(200))).toBe(at(110));
});

test('after a step back nothing is placed that the clock showed before, or shows for the second time', () => {
  const clock = clockWith(1000, [100, -50]);
  expect(clock.place(ns(1040), at(400))).toBeNull();
  expect(clock.place(ns(1090), at(400))).toBeNull();
  expect(clock.place(ns(1101), at(400))).toBe(at(151));
});

test('a clock that was years ahead for a while does not void later times in between', () => {
  const clock = clockWith(1000, [100, 1e9], [110, -1e9]);
  expect(clock.place(ns(1150), at(400))).toBe(at(150));
  expect(clock.place(ns(1050), at(400))).toBeNull();
});

test('a time of a range long past is not placed when the clock was set back over and over', () => {
  const steps = Array.from({ length: 500 }, (_, i) => [i + 1, -1000] as const);
  expect(clockWith(1e6, ...steps).place(ns(1e6 + 0.5), at(600_000))).toBeNull();
});

test('no time of any past range is placed when the clock was set over and over', () => {
  const steps = Array.from({ length: 500 }, (_, i) => [i + 1, 1000] as const);
  const clock = clockWith(1000, ...steps);
  expect(clock.place(ns(1000.5), at(501))).toBeNull();
  expect(clock.place(ns(1000 + 300 * 1000 + 300.5), at(501))).toBeNull();
  expect(clock.place(ns(1000 + 500 * 1000 + 500.5), at(501))).toBe(at(500.5));
});
