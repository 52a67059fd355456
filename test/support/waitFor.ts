/*
 * Waiting for a condition in tests, instead of sleeping. The bounds are far beyond what a busy machine needs: only a hang exceeds them.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** Waits until the condition holds. Fails after `timeoutMs`. */
export async function until(condition: () => boolean | undefined, timeoutMs = 50_000): Promise<void> {
  await waitFor(`${condition}`, condition, timeoutMs, 5);
}

/**
 * Asks every `intervalMs` until the answer is neither false nor undefined, and returns it. An `ask` that throws is asked again.
 * Fails after `withinMs` with what was waited for and the last error.
 */
export async function waitFor<T>(
  what: string,
  ask: () => Promise<T | false | undefined> | T | false | undefined,
  withinMs = 240_000,
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
