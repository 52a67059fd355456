/*
 * Suspension: the machine was suspended, and its monotonic clock stopped. Later records would be dated too early by as much, so the epoch ends where
 * it was last known to run, and the next one is dated by the clock of then.
 */
import { bootNow, monoNow } from '../../platform/clock.ts';
import { between, type Micros, type Mono, millis, mono, shift } from '../../protocol/units.ts';

/** Far more than the two clocks can be read apart by chance, and less than anybody suspends a machine for. */
const MIN_SUSPENSION: Micros = millis(1_000);
/** The first readings, of which one may have come between two others of a busy machine. */
const FIRST_READINGS = 5;

export class Suspension {
  readonly #readBoot: () => Mono | null;
  readonly #readMono: () => Mono;
  /** By how much the boot-time clock was ahead, at most: a process that is stopped between the two readings sees less. */
  #ahead: Micros | null = null;
  #lastRan: Mono;
  #since: Mono | null = null;

  constructor(readBoot: () => Mono | null = bootNow, readMono: () => Mono = monoNow) {
    this.#readBoot = readBoot;
    this.#readMono = readMono;
    this.#lastRan = readMono();
    for (let readings = 0; readings < FIRST_READINGS; readings += 1) this.check();
  }

  /** When the machine was last known to run before it was suspended; null if it was not. */
  check(): Mono | null {
    const boot = this.#readBoot();
    const now = this.#readMono();
    if (boot === null || this.#since !== null) return this.#since;
    const ahead = between(now, boot);
    if (this.#ahead !== null && ahead > shift(mono(this.#ahead), MIN_SUSPENSION)) this.#since = this.#lastRan;
    if (this.#ahead === null || ahead > this.#ahead) this.#ahead = ahead;
    this.#lastRan = now;
    return this.#since;
  }
}
