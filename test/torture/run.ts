/*
 * One schedule, from an empty world to a verdict.
 *
 *   start ──► faults, each at its time ──► everything is whole ──► no more pods ──► settled, or the patience is over ──► verdict
 */
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../src/platform/errors.ts';
import { type Attempt, type CheckResult, judge, type TortureEvidence } from './checker.ts';
import { inject } from './faults.ts';
import { type Event, inWords, type ScheduleOptions, scheduleOf } from './schedule.ts';
import { readStore } from './store.ts';
import { World } from './world.ts';

export interface RunOptions extends ScheduleOptions {
  /** The folder of the program that is tormented. */
  readonly root: string;
  readonly forgetful: ReadonlySet<number>;
  /** How long everything that is due may take to arrive once nothing is broken any more. */
  readonly settlesWithinMs: number;
  readonly say: (line: string) => void;
}

export interface Outcome {
  readonly verdict: CheckResult;
  readonly events: readonly Event[];
  /** Faults that did not do what they were to do. */
  readonly failures: readonly string[];
  /** How often acknowledgements could be compared with what was committed. */
  readonly looks: number;
  readonly seconds: number;
  /** The end of every log, where something is wrong. */
  readonly logs: readonly string[];
}

export async function runSchedule(options: RunOptions): Promise<Outcome> {
  const { say } = options;
  const events = scheduleOf(options);
  const began = performance.now();
  const world = await World.start(options);
  try {
    const failures = await play(world, events, say);
    const verdict = await settle(world, events, options.settlesWithinMs);
    const seconds = (performance.now() - began) / 1000;
    const bad = verdict.problems.length > 0 || failures.length > 0;
    const logs = bad ? world.logs() : [];
    return { verdict, events, failures, looks: world.witness.looks, seconds, logs };
  } finally {
    await world.stop();
  }
}

async function play(world: World, events: readonly Event[], say: (line: string) => void): Promise<string[]> {
  const start = performance.now();
  const failures: string[] = [];
  const under: Promise<void>[] = [];
  for (const event of events) {
    const wait = event.atMs - (performance.now() - start);
    if (wait > 0) await delay(wait);
    const words = inWords(event.fault);
    say(`  ${(event.atMs / 1000).toFixed(1).padStart(6)} s  ${words}, ${event.forMs} ms`);
    under.push(
      inject(world, event).catch((error: unknown) => {
        failures.push(`${words}: ${messageOf(error)}`);
        say(`            ${words}: ${messageOf(error)}`);
      }),
    );
  }
  await Promise.all(under);
  return failures;
}

/** Waits until nothing is missing that can be waited for; the last verdict stands. */
async function settle(world: World, events: readonly Event[], withinMs: number): Promise<CheckResult> {
  for (const { runtime } of world.nodes) await runtime.stop();
  const upTo = highest(world.attempts());
  const deadline = performance.now() + withinMs;
  for (;;) {
    const store = await readStore(world.postgres.url);
    const evidence: TortureEvidence = {
      // After the rows: what is there must have been attempted before.
      attempts: world.attempts(),
      ended: world.ended,
      deaths: world.deaths,
      upTo,
      store,
      faults: events,
      premature: world.witness.premature,
      undrained: await world.undrained(),
      forgetful: new Set([...world.options.forgetful].map((i) => `node-${i}`)),
    };
    const verdict = judge(evidence);
    const settled = verdict.lost.length === 0 && verdict.undrained === 0;
    if (settled || performance.now() > deadline) return verdict;
    await delay(500);
  }
}

function highest(attempts: readonly Attempt[]): Map<string, number> {
  const upTo = new Map<string, number>();
  for (const { epoch, seq } of attempts) upTo.set(epoch, Math.max(seq, upTo.get(epoch) ?? 0));
  return upTo;
}
