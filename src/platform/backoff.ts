/*
 * How long to wait after a failure: doubling with jitter up to a limit, back to the start after a success.
 */
import { setTimeout as delay } from 'node:timers/promises';

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** The wait after one more failure: between half and all of the present step, and never under `leastMs`. */
  next(leastMs = 0): number {
    const { firstMs, maxMs, random = Math.random } = this.#options;
    const step = Math.min(maxMs, firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return Math.max(leastMs, step * (0.5 + random() / 2));
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Waits, or returns at once when the signal comes. Never throws. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
