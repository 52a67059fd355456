/*
 * A life: all that is known of one CRI id, which goes created -> started -> stopped -> deleted and never back.
 *
 *   stage      one of the four steps, numbered as the CRI numbers the event that announces it
 *   proven     something shows that the stage was reached: a list, a later event, an exact time
 *   standing   where a stage stands between its proof and its event
 *
 *     none ──► expected ──► announced            (the ordinary end)
 *      │           ├──────► missed ──► announced (the event came after the verdict: resolved)
 *      │           └──────► unobservable ──► announced
 *      └─► waived  reached before the baseline, or never announced by this runtime: nothing is expected
 */

import type { ExactTimes, ListedItem, ShownState } from '../../protocol/observation.ts';
import type { ContainerIdentity, PlegState } from '../../protocol/record.ts';
import type { Micros, Mono } from '../../protocol/units.ts';

export const CREATED = 0;
export const STARTED = 1;
export const STOPPED = 2;
export const DELETED = 3;
export type Stage = 0 | 1 | 2 | 3;
export const STAGES: readonly Stage[] = [CREATED, STARTED, STOPPED, DELETED];

/** The event type of a number from the CRI, where it is one of the four. */
export const stageOf = (type: number): Stage | undefined => STAGES.find((stage) => stage === type);

/** Why an event is due although it has not come. */
export type Cause = 'unannounced_by_list' | 'sequence';

export interface Expectation {
  /** The stage was reached between these two. `from` is null where no lower bound is known. */
  from: Mono | null;
  to: Mono;
  readonly cause: Cause;
  /** The stage whose event proved it; null where a list or an exact time did. */
  readonly by: Stage | null;
  /** What the proof rests on, for the finding. */
  readonly evidence: string;
  /** False where the stage may have been reached before the stream was proven to be ours. */
  readonly coverable: boolean;
  /** True where `from` was computed from a wall-clock time: a step of that clock voids it. */
  byWallClock: boolean;
  asked: boolean;
  /** The id that was told when it became overdue, for the finding about it; null where none was. */
  finding: string | null;
}

export type Standing =
  | { readonly is: 'none' | 'waived' | 'unobservable' }
  /** `counted`: it is among the matched counters. `waived`: it was not due. */
  | { readonly is: 'announced'; readonly counted: boolean; readonly waived: boolean }
  | { readonly is: 'expected'; readonly expectation: Expectation }
  | { readonly is: 'missed'; readonly finding: string };

/** An event that lists contradicted. */
export interface Refutation {
  readonly received: Mono;
  readonly finding: string;
}

/** The start and the end of a list call. */
export interface Span {
  readonly start: Mono;
  readonly end: Mono;
}

/** A list, and what it showed of an id. */
export interface Showing extends Span {
  readonly shown: ShownState;
}

export interface Claim {
  readonly received: Mono;
  readonly contradictions: Showing[];
  /** When the same was said once more; null where it was not. */
  again: Mono | null;
}

/** The stretch between two lists. */
export interface Between {
  readonly before: Mono;
  readonly after: Mono;
  /** From the start of the one to the end of the other: an item may be read at any moment of its call. */
  readonly longest: Micros;
  readonly end: Mono;
}

export interface Life {
  object: ContainerIdentity;
  /** What a list showed of it last; null where none did. */
  item: ListedItem | null;
  /**
   * What a list showed of it, where another one that shows the same can prove nothing more, nor contradict anything: until an
   * event or a status of it comes, or a list that shows something else. Null where one might. One that rests has no
   * {@link absence}.
   */
  rest: ListedItem | null;
  /** What the last relist showed, in the kubelet's words. */
  state: PlegState;
  /**
   * For each stage the start of the last answer that proves it had not been reached: the id was shown at an earlier stage,
   * or the list that first showed it was preceded by one that did not. Null where no list says so.
   */
  readonly floors: [Mono | null, Mono | null, Mono | null, Mono | null];
  /** Whether a list ever showed it, in whatever state. */
  listed: boolean;
  /** The last state that a list showed and that was not UNKNOWN; null where none did. */
  shown: Exclude<ShownState, 'unknown'> | null;
  /** The first list that showed it exited, since it last ran; null where none did. */
  exited: Span | null;
  /** The first list that lacked it, where more must be known before that can be held against the runtime. */
  absence: Span | null;
  /** When an event last said that the id exists; null where none did. */
  heard: Mono | null;
  /** When the event of each stage first came; null where it did not, was replayed, or turned out to be spurious. */
  readonly heardAt: [Mono | null, Mono | null, Mono | null, Mono | null];
  /** The furthest stage whose event came, replayed ones aside; -1 for none. */
  furthest: -1 | Stage;
  /** For each stage the first list that showed a later one. */
  readonly passed: [Span | null, Span | null, Span | null, Span | null];
  /** What events said that no list has confirmed yet. */
  readonly claims: [Claim | null, Claim | null, Claim | null, Claim | null];
  /** The last event of each stage that was spurious, and the finding that says so. */
  readonly refuted: [Refutation | null, Refutation | null, Refutation | null, Refutation | null];
  /** Between which lists it ran unseen; null where it did not, or that is told. */
  unseen: Between | null;
  /** Ids that were found to be its twins. */
  readonly twins: Set<string>;
  /** An event of it could not be understood, and may have been any that is due. */
  tainted: boolean;
  /** It went from exited back to running: its events are in no order any more. */
  regressed: boolean;
  /** The furthest stage that is proven; -1 for none. */
  reached: -1 | Stage;
  /** Whether anything proves that it ever ran. Without it neither STARTED nor STOPPED is due. */
  ran: boolean;
  times: ExactTimes | null;
  /** When it was created, started and finished, on the monotonic clock; null where that is not known for sure. */
  readonly moments: [Mono | null, Mono | null, Mono | null];
  /** Which of them lay far ahead when they were first told: of a clock that was set back since, whatever it shows later. */
  readonly foreign: [boolean, boolean, boolean];
  /** What its status said when it was asked for; null before. */
  answer: string | null;
  /** Whether its exact times were asked for because it was found exited without proof that it ran. */
  questioned: boolean;
  readonly standings: [Standing, Standing, Standing, Standing];
  /** When it was last listed or heard of, for forgetting. */
  lastSign: Mono;
}

const NONE: Standing = { is: 'none' };

export function newLife(object: ContainerIdentity, at: Mono): Life {
  return {
    object,
    item: null,
    rest: null,
    state: 'non-existent',
    floors: [null, null, null, null],
    listed: false,
    shown: null,
    exited: null,
    absence: null,
    heard: null,
    heardAt: [null, null, null, null],
    furthest: -1,
    passed: [null, null, null, null],
    claims: [null, null, null, null],
    refuted: [null, null, null, null],
    unseen: null,
    twins: new Set(),
    tainted: false,
    regressed: false,
    reached: -1,
    ran: false,
    times: null,
    moments: [null, null, null],
    foreign: [false, false, false],
    answer: null,
    questioned: false,
    standings: [NONE, NONE, NONE, NONE],
    lastSign: at,
  };
}

/** The identity with what the other one knows better. */
export function completed(known: ContainerIdentity, more: ContainerIdentity): ContainerIdentity {
  return {
    ...known,
    sandbox: known.sandbox || more.sandbox,
    podUid: known.podUid || more.podUid,
    namespace: known.namespace || more.namespace,
    pod: known.pod || more.pod,
    container: known.container || more.container,
    attempt: known.attempt || more.attempt,
  };
}

/** Whether a container ever ran: it has a `started_at`, and not that of a start that failed. */
export const everRan = (times: ExactTimes): boolean => times.startedNs > 0n && !startFailed(times);

/**
 * Whether a container ended without ever having run: it has a `finished_at`, and a `started_at` of 0 or the same as both
 * others (containerd writes the latter for a start that failed). The times of one that has not ended say nothing: they
 * may have been taken before it started.
 */
export function startFailed({ createdNs, startedNs, finishedNs }: ExactTimes): boolean {
  if (finishedNs <= 0n) return false;
  return startedNs <= 0n || (startedNs === createdNs && startedNs === finishedNs);
}
