/*
 * Waiting for a condition in tests, instead of sleeping. The bounds are far beyond what a busy machine needs: only a hang exceeds them.
 */
import { setTimeout as delay } from 'node:timers/promises';

export const WITHIN_MS = 240_000;

/** Waits until the condition holds. */
export async function until(condition: () => boolean | undefined): Promise<void> {
  await waitFor(`${condition}`, condition, WITHIN_MS, 5);
}

/** Waits until the check, mostly of expectations, no longer throws. */
export async function passes(check: () => unknown): Promise<void> {
  const passed = async () => {
    await check();
    return true;
  };
  await waitFor(`${check}`, passed, WITHIN_MS, 25);
}

/**
 * Asks every `intervalMs` until the answer is neither false nor undefined, and returns it. An `ask` that throws is asked again.
 * Fails after `withinMs` with what was waited for and the last error.
 */
export async function waitFor<T>(
  what: string,
  ask: () => Promise<T | false | undefined> | T | false | undefined,
  withinMs = WITHIN_MS,
  intervalMs = 50,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await delay(intervalMs);
  }
  throw new Error(`not within ${withinMs} ms: ${what}`, { cause: last });
}
