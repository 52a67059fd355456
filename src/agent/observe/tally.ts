/*
 * Tally: how much came of what may come as fast as a hostile runtime can send it, for a log that names it once a minute.
 */
import { monoNow } from '../../platform/clock.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';

const SAID_EVERY = millis(60_000);

export class Tally {
  readonly #say: (count: number) => void;
  #said: Mono | null = null;
  #unsaid = 0;

  /** `say`: writes a line of the log about so many. */
  constructor(say: (count: number) => void) {
    this.#say = say;
  }

  count(more: number): void {
    this.#unsaid += more;
    this.sayDue();
  }

  /** Says what was not said yet, where the last line is a minute old. */
  sayDue(): void {
    if (this.#said === null || between(this.#said, monoNow()) >= SAID_EVERY) this.sayRest();
  }

  /** Says what was not said yet. */
  sayRest(): void {
    if (this.#unsaid === 0) return;
    this.#say(this.#unsaid);
    this.#said = monoNow();
    this.#unsaid = 0;
  }
}
