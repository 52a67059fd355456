/*
 * Waiting for a condition in tests, instead of sleeping. The bounds are far beyond what a busy machine needs: only a hang exceeds them.
 */
import { setTimeout as delay } from 'node:timers/promises';

export const WITHIN_MS = 240_000;

/** The longest pause after an ask that is answered at once. */
const MAX_PAUSE_MS = 500;

/** Waits until the condition holds. */
export async function until(condition: () => boolean | undefined): Promise<void> {
  await waitFor(`${condition}`, condition);
}

/** Waits until the check, mostly of expectations, no longer throws. */
export async function passes(check: () => unknown): Promise<void> {
  const passed = async () => {
    await check();
    return true;
  };
  await waitFor(`${check}`, passed);
}

/**
 * Asks until the answer is neither false nor undefined, and returns it. An `ask` that throws is asked again. The pauses grow with the time that
 * passed and with that of an answer: who waits leaves the machine to those who work, and goes on at most a tenth, or an answer, later than it could.
 * Fails after `withinMs` with what was waited for and the last error.
 */
export async function waitFor<T>(
  what: string,
  ask: () => Promise<T | false | undefined> | T | false | undefined,
  withinMs = WITHIN_MS,
): Promise<T> {
  const began = performance.now();
  let last: unknown;
  for (let asked = began; asked < began + withinMs; asked = performance.now()) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    const now = performance.now();
    await delay(Math.max(now - asked, Math.min(MAX_PAUSE_MS, (now - began) / 10)));
  }
  throw new Error(`not within ${withinMs} ms: ${what}`, { cause: last });
}
