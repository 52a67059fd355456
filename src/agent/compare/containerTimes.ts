/*
 * The exact times of one container or sandbox: as its status has them, and where they lie on the monotonic clock.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { ExactTimes } from '../../protocol/observation.ts';
import type { Mono } from '../../protocol/units.ts';
import type { WallClock } from './wallClock.ts';

export class ContainerTimes {
  #exact: ExactTimes | null = null;
  #isOfFailedStart = false;
  #isEndExact = false;
  /** Created, started and finished on the monotonic clock; null where that is not known for sure. */
  readonly #positions: [Mono | null, Mono | null, Mono | null] = [null, null, null];
  /** Which of them lay far ahead when first seen: they are of a clock that was set back since, whatever it shows later. */
  readonly #foreign: [boolean, boolean, boolean] = [false, false, false];

  /** As its statuses had them; null before the first. */
  get exact(): ExactTimes | null {
    return this.#exact;
  }

  get created(): Mono | null {
    return this.#positions[0];
  }

  get started(): Mono | null {
    return this.#positions[1];
  }

  get finished(): Mono | null {
    return this.#positions[2];
  }

  /** Until then it ran for sure; null where only the time is known at which the runtime noticed its end. */
  get ranUntil(): Mono | null {
    return this.#isEndExact ? this.finished : null;
  }

  /** Whether a container ever ran: it has a `started_at`, and not that of a failed start. */
  get proveRun(): boolean {
    return this.#exact !== null && this.#exact.startedNs > 0n && !this.#isOfFailedStart;
  }

  /** Whether a container ended without ever having run. Before the end its times may have been taken before it started. */
  get proveFailedStart(): boolean {
    return this.#exact !== null && this.#exact.finishedNs > 0n && this.#isOfFailedStart;
  }

  /** Whether it is a sandbox whose containers share a PID namespace. */
  get hasSharedPid(): boolean {
    return this.#exact?.trait === 'shared_pid';
  }

  /** Takes in exact times. A time that was known stays known: an event may carry older statuses than the one before. */
  learn(times: ExactTimes, profile: PlegProfile, wallClock: WallClock, now: Mono): void {
    const known = this.#exact;
    const newer = (key: 'createdNs' | 'startedNs' | 'finishedNs') =>
      times[key] > 0n ? times[key] : (known?.[key] ?? 0n);
    const { exitCode, reason } = times.finishedNs > 0n ? times : (known ?? times);
    const trait = times.trait ?? known?.trait;
    const exact: ExactTimes = {
      ...(trait === undefined ? {} : { trait }),
      createdNs: newer('createdNs'),
      startedNs: newer('startedNs'),
      finishedNs: newer('finishedNs'),
      exitCode,
      reason,
    };
    this.#exact = exact;
    this.#isOfFailedStart = isOfFailedStart(exact, profile);
    this.#isEndExact = !profile.exitsDatedWhenNoticed;
    for (const [i, ns] of [exact.createdNs, exact.startedNs, exact.finishedNs].entries()) {
      this.#foreign[i] ||= wallClock.isOfAnother(ns, now);
      if (!this.#foreign[i]) this.#positions[i] ??= wallClock.place(ns, now);
    }
  }

  /** The wall clock may have been stepped before they were placed. */
  unplace(): void {
    this.#positions.fill(null);
    this.#foreign.fill(false);
  }
}

/**
 * Whether `started_at` is that of a failed start: 0, or equal to both other times (containerd writes either). CRI-O sets all three
 * to the creation, and then `finished_at` to when the process ended (cri-o internal/oci/container.go, SetStartFailed).
 */
function isOfFailedStart({ createdNs, startedNs, finishedNs }: ExactTimes, profile: PlegProfile): boolean {
  if (startedNs <= 0n) return true;
  return startedNs === createdNs && (profile.failedStartsEndLater || startedNs === finishedNs);
}
