/*
 * How fast reports may be written, over the whole cluster: so many a second, with a burst of one second's worth.
 */
import { pause } from '../kube/backoff.ts';

export class WriteBudget {
  readonly #perSecond: number;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#tokens = perSecond;
    this.#at = now();
  }

  /** Takes one write and says how long to wait before it, in milliseconds. Those who wait are served in order. */
  reserve(): number {
    const now = this.#now();
    this.#tokens = Math.min(this.#perSecond, this.#tokens + ((now - this.#at) * this.#perSecond) / 1000);
    this.#at = now;
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens * 1000) / this.#perSecond;
  }

  /** Resolves when one more write is allowed, or when the signal comes. */
  async take(signal: AbortSignal): Promise<void> {
    const wait = this.reserve();
    if (wait > 0) await pause(wait, signal);
  }
}
