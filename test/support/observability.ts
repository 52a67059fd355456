/*
 * Which periods of a run the stored evidence covers: where relists were frequent and no gap is recorded, a finding can be
 * expected. On a busy machine there may be no such period.
 */
import type { LifecycleTransition, TransitionFact } from '../../devtools/simulator/groundTruth.ts';
import type { EventType } from '../../src/protocol/record.ts';
import { BLUR } from './completeness.ts';
import type { RuntimeTruth, Timed, TimeRange } from './groundTruth.ts';
import type { SeenRelist } from './relists.ts';
import type { StoredEvidence, StoredGap } from './storedEvidence.ts';

/** More than three relist periods: a state that lasts this long is in at least two lists. */
export const LISTED_TWICE_MS = 1_800;
/** Where relists are further apart than this, as on a busy machine, no finding is expected. */
const MAX_RELIST_INTERVAL_MS = 1_200;
/** The stage after which a relist shows that a transition has not happened yet, and the one after which it no longer shows that it has. */
const SHOWN_BY: Readonly<Record<LifecycleTransition, readonly [EventType | null, EventType | null]>> = {
  created: [null, 'DELETED'],
  started: [null, 'STOPPED'],
  stopped: ['STARTED', 'DELETED'],
  deleted: ['CREATED', null],
};

export class Observability {
  readonly #truth: RuntimeTruth;
  readonly #evidence: StoredEvidence;
  /** Periods with too few relists. */
  readonly #slowRelists: readonly TimeRange[];

  constructor(truth: RuntimeTruth, evidence: StoredEvidence) {
    this.#truth = truth;
    this.#evidence = evidence;
    const { relists } = truth;
    this.#slowRelists = relists
      .map(({ from: to }, i) => ({ from: relists[i - 1]?.from ?? to, to }))
      .filter(({ from, to }) => to - from > MAX_RELIST_INTERVAL_MS);
  }

  /** Subscribed, with frequent relists, and without any gap or step of the wall clock. */
  isClear(from: number, to: number): boolean {
    const steps = this.#truth.steps.map(({ at }) => ({ from: at, to: at }));
    const interruptions = [...this.#evidence.gaps, ...this.#slowRelists, ...steps];
    return from > this.#truth.firstSubscribed && this.#isFree(interruptions, from, to);
  }

  /** Subscribed, and without a gap of the stream that the agent recorded. */
  isWatched(from: number, to: number): boolean {
    return from > this.#truth.firstSubscribed && this.#isFree(this.#streamGaps, from, to);
  }

  /** Watched, and a relist since the last gap has shown the state of everything: a finding can accuse. */
  isCovered(from: number, to: number): boolean {
    const gapEnds = this.#streamGaps.map((gap) => gap.to ?? this.#truth.end).filter((end) => end < to);
    const since = Math.max(this.#truth.firstSubscribed, ...gapEnds) + BLUR;
    const isListed = this.#truth.relists.some((each) => each.from > since && each.to + LISTED_TWICE_MS < to);
    return isListed && this.isWatched(from, to);
  }

  /**
   * Whether a relist that the runtime saw from `from` on is one of the first lists, or a later one, of everything that was watched by
   * `until`. To a busy agent a list may have begun seconds before the runtime sees the call, and so before the stream was watched: only
   * the agent knows which lists were the first.
   */
  isSinceFirstLists(from: number, until: number): boolean {
    return this.#evidence.firstLists
      .filter((gap) => gap.from < until)
      .every((gap) => {
        const first = this.#truth.relistBefore((gap.to ?? this.#truth.end) + BLUR);
        return first === undefined || first.from <= from;
      });
  }

  isStepped(from: number, to: number): boolean {
    return this.#truth.steps.some(({ at }) => at > from && at < to);
  }

  /** Without a gap of the stream, to the millisecond. */
  hasNoGap(from: number, to: number): boolean {
    return this.#streamGaps.every((gap) => from > (gap.to ?? this.#truth.end) - BLUR || to < gap.from + BLUR);
  }

  #isFree(interruptions: readonly TimeRange[], from: number, to: number): boolean {
    return interruptions.every(
      (each) => from > (each.to ?? this.#truth.end) + LISTED_TWICE_MS || to < each.from,
    );
  }

  get #streamGaps(): readonly StoredGap[] {
    return this.#evidence.gaps.filter(({ scope }) => scope === 'stream');
  }

  /** The relists around a transition, if the one before it shows that it had not happened and the one after it that it had. */
  relistsAround({ id, ms, transition }: Timed<TransitionFact>): SeenRelist | null {
    const before = this.#truth.relistBefore(ms);
    const after = this.#truth.relistAfter(ms);
    if (before === undefined || after === undefined) return null;
    const [first, last] = SHOWN_BY[transition];
    const since = first === null ? Number.NEGATIVE_INFINITY : this.#truth.when(id, first);
    const until = last === null ? null : this.#truth.when(id, last);
    const isSeen = since !== null && since < before.from && after.to < (until ?? Number.POSITIVE_INFINITY);
    return isSeen ? { ...before, to: this.#comparedBy(after) } : null;
  }

  /** The agent compares a relist when it has both answers: on a busy machine long after the runtime gave them, which it records. */
  #comparedBy({ from, to }: SeenRelist): number {
    const slow = this.#evidence.gaps.filter(
      (gap) => gap.scope === 'list' && gap.from < to + BLUR && (gap.to ?? this.#truth.end) > from,
    );
    return Math.max(to, ...slow.map((gap) => gap.to ?? this.#truth.end));
  }
}
