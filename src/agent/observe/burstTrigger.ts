/*
 * Bursts: so many events since the last relist that the next one is worth having earlier, but not without end.
 *
 * What lies between two lists is where containers live and end without having been listed. So where much happens lists come
 * closer together: each earlier one takes a token, and tokens come back slowly. A node on which much happens all day is
 * relisted at most a sixth more often at the default period.
 */
import { between, type Mono, millis, shift } from '../../protocol/units.ts';

/** Five pods that start, or two and a half that live and end. */
export const BURST_EVENTS = 20;
const MOST_TOKENS = 2;
/** So long it takes for a token to come back. */
const TOKEN = millis(30_000);

export class Bursts {
  #events = 0;
  #tokens = MOST_TOKENS;
  /** Up to then tokens have been given back. */
  #counted: Mono;

  constructor(now: Mono) {
    this.#counted = now;
  }

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
    if (this.#events < BURST_EVENTS) return false;
    const back = Math.floor(between(this.#counted, now) / TOKEN);
    this.#counted = this.#tokens + back >= MOST_TOKENS ? now : shift(this.#counted, back * TOKEN);
    this.#tokens = Math.min(MOST_TOKENS, this.#tokens + back);
    if (this.#tokens === 0) return false;
    this.#tokens -= 1;
    return true;
  }
}
