/*
 * How long a pod's published status was behind a transition, from both sides. Pure.
 *
 *   published lag   from the transition to the moment from which the API server shows it
 *   latest          the transition happened then or before
 *   earliest        it happened then or after; null where nobody knows
 *   unshown         a read that began then or later did not show it
 *   shown           a read that ended then or before showed it
 *
 * All are microseconds since 1970 on one clock, the store's. `latest` rests on no other: the agent's monotonic clock says how old
 * the transition was when its batch was cut, and a batch is stored after it was cut. So the least lag holds whatever the
 * node's clock shows. `earliest` takes the node's clock at its word, as nothing else says how long the batch was under way.
 */
import type { BatchTimes } from '../ingest/batchScope.ts';

/** When a transition happened. */
export interface Transition {
  readonly latest: number;
  readonly earliest: number | null;
}

/** What reads of the pod say of when it was published. */
export interface Published {
  readonly unshown: number | null;
  readonly shown: number;
}

/** In milliseconds; `max` is null where no lower bound of the transition is known. Never negative. */
export interface Lag {
  readonly min: number;
  readonly max: number | null;
}

/** Offsets between which something happened; `from` is null where that is not known. */
export interface Window {
  readonly from: number | null;
  readonly to: number;
}

/** Puts a window of the epoch on the store's clock. */
export function transitionOf({ storedAt, cutAt, epochStart }: BatchTimes, { from, to }: Window): Transition {
  const atTheLatest = (offset: number) => storedAt - Math.max(0, cutAt - offset);
  return {
    latest: atTheLatest(to),
    // Where the node's clock is ahead, its word may be later than can be.
    earliest: from === null ? null : Math.min(epochStart + from, atTheLatest(from)),
  };
}

/** Never less than 0, and never more at least than at most. */
export function lagOf({ latest, earliest }: Transition, { unshown, shown }: Published): Lag {
  const min = unshown === null ? 0 : Math.max(0, unshown - latest);
  return { min: min / 1000, max: earliest === null ? null : Math.max(min, shown - earliest) / 1000 };
}
