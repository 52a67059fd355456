/*
 * List gaps: when lists were slow or failed, as gaps of the scope `list` with exact bounds.
 *
 *   healthy ── no answer for more than 5 s ──► slow ── answer ──► healthy
 *      │                                        │
 *      └───────────────── failed ◄──────────────┘   failed ── answer ──► healthy; another reason is another gap
 *
 * A list that hangs is reported while it hangs, so that it can be compared with what the kubelet suffers at the same time. `slow` lasts
 * while a list is waited for; a failure lasts from the list that failed to the next one that is answered.
 */
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { Gaps } from './gaps.ts';

/** A relist that takes longer is slow: half of what the usual alert on a kubelet's relists allows (KubeletPlegDurationHigh, 10 s). */
export const SLOW_LIST: Micros = millis(5_000);

/** One that takes longer hangs: the kubelet calls its runtime down after the same time (kubelet pkg/kubelet/runtime.go). */
const HANGING_LIST: Micros = millis(30_000);

export interface FailedList {
  readonly from: Mono;
  readonly at: Mono;
  readonly code: string;
}

export class ListGaps {
  readonly #gaps: Gaps;
  /** Why the last relist failed; null if it succeeded. */
  #failure: string | null = null;
  #slow = false;

  constructor(gaps: Gaps) {
    this.#gaps = gaps;
  }

  /** To be called regularly with the start of the running relist, or null. Returns whether it hangs. */
  checkRunning(start: Mono | null, now: Mono): boolean {
    if (start === null) return false;
    const waited = between(start, now);
    if (!this.#slow && waited > SLOW_LIST) {
      this.#slow = true;
      // If lists fail already, that gap stays open.
      this.#gaps.open('list', 'slow', start, now);
    }
    return waited > HANGING_LIST;
  }

  answered(start: Mono, end: Mono): void {
    if (between(start, end) > SLOW_LIST) this.#closeSlow(end, start);
    else this.#gaps.close('list', start, end);
    this.#slow = false;
    this.#failure = null;
  }

  /** Returns whether the reason differs from that of the relist before. */
  failed({ from, at, code }: FailedList): boolean {
    const slow = this.#slow || between(from, at) > SLOW_LIST;
    this.#slow = false;
    // Each reason has its own remedy, and so its own gap.
    if (code === this.#failure) return false;
    if (slow) this.#closeSlow(at, from);
    else this.#gaps.close('list', from, at);
    this.#gaps.open('list', code.toLowerCase(), slow ? at : from, at);
    this.#failure = code;
    return true;
  }

  /** Ends the slow stretch that began at `from`, reported yet or not, and the failure before it. */
  #closeSlow(to: Mono, from: Mono): void {
    if (this.#failure === null) {
      this.#gaps.open('list', 'slow', from, to);
      this.#gaps.close('list', to, to);
    } else {
      this.#gaps.close('list', from, to);
      this.#gaps.recordClosed('list', 'slow', from, to, to);
    }
  }
}
