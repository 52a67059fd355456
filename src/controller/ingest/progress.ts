/*
 * Progress: the difference between a process that runs and one that works.
 *
 * A lane stands still when it is not empty, Postgres answers, and no job of it was handled for a while. Neither an empty
 * lane nor a database that is away is anything a restart would cure.
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
}

export interface Progress {
  /** A job of a lane was handled: stored, refused, or put aside. */
  moved(lane: number): void;
  /** What the lanes held and whether Postgres answered, asked regularly. */
  observed(database: boolean, depths: readonly number[]): void;
  health(): Health;
}

const STILL_LIMIT_MS = 90_000;

export function createProgress(now: () => number = () => performance.now()): Progress {
  const movedAt = new Map<number, number>();
  let database = false;
  let depth = 0;
  return {
    moved(lane) {
      movedAt.set(lane, now());
    },
    observed(answers, depths) {
      database = answers;
      depth = depths.reduce((sum, n) => sum + n, 0);
      for (const lane of new Set([...movedAt.keys(), ...depths.keys()])) {
        const idle = (depths[lane] ?? 0) === 0;
        if (idle || !answers || !movedAt.has(lane)) movedAt.set(lane, now());
      }
    },
    health() {
      const stillForMs = Math.max(0, ...[...movedAt.values()].map((at) => now() - at));
      return { alive: stillForMs < STILL_LIMIT_MS, database, stillForMs, depth };
    },
  };
}
