/*
 * How often something may be done to the API server, over the whole cluster: so many times a second, with a burst of one
 * second's worth where nothing else is said.
 */
import { pause } from '../platform/backoff.ts';

export class Budget {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(perSecond: number, burst = perSecond, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#now = now;
    this.#tokens = burst;
    this.#at = now();
  }

  /** Takes one and says how long to wait before it, in milliseconds. Those who wait are served in order. */
  reserve(): number {
    this.#refill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens * 1000) / this.#perSecond;
  }

  /** Takes one where that needs no wait. */
  takeNow(): boolean {
    this.#refill();
    const there = this.#tokens >= 1;
    if (there) this.#tokens -= 1;
    return there;
  }

  /** Resolves when one more is allowed, or when the signal comes. */
  async take(signal: AbortSignal): Promise<void> {
    const wait = this.reserve();
    if (wait > 0) await pause(wait, signal);
  }

  #refill(): void {
    const now = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) * this.#perSecond) / 1000);
    this.#at = now;
  }
}
