/*
 * Bounds of the status lag: the time from a transition until the API server shows it in the pod's status. Pure.
 *
 * The transition and the publication of its status are each known to lie between two times. All times are microseconds since 1970 on the
 * store's clock. A transition's `latest` depends on no other wall clock: the agent's monotonic clock gives its age when its batch was sealed,
 * and a batch is stored after it was sealed. So the minimum lag holds however wrong the node's clock is. A transition's `earliest` trusts the
 * node's clock, because nothing else shows how long the batch was in transit.
 */
import type { BatchTimes } from '../ingest/batchScope.ts';

/** Something happened at `earliest` or later (null: unknown), and at `latest` or before. */
export interface TimeBounds {
  readonly earliest: number | null;
  readonly latest: number;
}

/** In milliseconds, never negative; `max` is null if it is unknown. */
export interface StatusLag {
  readonly min: number;
  readonly max: number | null;
}

/** Bounds as offsets from the start of the epoch; `from` is null if it is unknown. */
export interface OffsetWindow {
  readonly from: number | null;
  readonly to: number;
}

export function transitionBounds(
  { storedAt, sealedAt, epochStart }: BatchTimes,
  { from, to }: OffsetWindow,
): TimeBounds {
  const latestOf = (offset: number) => storedAt - Math.max(0, sealedAt - offset);
  return {
    // A node's clock that is ahead can give times after the batch was stored.
    earliest: from === null ? null : Math.min(epochStart + from, latestOf(from)),
    latest: latestOf(to),
  };
}

export function lagBetween(transition: TimeBounds, publication: TimeBounds): StatusLag {
  const min = publication.earliest === null ? 0 : Math.max(0, publication.earliest - transition.latest);
  const max =
    transition.earliest === null ? null : Math.max(min, publication.latest - transition.earliest) / 1000;
  return { min: min / 1000, max };
}
