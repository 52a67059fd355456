/*
 * How long to wait: after failures, doubling up to a limit; between regular runs, varied so that agents and controllers do not
 * act all at once.
 */

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

/** `first`, doubled `times` times, at most `max`. In the unit of its arguments. */
export const doubled = (first: number, max: number, times: number): number =>
  Math.min(max, first * 2 ** Math.min(times, 30));

/** A period varied by up to `share` of itself in both directions. */
export const jittered = (period: number, share: number, random: () => number = Math.random): number =>
  period * (1 + share * (2 * random() - 1));

/** The waits after failures: doubling with jitter, from the start again after {@link reset}. */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Counts a failure and returns the wait in milliseconds: half to all of the current step, but at least `minMs`. */
  next(minMs = 0): number {
    const { firstMs, maxMs, random = Math.random } = this.#options;
    const step = doubled(firstMs, maxMs, this.#failures);
    this.#failures += 1;
    return Math.max(minMs, step * (0.5 + random() / 2));
  }

  reset(): void {
    this.#failures = 0;
  }
}
