/*
 * For how long the oldest record of the current epoch has waited for its acknowledgement, from a bounded list of moments at which
 * records were written. Records of earlier epochs have waited since before this agent: their wait counts from its start.
 */
import { between, type Mono } from '../../protocol/units.ts';

interface WrittenAt {
  readonly seq: number;
  readonly at: Mono;
}

/** The time between two moments: the error of the age while the list is short. */
const FIRST_SPACING_MS = 1_000;
/** When there are more, every second one is dropped. */
const MAX_MOMENTS = 1_000;

export class UnackedAge {
  readonly #start: Mono;
  #moments: WrittenAt[] = [];
  #spacingMs = FIRST_SPACING_MS;
  #lastSeq = 0;

  constructor(start: Mono) {
    this.#start = start;
  }

  /** Records up to this seq of the current epoch are written. */
  written(lastSeq: number, now: Mono): void {
    if (lastSeq <= this.#lastSeq) return;
    const first = { seq: this.#lastSeq + 1, at: now };
    this.#lastSeq = lastSeq;
    const newest = this.#moments.at(-1);
    if (newest !== undefined && between(newest.at, now) < this.#spacingMs * 1_000) return;
    this.#moments.push(first);
    if (this.#moments.length <= MAX_MOMENTS) return;
    this.#moments = this.#moments.filter((_, i) => i % 2 === 0);
    this.#spacingMs *= 2;
  }

  /** In seconds, 0 if everything is acknowledged; at most one spacing too long. `earlier`: of any epoch before the current one. */
  seconds(unacked: { readonly ackedSeq: number; readonly earlier: boolean }, now: Mono): number {
    const { ackedSeq, earlier } = unacked;
    this.#forgetBefore(ackedSeq + 1);
    if (earlier) return between(this.#start, now) / 1e6;
    const oldest = this.#moments[0];
    if (ackedSeq >= this.#lastSeq || oldest === undefined) return 0;
    return between(oldest.at, now) / 1e6;
  }

  #forgetBefore(seq: number): void {
    const next = this.#moments.findIndex((moment) => moment.seq > seq);
    const oldest = (next === -1 ? this.#moments.length : next) - 1;
    if (oldest > 0) this.#moments.splice(0, oldest);
    if (this.#moments.length <= 1) this.#spacingMs = FIRST_SPACING_MS;
  }
}
