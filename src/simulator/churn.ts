/*
 * Churn: a number of slots, each of which plays one life after another until it is told to stop. What is left then
 * stays as it is, as pods do when a runtime ends.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { monoNow } from '../clock.ts';
import { type Act, lifeOf } from './lives.ts';
import { IllegalStep, type Pods } from './pods.ts';
import { randomFor } from './random.ts';

export interface ChurnOptions {
  readonly seed: number;
  /** Pods that live at the same time. */
  readonly pods: number;
  /** The mean length of a life, in milliseconds. */
  readonly meanMs: number;
  /** Restarts that a container has in one life, on average. */
  readonly restarts: number;
}

/** Plays lives until the signal is aborted; then returns, leaving no timer behind. */
export async function runChurn(pods: Pods, options: ChurnOptions, signal: AbortSignal): Promise<void> {
  const slots = Array.from({ length: options.pods }, (_, slot) => playSlot(pods, options, slot, signal));
  try {
    await Promise.all(slots);
  } catch (error) {
    if (!signal.aborted) throw error;
    await Promise.allSettled(slots);
  }
}

async function playSlot(pods: Pods, options: ChurnOptions, slot: number, signal: AbortSignal): Promise<void> {
  const random = randomFor(options.seed, 'slot', slot);
  // The first lives begin within two seconds and are met half-way, so that they do not all end together.
  await pause(random.between(0, Math.min(2000, options.meanMs / 2)), undefined, { signal });
  const part = random.between(0.2, 1);
  for (let number = 0; ; number += 1) {
    const start = monoNow();
    for (const { at, act } of lifeOf({ ...options, slot, number, ...(number === 0 ? { part } : {}) })) {
      const wait = at - (monoNow() - start) / 1000;
      if (wait > 0) await pause(wait, undefined, { signal });
      signal.throwIfAborted();
      playStep(pods, act);
    }
    await pause(random.between(5, 100), undefined, { signal });
  }
}

// The socket is open to others: what they have ended or removed before us cannot be done again, and is left out.
function playStep(pods: Pods, act: Act): void {
  try {
    perform(pods, act);
  } catch (error) {
    if (!(error instanceof IllegalStep)) throw error;
  }
}

/** Plays one step of a script. Throws IllegalStep where somebody else has interfered with the pod. */
export function perform(pods: Pods, act: Act): void {
  switch (act.do) {
    case 'runPod':
      pods.runPod(act.pod);
      return;
    case 'createContainer':
      pods.createContainer(act.sandbox, act.container);
      return;
    case 'exitContainer':
      pods.exitContainer(act.id, { exitCode: act.exitCode });
      return;
    case 'startContainer':
    case 'removeContainer':
      pods[act.do](act.id);
      return;
    default:
      pods[act.do](act.sandbox);
  }
}
