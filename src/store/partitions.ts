/*
 * Days as the partitions of the store use them, and partitions made where they are missing. `plegwatch maintain` makes them ahead.
 */
import type { SqlRunner } from './runner.ts';
import { makePartition } from './statements.ts';

/** Partitions are made this many days ahead; a record from further in the future is absurd. */
export const DAYS_AHEAD = 3;
const DAY_US = 86_400_000_000;

/** Whole days since 1970, UTC, of microseconds since 1970. */
export const dayOf = (micros: number): number => Math.floor(micros / DAY_US);

/** Makes the partition of a table that holds a day unless it exists. */
export async function ensurePartition(runner: SqlRunner, table: string, day: number): Promise<void> {
  await runner.run(makePartition, [table, day]);
}
