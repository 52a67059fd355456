/*
 * An allowance: something may be done so many times at once, and once more for every while that passes. What it does not
 * allow is counted.
 */
import type { Micros, Mono } from '../../protocol/units.ts';

export class Allowance {
  readonly #most: number;
  readonly #every: Micros;
  #left: number;
  #at: Mono;
  #refused = 0;

  constructor(most: number, every: Micros, now: Mono) {
    this.#most = most;
    this.#every = every;
    this.#left = most;
    this.#at = now;
  }

  /** How often it did not allow it. */
  get refused(): number {
    return this.#refused;
  }

  /** Whether it may be done once now. */
  take(now: Mono): boolean {
    this.#left = Math.min(this.#most, this.#left + Math.max(0, now - this.#at) / this.#every);
    this.#at = now;
    const allowed = this.#left >= 1;
    if (allowed) this.#left -= 1;
    else this.#refused += 1;
    return allowed;
  }
}
