import { afterEach, expect, test } from 'vitest';
import { until } from '../../test/support/waitFor.ts';
import { Loop, type LoopOptions } from './loop.ts';

const NEVER = Number.POSITIVE_INFINITY;

let loop: Loop | undefined;
afterEach(() => loop?.stop());

/** Starts a loop that counts its runs; `work` gets the number of the run. */
function start(work: (run: number) => Promise<number>, options: Partial<LoopOptions> = {}) {
  let runs = 0;
  const errors: [unknown, number][] = [];
  loop = new Loop({
    work() {
      runs += 1;
      return work(runs);
    },
    onError: (error, waitMs) => void errors.push([error, waitMs]),
    backoff: { firstMs: 2, maxMs: 8, random: () => 1 },
    ...options,
  });
  loop.start();
  return { loop, runs: () => runs, errors };
}

test('a loop runs at once, and again after the wait that the run returned', async () => {
  const { runs } = start(async (run) => (run < 3 ? 1 : NEVER));
  expect(runs()).toBe(1);
  await until(() => runs() === 3);
});

test('a loop waits until it is woken if the run returned an endless wait', async () => {
  const { loop: endless, runs } = start(async () => NEVER);
  await new Promise(setImmediate);
  expect(runs()).toBe(1);
  endless.wake();
  await until(() => runs() === 2);
});

test('a loop that is woken during a run runs again after it', async () => {
  const { runs } = start(async (run) => {
    if (run === 1) loop?.wake();
    return NEVER;
  });
  await until(() => runs() === 2);
});

test('a loop never runs twice at the same time', async () => {
  const run = Promise.withResolvers<number>();
  const { loop: busy, runs } = start(() => run.promise);
  busy.wake();
  await new Promise(setImmediate);
  expect(runs()).toBe(1);
  run.resolve(NEVER);
  await until(() => runs() === 2);
});

test('a loop reports every error with a doubling wait, which starts again after a success', async () => {
  const fails = new Set([1, 2, 3, 5]);
  const { runs, errors } = start(async (run) => {
    if (fails.has(run)) throw new Error(`run ${run}`);
    return run === 6 ? NEVER : 0;
  });
  await until(() => runs() === 6);
  expect(errors).toEqual([
    [new Error('run 1'), 2],
    [new Error('run 2'), 4],
    [new Error('run 3'), 8],
    [new Error('run 5'), 2],
  ]);
});

test('a loop waits after an error at least as long as the error asks', async () => {
  const { runs, errors } = start(
    async (run) => {
      if (run === 1) throw new Error('busy');
      return NEVER;
    },
    { minWaitMs: () => 20 },
  );
  await until(() => runs() === 2);
  expect(errors).toEqual([[new Error('busy'), 20]]);
});

test('a loop stops after the current run, whose error is not reported', async () => {
  const run = Promise.withResolvers<number>();
  const { loop: stopping, runs, errors } = start(() => run.promise);
  const stopped = stopping.stop();
  expect(stopping.signal.aborted).toBe(true);
  run.reject(new Error('aborted'));
  await stopped;
  expect([runs(), errors]).toEqual([1, []]);
});
