/*
 * The burst trigger: after many events the next relist comes early, because containers that live and end between two lists are never
 * listed.
 *
 * Each early relist takes a token, and tokens return slowly: a node that is busy all day is relisted at most a sixth more often at the
 * default period.
 */
import { TokenBucket } from '../../platform/tokenBucket.ts';
import { type Mono, millis } from '../../protocol/units.ts';

/** Five pods that start, or two and a half that live and end. */
export const BURST_EVENTS = 20;
const EARLY_RELISTS = { capacity: 2, interval: millis(30_000) };

export class BurstTrigger {
  #events = 0;
  readonly #tokens = new TokenBucket(EARLY_RELISTS);

  eventReceived(): void {
    this.#events += 1;
  }

  /** A relist starts, and will show what the events so far announced. */
  relistStarted(): void {
    this.#events = 0;
  }

  /** Whether the next relist may come early. If so, this takes a token. */
  tryTake(now: Mono): boolean {
    return this.#events >= BURST_EVENTS && this.#tokens.tryTake(now);
  }
}
