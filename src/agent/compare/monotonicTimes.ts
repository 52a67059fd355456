/*
 * Puts the exact times of containers on the monotonic clock, where that can be done for sure.
 *
 * The wall clock may be stepped between two ticks. Times placed since the last tick are then taken back, and conclusions from a time before the step
 * are void.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { ExactTimes } from '../../protocol/observation.ts';
import { type Mono, shift } from '../../protocol/units.ts';
import type { ContainerTimes } from './containerTimes.ts';
import { REMEMBERED_FOR } from './trackedContainers.ts';
import { CLOCK_STEP, WallClock } from './wallClock.ts';

export class MonotonicTimes {
  readonly #wallClock = new WallClock();
  /** Times that were placed since the last tick. */
  readonly #placed = new Set<ContainerTimes>();
  /** When the wall clock was last found to have been stepped. */
  #stepped: Mono;

  constructor(start: Mono) {
    this.#stepped = start;
  }

  /** Reads both clocks, and returns whether the wall clock was stepped since the last tick. */
  tick(now: Mono, wallMicros: number): boolean {
    const stepped = this.#wallClock.tick(now, wallMicros);
    if (stepped) {
      this.#stepped = now;
      // The step may have come before they were read.
      for (const times of this.#placed) times.unplace();
    }
    this.#placed.clear();
    return stepped;
  }

  learn(known: ContainerTimes, times: ExactTimes, profile: PlegProfile, now: Mono): void {
    this.#placed.add(known);
    known.learn(times, profile, this.#wallClock, now);
  }

  /** The position of a wall-clock time in nanoseconds; null where it cannot be determined. */
  place(ns: bigint, now: Mono): Mono | null {
    return this.#wallClock.place(ns, now);
  }

  /** Whether a position on the monotonic clock still holds: a step voids what it spans. */
  holdsSince(at: Mono): boolean {
    return at >= this.#stepped;
  }

  /**
   * The earliest time at which an id that no list showed can have reached any stage: its creation. Null where that is not
   * known, or so long ago that the id may have been tracked before, and forgotten.
   */
  creationBound({ created }: ContainerTimes, now: Mono): Mono | null {
    const from = created === null ? null : shift(created, -CLOCK_STEP);
    return from === null || from < shift(now, -REMEMBERED_FOR) ? null : from;
  }
}
