/*
 * Progress: the difference between a process that runs and one that works.
 *
 * A lane stands still when it is not empty, Postgres answers, and no job of it was handled for a while. Neither an empty
 * lane nor a database that is away is anything a restart would cure.
 *
 * Ingest has caught up while Postgres answers, Redis shows every lane, none stands still, and few jobs wait. Only what was not
 * heard during such a time is silent: an agent may have spoken to a queue that nobody could read.
 */

export interface Health {
  /** Whether every lane that has something to do has moved lately. */
  readonly alive: boolean;
  /** Whether Postgres answered when it was last asked. */
  readonly database: boolean;
  /** The longest any lane has stood still, in milliseconds. */
  readonly stillForMs: number;
  /** Jobs in all lanes. */
  readonly depth: number;
  /** For how long ingest has been caught up without a break, in milliseconds; 0 while it is not. */
  readonly caughtUpForMs: number;
}

export interface Progress {
  /** A job of a lane was handled: stored, refused, or put aside. */
  moved(lane: number): void;
  /** What the lanes held (null where Redis did not show one) and whether Postgres answered, asked regularly. */
  observed(database: boolean, depths: readonly (number | null)[]): void;
  health(): Health;
}

const STILL_LIMIT_MS = 90_000;
/** With more jobs waiting, or a lane that stands still for longer, ingest is behind. */
const FEW_JOBS = 1_000;
const CAUGHT_UP_STILL_MS = 30_000;

export function createProgress(now: () => number = () => performance.now()): Progress {
  const movedAt = new Map<number, number>();
  let database = false;
  let depth = 0;
  let caughtUpSince: number | null = null;
  let observedAt = Number.NEGATIVE_INFINITY;
  const stillForMs = () => Math.max(0, ...[...movedAt.values()].map((at) => now() - at));
  return {
    moved(lane) {
      movedAt.set(lane, now());
    },
    observed(answers, depths) {
      // What was not looked at for long is not known.
      if (now() - observedAt >= CAUGHT_UP_STILL_MS) caughtUpSince = null;
      observedAt = now();
      database = answers;
      depth = depths.reduce<number>((sum, n) => sum + (n ?? 0), 0);
      // What Redis does not let us see is as good as empty: no restart would cure it.
      for (const lane of new Set([...movedAt.keys(), ...depths.keys()])) {
        const idle = (depths[lane] ?? 0) === 0;
        if (idle || !answers || !movedAt.has(lane)) movedAt.set(lane, now());
      }
      const seen = depths.length > 0 && !depths.includes(null);
      const caughtUp = answers && seen && depth < FEW_JOBS && stillForMs() < CAUGHT_UP_STILL_MS;
      caughtUpSince = caughtUp ? (caughtUpSince ?? now()) : null;
    },
    health() {
      const still = stillForMs();
      // A look that does not come back shows nothing.
      const stale = now() - observedAt >= CAUGHT_UP_STILL_MS;
      const caughtUpForMs = caughtUpSince === null || stale ? 0 : now() - caughtUpSince;
      return { alive: still < STILL_LIMIT_MS, database, stillForMs: still, depth, caughtUpForMs };
    },
  };
}
