/*
 * An expectation: a stage was reached, so the runtime owes its event.
 */

import type { Mono } from '../../protocol/units.ts';
import type { Stage } from './stages.ts';

/** Why an event is due although it has not come. */
type ExpectationCause = 'unannounced_by_list' | 'sequence';

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
  /** The evidence of the proof, for the finding. */
  readonly evidence: string;
}

/** A proof that a stage was reached. */
export type Showing = Omit<StageProof, keyof LowerBound>;

export class Expectation {
  /** False where the stage may have been reached before the stream was proven to be ours. */
  readonly isCoverable: boolean;
  /** The number of the latest relist when it was proven. */
  readonly relist: number;
  isOverdue = false;
  /** The finding id that the overdue report carries, for the finding about it; null where none was made. */
  findingId: string | null = null;
  #proof: StageProof;
  #shown: StageProof | null = null;

  constructor(proof: StageProof, isCoverable: boolean, relist: number) {
    this.#proof = proof;
    this.isCoverable = isCoverable;
    this.relist = relist;
  }

  get proof(): StageProof {
    return this.#proof;
  }

  /** When a list or a status first showed what an event had proven; null where none did. */
  get shownAt(): Mono | null {
    return this.#shown?.to ?? null;
  }

  /**
   * Takes in another proof. An event may prove a stage before a list bounds it. If an event came twice either may be the true one, so the later one
   * is the upper bound.
   */
  renew(proof: StageProof): void {
    const { by, to } = proof;
    const isLater = by !== null && by === this.#proof.by && to > this.#proof.to;
    if (isLater) this.#proof = { ...this.#proof, to };
    if (by === null) this.#shown ??= proof;
    this.bind(proof);
  }

  /** Leaves the event out of the proof, if a list or a status shows the same; returns whether one does. */
  withoutEvent(): boolean {
    if (this.#shown === null) return false;
    const { cause, evidence, to } = this.#shown;
    this.#proof = { ...this.#proof, by: null, cause, evidence, to };
    return true;
  }

  /** The first lower bound that becomes known holds. */
  bind({ from, byWallClock }: LowerBound): void {
    if (this.#proof.from !== null) return;
    this.#proof = { ...this.#proof, from, byWallClock };
  }
}
