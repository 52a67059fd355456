/*
 * Troubles: what befalls a runtime and its agent from outside while lives go on. Each is a plan that ends by itself, with a
 * calm stretch after each round, and says what it did.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import type { SimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { type ClockStep, type Interference, type Stop, UNTROUBLED } from './groundTruth.ts';
import { moveClock } from './movedClock.ts';
import { childrenOf, exists, freeze, thaw } from './sigstop.ts';
import { waitFor } from './waitFor.ts';

export interface Scene {
  readonly agent: LocalPlegwatch;
  readonly runtime: SimulatedRuntime;
  /** The file that moves the agent's wall clock. */
  readonly clock: string;
}

export type Trouble = (scene: Scene) => Promise<Interference>;

const ROUNDS = [1, 2];
/** Long enough for an event to be overdue and to get its verdict. */
const CALM = 14_000;
const BETWEEN = 2_500;

type Standstill = Pick<Stop, 'who'> & { readonly forMs: number };

/** The third time the reader is silent for so long that it is killed. */
const STANDSTILLS: readonly Standstill[] = [
  { who: 'agent', forMs: 2_500 },
  { who: 'reader', forMs: 1_600 },
  { who: 'reader', forMs: 3_000 },
  { who: 'both', forMs: 3_000 },
];

/** The agent, its reader or both do not run for a while, again and again. */
export async function standstills({ agent }: Scene): Promise<Interference> {
  const stops: Stop[] = [];
  for (const _ of ROUNDS) {
    for (const each of STANDSTILLS) {
      stops.push(await standStill(agent.pid, each));
      await pause(BETWEEN);
    }
    await pause(CALM);
  }
  return { ...UNTROUBLED, stops };
}

async function standStill(agent: number, { who, forMs }: Standstill): Promise<Stop> {
  const reader = await waitFor('a reader runs', () => childrenOf(agent).find(exists));
  const pids = { agent: [agent], reader: [reader], both: [agent, reader] }[who];
  try {
    await freeze(...pids);
    const from = Date.now();
    await pause(forMs);
    return { who, from, to: Date.now() };
  } finally {
    thaw(...pids);
  }
}

const STEPS = [3_000, -5_000, 8_000, -2_000, -4_000];

/** The wall clock of the machine is set, again and again: that of the runtime and of the agent, by the same at once. */
export async function clockSteps({ runtime, clock }: Scene): Promise<Interference> {
  const steps: ClockStep[] = [];
  let moved = 0;
  for (const _ of ROUNDS) {
    for (const by of STEPS) {
      moved += by;
      moveClock(clock, moved);
      runtime.stepWallClock(by);
      steps.push({ at: Date.now(), by });
      await pause(BETWEEN);
    }
    await pause(CALM);
  }
  return { ...UNTROUBLED, steps };
}
