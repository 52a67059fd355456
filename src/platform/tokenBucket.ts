/*
 * A token bucket: `capacity` actions at once, then one per `interval`. Pure: callers pass the monotonic time.
 */
import { type Micros, type Mono, millis, mono } from '../protocol/units.ts';

export interface TokenBucketOptions {
  readonly capacity: number;
  /** How long one token takes to come back. */
  readonly interval: Micros;
}

/** The interval of a rate. */
export const perSecond = (rate: number): Micros => millis(1000 / rate);

export class TokenBucket {
  readonly #capacity: number;
  readonly #interval: Micros;
  /** When every token is back, if none is taken until then. This one figure is the whole state, so nothing is rounded. */
  #fullAt = mono(Number.NEGATIVE_INFINITY);
  #denied = 0;

  constructor({ capacity, interval }: TokenBucketOptions) {
    this.#capacity = capacity;
    this.#interval = interval;
  }

  /** How often {@link tryTake} found no token. */
  get denied(): number {
    return this.#denied;
  }

  /** Whether there is a token, which stays. */
  has(now: Mono): boolean {
    return this.#fullAt - now <= (this.#capacity - 1) * this.#interval;
  }

  tryTake(now: Mono): boolean {
    if (!this.has(now)) {
      this.#denied += 1;
      return false;
    }
    this.reserve(now);
    return true;
  }

  /** Takes a token, which may be one that is still to come back, and returns how long to wait for it. */
  reserve(now: Mono): Micros {
    this.#fullAt = mono(Math.max(this.#fullAt, now) + this.#interval);
    return Math.max(0, this.#fullAt - now - this.#capacity * this.#interval) as Micros;
  }
}
