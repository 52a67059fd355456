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

const STALLED_AFTER_MS = 90_000;
/** With more jobs waiting, or a queue that is stalled for longer, ingest is behind. */
const CAUGHT_UP_JOBS = 1_000;
const CAUGHT_UP_STALL_MS = 30_000;

export class QueueProgress {
  readonly #now: () => number;
  readonly #progressAt = new Map<number, number>();
  #database = false;
  #caughtUpSince: number | null = null;
  #observedAt = Number.NEGATIVE_INFINITY;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** A job of a queue was handled: stored, refused, or delayed. */
  handled(queue: number): void {
    this.#progressAt.set(queue, this.#now());
  }

  /** The depth of each queue (null if Redis did not show it) and whether Postgres answered, reported regularly. */
  observed(database: boolean, depths: readonly (number | null)[]): void {
    const now = this.#now();
    // Nothing is known about a time without observations.
    if (now - this.#observedAt >= CAUGHT_UP_STALL_MS) this.#caughtUpSince = null;
    this.#observedAt = now;
    this.#database = database;
    // A queue that Redis does not show counts as empty: no restart would cure it.
    for (const queue of new Set([...this.#progressAt.keys(), ...depths.keys()])) {
      const idle = (depths[queue] ?? 0) === 0;
      if (idle || !database || !this.#progressAt.has(queue)) this.#progressAt.set(queue, now);
    }
    const depth = depths.reduce<number>((sum, n) => sum + (n ?? 0), 0);
    const allShown = depths.length > 0 && !depths.includes(null);
    const caughtUp =
      database && allShown && depth < CAUGHT_UP_JOBS && this.#stalledForMs(now) < CAUGHT_UP_STALL_MS;
    this.#caughtUpSince = caughtUp ? (this.#caughtUpSince ?? now) : null;
  }

  health(): IngestHealth {
    const now = this.#now();
    const stalledForMs = this.#stalledForMs(now);
    const isStale = now - this.#observedAt >= CAUGHT_UP_STALL_MS;
    const caughtUpForMs = this.#caughtUpSince === null || isStale ? 0 : now - this.#caughtUpSince;
    return { alive: stalledForMs < STALLED_AFTER_MS, database: this.#database, stalledForMs, caughtUpForMs };
  }

  #stalledForMs(now: number): number {
    return Math.max(0, ...[...this.#progressAt.values()].map((at) => now - at));
  }
}
