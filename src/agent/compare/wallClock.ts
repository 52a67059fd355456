/*
 * The wall clock: puts its times (of containers, in the runtime's words) on the monotonic clock, where that can be done.
 *
 * Between two steps both clocks run alike. A time that was read before a step cannot be placed afterwards, and neither can
 * one that may have been: after a step back the clock shows the same times once more.
 */
import { MAX_OFFSET } from '../../protocol/record.ts';
import { type Micros, type Mono, millis, mono } from '../../protocol/units.ts';

/**
 * The wall clock was stepped where its distance to the monotonic clock moved by more than this, at once or little by little:
 * so far at most can a time be off that was placed.
 */
export const STEP: Micros = millis(500);
/** Between two ticks a time may seem to lie ahead by this much; more means a step that no tick has seen yet. */
const AHEAD: Micros = millis(100);

/** An answer is taken with the time of its question, and what it tells may be younger. */
const FAR_AHEAD: Micros = millis(10_000);

/** So many stretches are told apart; of a clock that is set over and over the oldest are taken as one. */
const MOST_PAST = 100;

/** What a wall clock showed between two steps. */
interface Shown {
  readonly from: number;
  readonly to: number;
}

const spanning = (all: readonly Shown[]): Shown => ({
  from: Math.min(...all.map(({ from }) => from)),
  to: Math.max(...all.map(({ to }) => to)),
});

export class WallClock {
  /** Wall clock less monotonic clock, in microseconds; null before the first tick. */
  #distance: number | null = null;
  /** The least and the most that it was since the last step. */
  #least = Number.POSITIVE_INFINITY;
  #most = Number.NEGATIVE_INFINITY;
  /** What the clock showed first since the last step. */
  #from = Number.NEGATIVE_INFINITY;
  /** What it showed between earlier steps. */
  readonly #past: Shown[] = [];

  /** Takes a reading of both clocks, and says whether the wall clock was stepped since the one before. */
  tick(now: Mono, wallMicros: number): boolean {
    const distance = wallMicros - now;
    const shownMost = now + this.#most;
    this.#distance = distance;
    this.#least = Math.min(this.#least, distance);
    this.#most = Math.max(this.#most, distance);
    if (this.#most - this.#least <= STEP) return false;
    this.#past.push({ from: this.#from, to: shownMost });
    if (this.#past.length > MOST_PAST) this.#past.splice(0, 2, spanning(this.#past.slice(0, 2)));
    this.#from = wallMicros;
    this.#least = distance;
    this.#most = distance;
    return true;
  }

  /** Whether a time in nanoseconds is of another clock: it lies further ahead of `now` than any answer can have been waited for. */
  isOfAnother(ns: bigint, now: Mono): boolean {
    return this.#distance !== null && Number(ns / 1000n) - this.#distance > now + FAR_AHEAD;
  }

  /**
   * The position of a wall-clock time in nanoseconds; null where it cannot be told, lies after `now`, or so long before it
   * that no record may name it: a container may be years old, and a runtime may say that it is from 1970.
   */
  place(ns: bigint, now: Mono): Mono | null {
    if (this.#distance === null || ns <= 0n) return null;
    const micros = Number(ns / 1000n);
    if (micros < this.#from || this.#past.some(({ from, to }) => micros >= from && micros <= to)) return null;
    const at = mono(micros - this.#distance);
    return at > now + AHEAD || at < now - MAX_OFFSET ? null : at;
  }
}
