/*
 * Faults from outside a runtime and its agent: stopped processes and clock steps. Each runs a fixed plan twice, with a calm
 * period after it, and returns what it did.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import type { SimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { type ClockStep, type Interference, NO_INTERFERENCE, type ProcessStop } from './groundTruth.ts';
import { moveClock } from './movedClock.ts';
import { childrenOf, exists, freeze, thaw } from './sigstop.ts';
import { metric } from './system.ts';
import { waitFor } from './waitFor.ts';

export interface FaultTarget {
  readonly agent: LocalPlegwatch;
  readonly runtime: SimulatedRuntime;
  /** The file that moves the agent's wall clock. */
  readonly clock: string;
}

export type FaultInjection = (scene: FaultTarget) => Promise<Interference>;

const REPETITIONS = [1, 2];
/** Long enough for an event to become overdue and missed. */
const CALM_MS = 14_000;
const BETWEEN_MS = 2_500;

/** `untilKilled`: until the agent kills its reader. */
type PlannedStop = Pick<ProcessStop, 'stopped'> & { readonly forMs: number | 'untilKilled' };

const PLANNED_STOPS: readonly PlannedStop[] = [
  { stopped: 'agent', forMs: 2_500 },
  { stopped: 'reader', forMs: 1_600 },
  { stopped: 'reader', forMs: 'untilKilled' },
  { stopped: 'both', forMs: 3_000 },
];

/** Stops the agent, its reader or both, again and again. */
export async function stopProcesses({ agent }: FaultTarget): Promise<Interference> {
  const stops: ProcessStop[] = [];
  for (const _ of REPETITIONS) {
    for (const each of PLANNED_STOPS) {
      await waitFor('the agent is subscribed', () => isSubscribed(agent));
      stops.push(await stopFor(agent.pid, each));
      await pause(BETWEEN_MS);
    }
    await pause(CALM_MS);
  }
  return { ...NO_INTERFERENCE, stops };
}

const isSubscribed = async (agent: LocalPlegwatch): Promise<boolean> =>
  (await metric(agent, 'plegwatch_stream_connected')) === 1;

async function stopFor(agent: number, { stopped, forMs }: PlannedStop): Promise<ProcessStop> {
  const reader = await waitFor('a reader runs', () => childrenOf(agent).find(exists));
  const pids = { agent: [agent], reader: [reader], both: [agent, reader] }[stopped];
  try {
    await freeze(...pids);
    const from = Date.now();
    if (forMs === 'untilKilled') await waitFor('the reader is killed', () => !exists(reader));
    else await pause(forMs);
    return { stopped, from, to: Date.now() };
  } finally {
    thaw(...pids);
  }
}

const STEPS_MS = [3_000, -5_000, 8_000, -2_000, -4_000];

/** Steps the wall clocks of the runtime and the agent by the same amount, again and again. */
export async function clockSteps({ runtime, clock }: FaultTarget): Promise<Interference> {
  const steps: ClockStep[] = [];
  let moved = 0;
  for (const _ of REPETITIONS) {
    for (const by of STEPS_MS) {
      moved += by;
      moveClock(clock, moved);
      runtime.stepWallClock(by);
      steps.push({ at: Date.now(), by });
      await pause(BETWEEN_MS);
    }
    await pause(CALM_MS);
  }
  return { ...NO_INTERFERENCE, steps };
}
