/*
 * Churn: a number of slots, each of which plays one pod script after another until churn is stopped. Pods that exist then
 * remain, as they do when a runtime ends; a removal that has been announced is finished.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { monoNow } from '../../src/platform/clock.ts';
import { type PodAction, performIfPossible, type ScriptStep } from './podActions.ts';
import { type PodScriptOptions, podScriptOf } from './podScript.ts';
import type { SimulatedPods } from './pods.ts';
import { randomFor } from './random.ts';

export interface ChurnOptions extends Omit<PodScriptOptions, 'slot' | 'number' | 'fraction' | 'isFound'> {
  /** How many pods exist at the same time. */
  readonly pods: number;
  /** Whether the first pods were started by {@link startPods}. */
  readonly areStarted?: boolean;
}

/** Resolves when the runtime can perform the action; it may be down or frozen. */
export type RuntimeGate = (act: PodAction, signal: AbortSignal) => Promise<void>;

/** Starts the first pod of each slot at once. */
export function startPods(pods: SimulatedPods, options: ChurnOptions): void {
  for (let slot = 0; slot < options.pods; slot += 1) {
    for (const { act } of firstScriptOf({ ...options, areStarted: true }, slot).start)
      performIfPossible(pods, act);
  }
}

/** Plays pods until the signal is aborted, and leaves no timer behind. */
export async function runChurn(
  pods: SimulatedPods,
  options: ChurnOptions,
  signal: AbortSignal,
  gate: RuntimeGate = async () => {},
): Promise<void> {
  const play = async (act: PodAction) => {
    if (!signal.aborted) await gate(act, signal);
    await performIfPossible(pods, act);
  };
  const slots = Array.from({ length: options.pods }, (_, slot) => playSlot(play, options, slot, signal));
  try {
    await Promise.all(slots);
  } catch (error) {
    if (!signal.aborted) throw error;
    await Promise.allSettled(slots);
  }
}

async function playSlot(
  play: (act: PodAction) => Promise<void>,
  options: ChurnOptions,
  slot: number,
  signal: AbortSignal,
): Promise<void> {
  const random = randomFor(options.seed, 'slot', slot);
  await pause(random.between(0, Math.min(2000, options.meanMs / 2)), undefined, { signal });
  const { start, rest } = firstScriptOf(options, slot);
  await playScript(play, options.areStarted ? rest : [...start, ...rest], signal);
  for (let number = 1; ; number += 1) {
    await pause(random.between(5, 100), undefined, { signal });
    await playScript(play, podScriptOf({ ...options, slot, number }), signal);
  }
}

/**
 * The first pod of a slot, up to the first exit of a container and from then on. It is cut short, so that the pods do not all end together. Pods
 * that are started already end as often as all later ones.
 */
function firstScriptOf(
  options: ChurnOptions,
  slot: number,
): { start: readonly ScriptStep[]; rest: readonly ScriptStep[] } {
  const { areStarted: isFound = false } = options;
  const fraction = randomFor(options.seed, 'first', slot).between(isFound ? 0 : 0.2, 1);
  const script = podScriptOf({ ...options, slot, number: 0, fraction, isFound });
  const exit = script.findIndex(({ act }) => act.do === 'exitContainer');
  return { start: script.slice(0, exit), rest: script.slice(exit) };
}

async function playScript(
  play: (act: PodAction) => Promise<void>,
  script: Iterable<ScriptStep>,
  signal: AbortSignal,
): Promise<void> {
  const start = monoNow();
  for (const { at, act } of script) {
    // A sandbox whose removal stopped halfway would be listed for ever after its DELETED.
    const isBegun = act.do === 'finishRemoval';
    if (!isBegun) signal.throwIfAborted();
    const wait = at - (monoNow() - start) / 1000;
    if (wait > 0) {
      const paused = pause(wait, undefined, { signal });
      await (isBegun ? paused.catch(() => undefined) : paused);
    }
    await play(act);
  }
}
