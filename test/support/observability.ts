/*
 * Which stretches of a run a store's evidence covers: where relists came often and no gap is recorded, a finding can be asked
 * for. On a busy machine nothing may be left to ask for.
 */
import type { LifecycleTransition, TransitionFact } from '../../devtools/simulator/groundTruth.ts';
import type { EventType } from '../../src/protocol/record.ts';
import { BLUR } from './completeness.ts';
import type { RuntimeTruth, Timed, TimeRange } from './groundTruth.ts';
import type { SeenRelist } from './relists.ts';
import type { StoredEvidence, StoredGap } from './storedEvidence.ts';

/** More than three relist periods: whatever lasts this long is in at least two lists. */
export const SEEN = 1_800;
/** Relists further apart than this, as on a busy machine, show too little to expect a finding. */
const RARE = 1_200;
/** The stage from which a relist shows that a transition is still to come, and the one from which it no longer shows it. */
const SHOWN_BY: Readonly<Record<LifecycleTransition, readonly [EventType | null, EventType | null]>> = {
  created: [null, 'DELETED'],
  started: [null, 'STOPPED'],
  stopped: ['STARTED', 'DELETED'],
  deleted: ['CREATED', null],
};

export class Observability {
  readonly #truth: RuntimeTruth;
  readonly #evidence: StoredEvidence;
  /** Stretches with too few relists. */
  readonly #rare: readonly TimeRange[];

  constructor(truth: RuntimeTruth, evidence: StoredEvidence) {
    this.#truth = truth;
    this.#evidence = evidence;
    const { relists } = truth;
    this.#rare = relists
      .map(({ from: to }, i) => ({ from: relists[i - 1]?.from ?? to, to }))
      .filter(({ from, to }) => to - from > RARE);
  }

  /** Subscribed, with frequent relists, and without any gap or step of the wall clock. */
  isClear(from: number, to: number): boolean {
    const steps = this.#truth.steps.map(({ at }) => ({ from: at, to: at }));
    const holes = [...this.#evidence.gaps, ...this.#rare, ...steps];
    return from > this.#truth.firstSubscribed && this.#isFree(holes, from, to);
  }

  /** Subscribed, and without a gap of the stream that the agent recorded. */
  isWatched(from: number, to: number): boolean {
    return from > this.#truth.firstSubscribed && this.#isFree(this.#streamGaps, from, to);
  }

  /** Watched, and a relist since the last gap has shown the state of everything: a finding can accuse. */
  isCovered(from: number, to: number): boolean {
    const gone = this.#streamGaps.map((gap) => gap.to ?? this.#truth.end).filter((end) => end < to);
    const since = Math.max(this.#truth.firstSubscribed, ...gone) + BLUR;
    const said = this.#truth.relists.some((each) => each.from > since && each.to + SEEN < to);
    return said && this.isWatched(from, to);
  }

  isStepped(from: number, to: number): boolean {
    return this.#truth.steps.some(({ at }) => at > from && at < to);
  }

  /** Without a gap of the stream, to the millisecond. */
  isHeard(from: number, to: number): boolean {
    return this.#streamGaps.every((gap) => from > (gap.to ?? this.#truth.end) - BLUR || to < gap.from + BLUR);
  }

  #isFree(holes: readonly TimeRange[], from: number, to: number): boolean {
    return holes.every((hole) => from > (hole.to ?? this.#truth.end) + SEEN || to < hole.from);
  }

  get #streamGaps(): readonly StoredGap[] {
    return this.#evidence.gaps.filter(({ scope }) => scope === 'stream');
  }

  /** The relists around a transition, if the one before shows that it was to come and the one after that it has come. */
  relistsAround({ id, ms, transition }: Timed<TransitionFact>): SeenRelist | null {
    const before = this.#truth.relistBefore(ms);
    const after = this.#truth.relistAfter(ms);
    if (before === undefined || after === undefined) return null;
    const [shown, gone] = SHOWN_BY[transition];
    const since = shown === null ? Number.NEGATIVE_INFINITY : this.#truth.when(id, shown);
    const until = gone === null ? null : this.#truth.when(id, gone);
    const isSeen = since !== null && since < before.from && after.to < (until ?? Number.POSITIVE_INFINITY);
    return isSeen ? { from: before.from, to: after.to } : null;
  }
}
