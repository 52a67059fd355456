import { expect, test } from 'vitest';
import { bootNow } from '../../platform/clock.ts';
import { type Mono, mono } from '../../protocol/units.ts';
import { Suspension } from './suspension.ts';

/** A machine that has run for a minute, and may have been suspended for an hour before that. */
function machine() {
  let ran = 60_000_000;
  let suspended = 3_600_000_000;
  let busy = 0;
  const readBoot = (): Mono => {
    const boot = mono(Math.floor((ran + suspended) / 10_000) * 10_000);
    ran += busy;
    return boot;
  };
  const suspension = new Suspension(readBoot, () => mono(ran));
  return {
    suspension,
    runs: (ms: number) => {
      ran += ms * 1_000;
    },
    isSuspendedFor: (ms: number) => {
      suspended += ms * 1_000;
    },
    isBusyFor: (ms: number) => {
      busy = ms * 1_000;
    },
  };
}

test('a machine that runs was not suspended, however busy it is', () => {
  const { suspension, runs, isBusyFor } = machine();
  for (const ms of [0, 3_000, 0, 20_000, 0]) {
    isBusyFor(ms);
    runs(500);
    expect(suspension.check()).toBeNull();
  }
});

test('a machine that was suspended was last known to run at the check before that', () => {
  const { suspension, runs, isSuspendedFor } = machine();
  runs(500);
  suspension.check();
  runs(300);
  isSuspendedFor(90_000);
  runs(200);
  expect(suspension.check()).toBe(60_500_000);
  runs(500);
  expect(suspension.check()).toBe(60_500_000);
});

test('nothing is concluded where the clock that goes on cannot be read', () => {
  expect(new Suspension(() => null).check()).toBeNull();
});

test('the clock that goes on while the machine is suspended is read, and never behind the monotonic one', () => {
  const before = process.hrtime.bigint() / 1_000n;
  expect(bootNow()).toBeGreaterThan(Number(before) - 20_000);
});
