/*
 * Trouble with lists, told as gaps of the scope `list` with exact bounds.
 *
 *   well ── waited for longer than 5 s ──► slow ── answered ──► well
 *    │                                      │
 *    └────────────── failed ◄───────────────┘   failed ── answered ──► well; another reason is another gap
 *
 * A list that hangs is told while it hangs: what the kubelet suffers at the same time can be compared with it. `slow` lasts for
 * as long as lists were waited for, a failure from the list that failed to the next one that was answered.
 */
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { Gaps } from './gaps.ts';

/** A relist that takes longer is slow. Half of what the usual alert on a kubelet's relists allows (KubeletPlegDurationHigh, 10 s). */
const SLOW_LIST: Micros = millis(5_000);

/** One that takes longer hangs: the kubelet calls its runtime down after the same time (kubelet pkg/kubelet/runtime.go). */
const HANGING_LIST: Micros = millis(30_000);

export interface FailedList {
  readonly from: Mono;
  readonly at: Mono;
  readonly code: string;
}

export class ListTrouble {
  readonly #gaps: Gaps;
  /** Why the last relist failed; null where it did not. */
  #failure: string | null = null;
  #slow = false;

  constructor(gaps: Gaps) {
    this.#gaps = gaps;
  }

  /** Called now and then, with when the relist began that is under way; null where none is. Says whether it hangs. */
  waiting(since: Mono | null, now: Mono): boolean {
    if (since === null) return false;
    const waited = between(since, now);
    if (!this.#slow && waited > SLOW_LIST) {
      this.#slow = true;
      // Where lists fail anyway, that gap goes on.
      this.#gaps.open('list', 'slow', since, now);
    }
    return waited > HANGING_LIST;
  }

  answered(start: Mono, end: Mono): void {
    if (between(start, end) > SLOW_LIST) this.#slowUntil(end, start);
    else this.#gaps.close('list', start, end);
    this.#slow = false;
    this.#failure = null;
  }

  /** Whether this is another trouble than the relist before had. */
  failed({ from, at, code }: FailedList): boolean {
    const slow = this.#slow || between(from, at) > SLOW_LIST;
    this.#slow = false;
    // Another reason is another gap: each has its own cure.
    if (code === this.#failure) return false;
    if (slow) this.#slowUntil(at, from);
    else this.#gaps.close('list', from, at);
    this.#gaps.open('list', code.toLowerCase(), slow ? at : from, at);
    this.#failure = code;
    return true;
  }

  /** Ends the slow stretch that began at `from`, whether or not it was told while it lasted, and what failed before it. */
  #slowUntil(to: Mono, from: Mono): void {
    if (this.#failure === null) {
      this.#gaps.open('list', 'slow', from, to);
      this.#gaps.close('list', to, to);
    } else {
      this.#gaps.close('list', from, to);
      this.#gaps.past('list', 'slow', from, to, to);
    }
  }
}
