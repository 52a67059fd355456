/*
 * Bursts: so many events since the last relist that the next one is worth having earlier, but not without end.
 *
 * What lies between two lists is where containers live and end without having been listed. So where much happens lists come
 * closer together: each earlier one takes a token, and tokens come back slowly. A node on which much happens all day is
 * relisted at most a sixth more often at the default period.
 */
import { TokenBucket } from '../../platform/tokenBucket.ts';
import { type Mono, millis } from '../../protocol/units.ts';

/** Five pods that start, or two and a half that live and end. */
export const BURST_EVENTS = 20;
const EARLIER_RELISTS = { capacity: 2, interval: millis(30_000) };

export class Bursts {
  #events = 0;
  readonly #tokens = new TokenBucket(EARLIER_RELISTS);

  /** An event came. */
  heard(): void {
    this.#events += 1;
  }

  /** A relist begins: what was heard before will be in it. */
  relisting(): void {
    this.#events = 0;
  }

  /** Whether the next relist may be had earlier, which takes a token. */
  take(now: Mono): boolean {
    return this.#events >= BURST_EVENTS && this.#tokens.tryTake(now);
  }
}
