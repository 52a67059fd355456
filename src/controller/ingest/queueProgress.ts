/*
 * Progress: the difference between a process that runs and one that works.
 *
 * A queue is stalled when it is not empty, Postgres answers, and none of its jobs was handled for a while. An empty queue or an
 * unavailable database is nothing that a restart would cure.
 *
 * Ingest has caught up while Postgres answers, Redis shows every queue, none is stalled, and few jobs wait. An agent counts as silent
 * only if nothing was received from it during such a time: its batches may be in a queue that nobody could read.
 */

export interface IngestHealth {
  /** Whether every queue that is not empty made progress lately. */
  readonly alive: boolean;
  readonly database: boolean;
  /** The longest that any queue has been stalled, in milliseconds. */
  readonly stalledForMs: number;
  /** For how long ingest has been caught up without interruption, in milliseconds; 0 while it is not. */
  readonly caughtUpForMs: number;
}

export interface QueueProgress {
  /** A job of a queue was handled: stored, refused, or delayed. */
  handled(queue: number): void;
  /** The depth of each queue (null if Redis did not show it) and whether Postgres answered, reported regularly. */
  observed(database: boolean, depths: readonly (number | null)[]): void;
  health(): IngestHealth;
}

const STALLED_AFTER_MS = 90_000;
/** With more jobs waiting, or a queue that is stalled for longer, ingest is behind. */
const CAUGHT_UP_JOBS = 1_000;
const CAUGHT_UP_STALL_MS = 30_000;

/** `now`: a monotonic clock, in milliseconds. */
export function createQueueProgress(now: () => number): QueueProgress {
  const progressAt = new Map<number, number>();
  let database = false;
  let caughtUpSince: number | null = null;
  let observedAt = Number.NEGATIVE_INFINITY;
  const stalledForMs = () => Math.max(0, ...[...progressAt.values()].map((at) => now() - at));
  return {
    handled(queue) {
      progressAt.set(queue, now());
    },
    observed(answers, depths) {
      // Nothing is known about a time without observations.
      if (now() - observedAt >= CAUGHT_UP_STALL_MS) caughtUpSince = null;
      observedAt = now();
      database = answers;
      const depth = depths.reduce<number>((sum, n) => sum + (n ?? 0), 0);
      // A queue that Redis does not show counts as empty: no restart would cure it.
      for (const queue of new Set([...progressAt.keys(), ...depths.keys()])) {
        const idle = (depths[queue] ?? 0) === 0;
        if (idle || !answers || !progressAt.has(queue)) progressAt.set(queue, now());
      }
      const allShown = depths.length > 0 && !depths.includes(null);
      const caughtUp = answers && allShown && depth < CAUGHT_UP_JOBS && stalledForMs() < CAUGHT_UP_STALL_MS;
      caughtUpSince = caughtUp ? (caughtUpSince ?? now()) : null;
    },
    health() {
      const stalled = stalledForMs();
      const stale = now() - observedAt >= CAUGHT_UP_STALL_MS;
      const caughtUpForMs = caughtUpSince === null || stale ? 0 : now() - caughtUpSince;
      return { alive: stalled < STALLED_AFTER_MS, database, stalledForMs: stalled, caughtUpForMs };
    },
  };
}
