/*
 * Moments: the exact times of lives, put on the monotonic clock where that can be done for sure.
 *
 * The wall clock may be stepped between two looks at it. What was put there since the last look is then taken back, and what
 * rests on a time from before the step is void.
 */

import type { ExactTimes } from '../../protocol/observation.ts';
import { type Mono, shift } from '../../protocol/units.ts';
import type { Life } from './trackedContainer.ts';
import { REMEMBER } from './trackedContainers.ts';
import { STEP, WallClock } from './wallClock.ts';

export class Moments {
  readonly #wallClock = new WallClock();
  /** Lives whose times were put on the monotonic clock since the last look at the wall clock. */
  readonly #placed = new Set<Life>();
  /** When the wall clock was last found to have been stepped. */
  #stepped: Mono;

  constructor(start: Mono) {
    this.#stepped = start;
  }

  /** Looks at both clocks, and says whether the wall clock was stepped since the look before. */
  tick(now: Mono, wallMicros: number): boolean {
    const stepped = this.#wallClock.tick(now, wallMicros);
    if (stepped) {
      this.#stepped = now;
      // The step may have come before they were read.
      for (const life of this.#placed) {
        life.moments.fill(null);
        life.foreign.fill(false);
      }
    }
    this.#placed.clear();
    return stepped;
  }

  /** Takes in exact times. One that was known before stays known: an event may carry older statuses than the last did. */
  learn(life: Life, times: ExactTimes, now: Mono): void {
    const known = life.times;
    const newer = (key: 'createdNs' | 'startedNs' | 'finishedNs') =>
      times[key] > 0n ? times[key] : (known?.[key] ?? 0n);
    const { exitCode, reason } = times.finishedNs > 0n ? times : (known ?? times);
    life.times = {
      createdNs: newer('createdNs'),
      startedNs: newer('startedNs'),
      finishedNs: newer('finishedNs'),
      exitCode,
      reason,
    };
    this.#placed.add(life);
    for (const [i, ns] of [life.times.createdNs, life.times.startedNs, life.times.finishedNs].entries()) {
      life.foreign[i] ||= this.#wallClock.isOfAnother(ns, now);
      if (!life.foreign[i]) life.moments[i] ??= this.place(ns, now);
    }
  }

  /** The position of a wall-clock time in nanoseconds; null where it cannot be told. */
  place(ns: bigint, now: Mono): Mono | null {
    return this.#wallClock.place(ns, now);
  }

  /** Whether a time that was put on the monotonic clock holds from then on: a step voids what it spans. */
  holdsSince(at: Mono): boolean {
    return at >= this.#stepped;
  }

  /**
   * Since when an id that no list showed can have reached any stage: since it was created. Null where that is not known, or
   * so long ago that the id may have been followed before, and forgotten.
   */
  createdBound({ moments: [created] }: Life, now: Mono): Mono | null {
    const from = created === null ? null : shift(created, -STEP);
    return from === null || from < shift(now, -REMEMBER) ? null : from;
  }
}
