/*
 * Tally: how much came of what may come as fast as a hostile runtime can send it, for a log that names it once a minute.
 */
import { monoNow } from '../clock.ts';
import { between, type Mono, millis } from '../evidence/units.ts';

const SAID_EVERY = millis(60_000);

export class Tally {
  #said: Mono | null = null;
  #unsaid = 0;

  /** Adds. Returns how much is to be said now, since it was last said; null where that was less than a minute ago. */
  count(more: number): number | null {
    const now = monoNow();
    this.#unsaid += more;
    if (this.#said !== null && between(this.#said, now) < SAID_EVERY) return null;
    const said = this.#unsaid;
    this.#said = now;
    this.#unsaid = 0;
    return said;
  }
}
