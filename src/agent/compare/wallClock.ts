/*
 * The wall clock: puts its times (those of containers, from the runtime) on the monotonic clock, where that can be done.
 *
 * Between two steps both clocks run alike. A time read before a step cannot be placed afterwards, and neither can a time that
 * may have been: after a step back the clock shows the same times once more.
 */
import { MAX_OFFSET } from '../../protocol/record.ts';
import { type Micros, type Mono, millis, mono } from '../../protocol/units.ts';

/**
 * The wall clock counts as stepped when its distance to the monotonic clock moved by more than this, at once or little by
 * little. So a placed time may be off by this much at most.
 */
export const CLOCK_STEP: Micros = millis(500);
/** Between two ticks a time may seem to lie ahead by this much; more means a step that no tick has seen yet. */
const MAX_AHEAD: Micros = millis(100);

/** A status answer carries the time of its query, and what it reports may be younger. */
const MAX_AHEAD_OF_QUERY: Micros = millis(10_000);

/** Ranges between steps that are kept apart; where a clock is set over and over, the oldest are merged. */
const MAX_PAST_RANGES = 100;

interface WallClockRange {
  readonly from: number;
  readonly to: number;
}

const spanning = (ranges: readonly WallClockRange[]): WallClockRange => ({
  from: Math.min(...ranges.map(({ from }) => from)),
  to: Math.max(...ranges.map(({ to }) => to)),
});

export class WallClock {
  /** Wall clock less monotonic clock, in microseconds; null before the first tick. */
  #distance: number | null = null;
  /** The least and the most that it was since the last step. */
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  /** The first time that the clock showed since the last step. */
  #from = Number.NEGATIVE_INFINITY;
  /** The times that it showed between earlier steps. */
  readonly #past: WallClockRange[] = [];

  /** Takes a reading of both clocks, and returns whether the wall clock was stepped since the last one. */
  tick(now: Mono, wallMicros: number): boolean {
    const distance = wallMicros - now;
    const shownUntil = now + this.#max;
    this.#distance = distance;
    this.#min = Math.min(this.#min, distance);
    this.#max = Math.max(this.#max, distance);
    if (this.#max - this.#min <= CLOCK_STEP) return false;
    this.#past.push({ from: this.#from, to: shownUntil });
    if (this.#past.length > MAX_PAST_RANGES) this.#past.splice(0, 2, spanning(this.#past.slice(0, 2)));
    this.#from = wallMicros;
    this.#min = distance;
    this.#max = distance;
    return true;
  }

  /** Whether a time in nanoseconds is of another clock: it lies further ahead of `now` than any answer can have taken. */
  isOfAnother(ns: bigint, now: Mono): boolean {
    return this.#distance !== null && Number(ns / 1000n) - this.#distance > now + MAX_AHEAD_OF_QUERY;
  }

  /**
   * The position of a wall-clock time in nanoseconds; null where it cannot be determined, lies after `now`, or so long before
   * it that no record may carry it: a container may be years old, and a runtime may date it to 1970.
   */
  place(ns: bigint, now: Mono): Mono | null {
    if (this.#distance === null || ns <= 0n) return null;
    const micros = Number(ns / 1000n);
    if (micros < this.#from || this.#past.some(({ from, to }) => micros >= from && micros <= to)) return null;
    const at = mono(micros - this.#distance);
    return at > now + MAX_AHEAD || at < now - MAX_OFFSET ? null : at;
  }
}
