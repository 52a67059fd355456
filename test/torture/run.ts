/*
 * Runs one schedule, from an empty world to a check result.
 *
 *   start ──► faults, each at its time ──► everything repaired ──► no more pods, a flood ──► settled or timed out ──► result
 *     └─────── an attacker ─────────────────────────────────────────────────────────────── every record is stored
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../src/platform/errors.ts';
import { auditCommand } from '../support/auditCommand.ts';
import { CLUSTER } from '../support/batches.ts';
import type { Attacker } from './attacker.ts';
import { type CheckResult, checkRecords, type TortureEvidence } from './checker.ts';
import type { Attempt } from './facts.ts';
import { inject } from './faults.ts';
import type { Step } from './order.ts';
import { describeFault, type Event, type ScheduleOptions, scheduleOf } from './schedule.ts';
import { readMarks, readStore } from './store.ts';
import { World } from './world.ts';

export interface RunOptions extends ScheduleOptions {
  /** The checkout of the program under test. */
  readonly root: string;
  readonly forgetful: ReadonlySet<number>;
  /** How many the attacker does. */
  readonly operations: number;
  /** How long the remaining records may take to arrive after the last fault. */
  readonly settlesWithinMs: number;
  /** In which faults begin and end; null: as it comes. */
  readonly wanted: readonly Step[] | null;
  readonly log: (line: string) => void;
}

export interface Outcome {
  readonly result: CheckResult;
  readonly events: readonly Event[];
  /** In which their faults began and ended. */
  readonly order: readonly Step[];
  /** Faults that could not be injected. */
  readonly failures: readonly string[];
  /** How often acknowledgements were compared with the committed seqs. */
  readonly comparisons: number;
  /** See test/support/marks.ts. */
  readonly marks: readonly string[];
  readonly seconds: number;
  /** The end of every log, if the run failed. */
  readonly logs: readonly string[];
}

export async function runSchedule(options: RunOptions): Promise<Outcome> {
  const { log } = options;
  const events = scheduleOf(options);
  const order: Step[] = [];
  const began = performance.now();
  const world = await World.start(options);
  try {
    const attacker = world.attack(options.operations, (events.at(-1)?.atMs ?? 0) / options.operations);
    const faultsThatFailed = await play(world, events, { wanted: options.wanted, order, log });
    await world.startControllers();
    const result = await settle(world, attacker, events, options.settlesWithinMs);
    const stored = await again(performance.now() + options.settlesWithinMs, () =>
      readMarks(world.postgres.url),
    );
    const marks = [...stored, ...attacker.marks, ...world.refusals()];
    const failures = [...faultsThatFailed, ...attacker.problems, ...world.endedControllers()];
    const seconds = (performance.now() - began) / 1000;
    const bad = result.problems.length > 0 || failures.length > 0;
    const logs = bad ? world.logs() : [];
    return { result, events, order, failures, comparisons: world.ackWatch.comparisons, marks, seconds, logs };
  } finally {
    await world.stop();
  }
}

interface Course {
  /** The order of another run, which this one follows as far as its faults last as long. */
  readonly wanted: readonly Step[] | null;
  /** The order of this run, as it comes. */
  readonly order: Step[];
  readonly log: (line: string) => void;
}

async function play(
  world: World,
  events: readonly Event[],
  { wanted, order, log }: Course,
): Promise<string[]> {
  const start = performance.now();
  const failures: string[] = [];
  const under: Promise<void>[] = [];
  /** Resolves when the fault has begun. */
  const begin = async (fault: number, event: Event): Promise<void> => {
    const wait = event.atMs - (performance.now() - start);
    if (wait > 0) await delay(wait);
    const text = describeFault(event.fault);
    log(`  ${(event.atMs / 1000).toFixed(1).padStart(6)} s  ${text}, ${event.forMs} ms`);
    const { promise, resolve } = Promise.withResolvers<void>();
    const onBegin = () => {
      order.push({ is: 'begins', fault });
      resolve();
    };
    under[fault] = inject(world, event, onBegin)
      .catch((error: unknown) => {
        failures.push(`${text}: ${messageOf(error)}`);
        log(`            ${text}: ${messageOf(error)}`);
      })
      .then(() => void order.push({ is: 'ends', fault }));
    if (wanted !== null) await promise;
  };
  for (const { is, fault } of wanted ?? events.map((_, i) => ({ is: 'begins', fault: i }) as const)) {
    const event = events[fault];
    if (event !== undefined && is === 'begins') await begin(fault, event);
    else await under[fault];
  }
  await Promise.all(under);
  return failures;
}

/**
 * Waits until nothing is lost, which an attacker may not delay however long it goes on, and then until the queues are drained; or until the
 * timeout. Returns the last result.
 */
async function settle(
  world: World,
  attacker: Attacker,
  events: readonly Event[],
  withinMs: number,
): Promise<CheckResult> {
  attacker.floodSoon();
  for (const { runtime } of world.nodes) await runtime.stop();
  const upTo = highest(world.attempts());
  const deadline = performance.now() + withinMs;
  for (;;) {
    const store = await again(deadline, () => readStore(world.postgres.url));
    const evidence: TortureEvidence = {
      // Read after the rows: a stored record was attempted before.
      attempts: world.attempts(),
      ended: world.ended,
      deaths: world.deaths,
      upTo,
      store,
      faults: events,
      premature: world.ackWatch.premature,
      different: [],
      undrained: await again(deadline, () => world.undrained()),
      forgetful: new Set([...world.options.forgetful].map((i) => `node-${i}`)),
      kubelets: world.kubeletTruths(),
      starts: world.starts,
    };
    const result = checkRecords(evidence);
    const isStored = result.lost.length + result.undeclared.length === 0;
    if (isStored && attacker.hasEnded && result.undrained === 0)
      return checkRecords({ ...evidence, different: await audited(world) });
    const isLate = performance.now() > deadline;
    if (isStored || isLate) await attacker.stop();
    if (isLate) return result;
    await delay(500);
  }
}

/** On a busy machine Postgres or Redis may not answer in time: that says nothing about the records. */
async function again<T>(deadline: number, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(500);
    }
  }
}

/** The differences that the audit prints, each with its SQL, or why it failed. */
async function audited({ options, postgres }: World): Promise<string[]> {
  const cli = join(options.root, 'dist', 'cli.js');
  const { code, output } = await auditCommand({ cli, cluster: CLUSTER, databaseUrl: postgres.url });
  return code === 0 ? [] : output.trimEnd().split('\n');
}

function highest(attempts: readonly Attempt[]): Map<string, number> {
  const upTo = new Map<string, number>();
  for (const { epoch, seq } of attempts) upTo.set(epoch, Math.max(seq, upTo.get(epoch) ?? 0));
  return upTo;
}
