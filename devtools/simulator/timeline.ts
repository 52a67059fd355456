/*
 * Timers in virtual time. Advancing the timeline runs every callback that is due, each at its own moment.
 */
interface TimelineEntry {
  readonly at: number;
  readonly run: () => void;
}

export class Timeline {
  readonly #advance: (micros: number) => void;
  /** Latest first: the next one is the last. */
  readonly #entries: TimelineEntry[] = [];
  #now = 0;

  /** `advance` moves a clock by a number of microseconds. */
  constructor(advance: (micros: number) => void) {
    this.#advance = advance;
  }

  /** Milliseconds since its start. */
  get now(): number {
    return this.#now / 1000;
  }

  /** Runs a callback after `ms`. */
  later(ms: number, run: () => void): void {
    const at = this.#now + Math.max(0, Math.round(ms * 1000));
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.at ?? 0) > at) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, { at, run });
  }

  /** Moves the time by `ms`; a callback due exactly at the end runs too. */
  advance(ms: number): void {
    const end = this.#now + Math.round(ms * 1000);
    for (let next = this.#entries.at(-1); next !== undefined && next.at <= end; next = this.#entries.at(-1)) {
      this.#entries.pop();
      this.#moveTo(next.at);
      next.run();
    }
    this.#moveTo(end);
  }

  #moveTo(at: number): void {
    if (at <= this.#now) return;
    this.#advance(at - this.#now);
    this.#now = at;
  }
}
