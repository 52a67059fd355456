/*
 * An expectation: a stage was reached, so the runtime owes its event.
 */

import type { Mono } from '../../protocol/units.ts';
import type { Stage } from './stages.ts';

/** Why an event is due although it has not come. */
export type ExpectationCause = 'unannounced_by_list' | 'sequence';

/** The earliest time at which a stage can have been reached; null where it is not known. */
export interface LowerBound {
  readonly from: Mono | null;
  /** True where `from` was computed from a wall-clock time: a step of that clock voids it. */
  readonly byWallClock: boolean;
}

/** One proof that a stage was reached between `from` and `to`. */
export interface StageProof extends LowerBound {
  /** The stage whose event is the proof; null for a list or an exact time. */
  readonly by: Stage | null;
  readonly to: Mono;
  readonly cause: ExpectationCause;
  /** What the proof rests on, for the finding. */
  readonly evidence: string;
}

export class Expectation implements StageProof {
  /** False where the stage may have been reached before the stream was proven to be ours. */
  readonly isCoverable: boolean;
  /** The number of the latest relist when it was proven. */
  readonly relist: number;
  #by: Stage | null;
  #cause: ExpectationCause;
  #evidence: string;
  #from: Mono | null;
  #to: Mono;
  #byWallClock: boolean;
  #shown: StageProof | null = null;
  #overdue = false;
  #findingId: string | null = null;

  constructor(proof: StageProof, isCoverable: boolean, relist: number) {
    this.#by = proof.by;
    this.#cause = proof.cause;
    this.#evidence = proof.evidence;
    this.isCoverable = isCoverable;
    this.relist = relist;
    this.#from = proof.from;
    this.#to = proof.to;
    this.#byWallClock = proof.byWallClock;
  }

  get by(): Stage | null {
    return this.#by;
  }

  get cause(): ExpectationCause {
    return this.#cause;
  }

  get evidence(): string {
    return this.#evidence;
  }

  get from(): Mono | null {
    return this.#from;
  }

  get to(): Mono {
    return this.#to;
  }

  get byWallClock(): boolean {
    return this.#byWallClock;
  }

  /** When a list or a status first showed what an event had proven; null where none did. */
  get shownAt(): Mono | null {
    return this.#shown?.to ?? null;
  }

  get isOverdue(): boolean {
    return this.#overdue;
  }

  /** The finding id that the overdue report carries, for the finding about it; null where none was made. */
  get findingId(): string | null {
    return this.#findingId;
  }

  becomeOverdue(): void {
    this.#overdue = true;
  }

  reportedAs(findingId: string): void {
    this.#findingId = findingId;
  }

  /**
   * Takes in another proof. An event may prove a stage before a list bounds it. Of an event that came twice either may be the
   * true one, so the later one is the upper bound.
   */
  renew(proof: StageProof): void {
    const { by, to } = proof;
    if (by !== null && by === this.#by && to > this.#to) this.#to = to;
    if (by === null) this.#shown ??= proof;
    this.bind(proof);
  }

  /** Leaves the event out of the proof, if a list or a status shows the same; returns whether one does. */
  withoutEvent(): boolean {
    if (this.#shown === null) return false;
    this.#by = null;
    this.#cause = this.#shown.cause;
    this.#evidence = this.#shown.evidence;
    this.#to = this.#shown.to;
    return true;
  }

  /** The first lower bound that becomes known holds. */
  bind({ from, byWallClock }: LowerBound): void {
    if (this.#from !== null) return;
    this.#from = from;
    this.#byWallClock = byWallClock;
  }
}
