/*
 * Excuses: why an event that did not come cannot be held against the runtime, and how its exact time tells.
 */
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { covers, type OpenSession } from './coverage.ts';
import {
  DELETED,
  type Expectation,
  type Life,
  STARTED,
  STOPPED,
  type Stage,
  startFailed,
} from './trackedContainer.ts';
import { STEP } from './wallClock.ts';

/**
 * A session may have begun because the runtime was started again. What ended while it was down it announces to nobody, and may
 * show as running for a while; after this long its lists are taken to know. containerd tries again for up to five minutes to
 * find out that something ended (containerd issue 13539), and then one list more may have been under way.
 */
const SETTLING: Micros = millis(6 * 60_000);

/** The exact time at which a container reached a stage, where it is known. */
export const exactTime = (life: Life, stage: Stage): Mono | null =>
  life.object.isSandbox || stage === DELETED ? null : life.moments[stage];

/** Whether its exact time says that a stage had been reached by then, within what the wall clock is trusted with. */
export function hadHappened(life: Life, stage: Stage, at: Mono): boolean {
  const exact = exactTime(life, stage);
  return exact !== null && exact <= shift(at, STEP);
}

/** Why this event cannot be held against the runtime; null where it can. */
export function excuseOf(
  life: Life,
  stage: Stage,
  expectation: Expectation,
  coverage: OpenSession,
): string | null {
  const exact = exactTime(life, stage);
  if (!expectation.coverable) return 'before_baseline';
  if (expectation.from === null) return 'no_lower_bound';
  if (!covers(coverage, expectation.from)) return 'window_not_covered';
  // An event came, and lists contradicted it: only the exact time could tell which of both was wrong.
  if (exact === null && life.refuted[stage] !== null) return 'contradicted';
  if (exact === null && stage === STOPPED && mayHaveEndedBefore(life, expectation.from, coverage)) {
    return 'may_have_ended_before';
  }
  if ((stage === STARTED || stage === STOPPED) && life.times !== null && startFailed(life.times)) {
    // Its times may all be that of its creation, and say nothing of when it ended.
    return 'start_failed';
  }
  // That far the wall clock may have been moved since without anybody noticing.
  if (exact !== null && !covers(coverage, shift(exact, -STEP))) return 'exact_time_not_covered';
  return null;
}

/** Whether it ran before the session, and only an early list of it says that it still did. */
function mayHaveEndedBefore(life: Life, runningAt: Mono, { opened }: OpenSession): boolean {
  const startedSince = [life.heardAt[STARTED], life.floors[STARTED]].some(
    (at) => at !== null && at >= opened,
  );
  return !startedSince && runningAt < shift(opened, SETTLING);
}

/** Lists may go on showing what has long been over: then the runtime's own state was late too. */
export function causeOf({ cause, from }: Expectation, exact: Mono | null, overdueAfter: Micros): string {
  const lagged = exact !== null && from !== null && shift(exact, overdueAfter) < from;
  return lagged ? 'runtime_state_late' : cause;
}
