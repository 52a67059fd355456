/*
 * Why a missing event cannot be held against the runtime, and what its exact time says about that.
 */
import type { PlegProfile } from '../../protocol/eventProfile.ts';
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import type { Coverage, OpenSession } from './coverage.ts';
import type { Expectation, StageProof } from './expectation.ts';
import { CREATED, DELETED, STARTED, STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import { CLOCK_STEP } from './wallClock.ts';

/** Every cause of an `unobservable` finding. docs/explanation/missed-events.md says what each means and what to do. */
export const UNOBSERVABLE_CAUSES = [
  'stream_down',
  'stream_gap',
  'before_baseline',
  'no_lower_bound',
  'window_not_covered',
  'exact_time_not_covered',
  'clock_step',
  'agent_stalled',
  'reader_stalled',
  'reader_overflow',
  'malformed_event',
  'unknown_event_type',
  'too_many_ids',
  'may_have_ended_before',
  'may_have_been_removed',
  'may_have_been_restored',
  'end_not_shown',
  'start_failed',
  'unconfirmed',
  'contradicted',
  'spurious',
  'listed_again',
  'state_went_back',
] as const;
export type UnobservableCause = (typeof UNOBSERVABLE_CAUSES)[number];

/**
 * A session may have begun because the runtime was restarted. It announces to nobody what ended while it was down, and may
 * list that as running for a while; after this long its lists are trusted. containerd retries for up to five minutes to find
 * out that something ended (containerd issue 13539), and then one more list may have been under way.
 */
const SETTLING: Micros = millis(6 * 60_000);

/** The exact time at which a container reached a stage, where it is known. */
export function exactTime({ isSandbox, times }: TrackedContainer, stage: Stage): Mono | null {
  if (isSandbox || stage === DELETED) return null;
  if (stage === STARTED) return times.started;
  return stage === STOPPED ? times.finished : times.created;
}

/** Whether its exact time says that a stage had been reached by then, within the error of the wall clock. */
export function hadHappened(container: TrackedContainer, stage: Stage, at: Mono): boolean {
  const exact = exactTime(container, stage);
  return exact !== null && exact <= shift(at, CLOCK_STEP);
}

/** The basis of the judgement of an expectation. */
interface JudgedBy {
  readonly coverage: Coverage;
  readonly session: OpenSession;
  readonly profile: PlegProfile;
}

/** Why this event cannot be held against the runtime; null where it can. */
export function unobservableReason(
  container: TrackedContainer,
  stage: Stage,
  expectation: Expectation,
  { coverage, session, profile }: JudgedBy,
): UnobservableCause | null {
  const exact = exactTime(container, stage);
  const { from } = expectation.proof;
  if (!expectation.isCoverable) return 'before_baseline';
  if (from === null) return 'no_lower_bound';
  if (!coverage.covers(from)) return 'window_not_covered';
  // An event came, and lists contradicted it: only the exact time could decide between them.
  if (exact === null && container.events.contradicted(stage) !== null) return 'contradicted';
  const isEndUnknown = stage === STOPPED && container.times.ranUntil === null;
  if (isEndUnknown && mayHaveEndedBefore(container, from, session)) {
    return 'may_have_ended_before';
  }
  const exception = exceptionOf(container, stage, profile);
  if (exception !== null) return exception;
  // The wall clock may have moved this far since without being noticed.
  if (exact !== null && !coverage.covers(shift(exact, -CLOCK_STEP))) return 'exact_time_not_covered';
  return null;
}

/** A reason that may have kept its runtime from announcing this; null where nothing can have. */
function exceptionOf(
  container: TrackedContainer,
  stage: Stage,
  profile: PlegProfile,
): UnobservableCause | null {
  if (mayHaveBeenRemoved(container, stage, profile)) return 'may_have_been_removed';
  if (stage <= STARTED && mayHaveBeenRestored(container, profile)) return 'may_have_been_restored';
  return hasFailedToStart(container, stage) ? 'start_failed' : null;
}

/** Its times may all be that of its creation, and say nothing about when it ended. */
const hasFailedToStart = ({ times }: TrackedContainer, stage: Stage): boolean =>
  (stage === STARTED || stage === STOPPED) && times.proveFailedStart;

/**
 * Whether a runtime that works may not announce this, so that it says nothing of its stream. Where nobody knows what is sent of restored pods,
 * all others are far more.
 */
export const mayBeUnannounced = (container: TrackedContainer, stage: Stage, profile: PlegProfile): boolean =>
  mayHaveBeenRemoved(container, stage, profile) ||
  (profile.restores === 'end_only' && stage <= STARTED && mayHaveBeenRestored(container, profile)) ||
  (profile.failedStartsUnannounced && hasFailedToStart(container, stage));

/** Whether it ran before the session, and only an early list of the session says that it still did. */
function mayHaveEndedBefore(
  { events, lists }: TrackedContainer,
  runningAt: Mono,
  { opened }: OpenSession,
): boolean {
  // Some runtimes announce no STARTED of a sandbox, and lists may be further apart than its creation and the session's beginning.
  const startedSince = [events.first(CREATED), events.first(STARTED), lists.lowerBound(STARTED)].some(
    (at) => at !== null && at >= opened,
  );
  return !startedSince && runningAt < shift(opened, SETTLING);
}

/**
 * Whether RemovePodSandbox of CRI-O may have removed this container, or ended this sandbox, which it does not announce. It removes the containers one
 * after another while the sandbox is still READY, then ends the sandbox, waits for each as long as its caller does, and may fail on the way (cri-o
 * server, removePodSandbox), so no later list can rule it out. But CRI-O keeps a process for a sandbox whose containers share a PID
 * namespace, and announces its end whatever ends it (cri-o internal/lib/sandbox, NeedsInfra; server, handleExit).
 */
function mayHaveBeenRemoved(
  { isSandbox, times }: TrackedContainer,
  stage: Stage,
  { announcesSandboxRemoval }: PlegProfile,
): boolean {
  if (announcesSandboxRemoval) return false;
  return isSandbox ? stage === STOPPED && !times.hasSharedPid : stage === DELETED;
}

/**
 * Whether it may have been restored from a checkpoint, which is not announced as a creation and a start are. CRI-O announces neither, and
 * names the log of what it restores after its id (cri-o server, CRImportCheckpoint and StartContainer). A STARTED says nothing against that: it
 * may be one that should not have been sent.
 */
function mayHaveBeenRestored(
  { isSandbox, stages, times }: TrackedContainer,
  { restores, sandboxEvents }: PlegProfile,
): boolean {
  if (restores === 'all' || stages.standing(CREATED).is === 'announced') return false;
  if (restores === 'unknown') return !isSandbox || sandboxEvents.includes('CREATED');
  return !isSandbox && (times.exact === null || times.exact.trait === 'unnamed_log');
}

/** Lists may go on showing what has long ended: then the runtime's own state was late too. */
export function causeOf({ cause, from }: StageProof, exact: Mono | null, overdueAfter: Micros): string {
  const lagged = exact !== null && from !== null && shift(exact, overdueAfter) < from;
  return lagged ? 'runtime_state_late' : cause;
}
