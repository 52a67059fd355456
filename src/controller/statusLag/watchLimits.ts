/*
 * The limits of watches: how many transitions are watched, for how long, and how often their pods are read.
 */

/** Overdue transitions, announced ones on a node whose kubelet fell back and keeps what events told it, and samples of announced ones. */
export const WATCH_KINDS = ['overdue', 'fallback', 'sample'] as const;

export type WatchKind = (typeof WATCH_KINDS)[number];

interface WatchLimits {
  /** Watches of a cluster. */
  readonly max: number;
  readonly maxOfNode: number;
  /** A pod is read for this long, unless its status shows the transition before. */
  readonly watchedForMs: number;
  readonly firstReadAfterMs: number;
}

const MAX_OF_NODE = 200;

export const WATCH_LIMITS: Readonly<Record<WatchKind, WatchLimits>> = {
  overdue: {
    // At 10 reads/s each of 2,000 pods is read every 200 s.
    max: 2_000,
    // A broken stream, or a forged node, does not use up the watches of other nodes. An agent reports as many at once.
    maxOfNode: MAX_OF_NODE,
    // Longer than the 300 s after which a kubelet relists that has lost its events.
    watchedForMs: 15 * 60_000,
    firstReadAfterMs: 0,
  },
  fallback: {
    // With all overdue ones, at 10 reads/s each pod is still read every 300 s.
    max: 1_000,
    maxOfNode: MAX_OF_NODE,
    watchedForMs: 15 * 60_000,
    // A kubelet that is right needs time to publish a status.
    firstReadAfterMs: 1_000,
  },
  sample: {
    max: 200,
    maxOfNode: 200,
    watchedForMs: 60_000,
    // A kubelet needs time to publish a status.
    firstReadAfterMs: 1_000,
  },
};

/** A sample that waits longer for its read is dropped. */
export const MAX_SAMPLE_DELAY_MS = 5_000;

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 10_000;
const WAIT_GROWTH = 1.25;

/** How long until a pod is read again. */
export const waitAfter = (staleReads: number): number =>
  Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * WAIT_GROWTH ** staleReads);
