/*
 * The changes for the worse since yesterday, as the page and `plegwatch readiness` say it.
 */
import type { SqlRunner } from '../../store/runner.ts';
import { HOUR_MS, hourOf, type PoolHours, readPoolHours } from './hours.ts';
import { type Change, changeSince, DAY_HOURS } from './worse.ts';

/** More than any fleet has: the sentence is about all. */
const MAX_POOLS = 20_000;

const endOf = (now: Date): number => hourOf(now).getTime() + HOUR_MS;

/** The pools of the clusters, null for all that may be read. */
export async function readTwoDays(
  sql: Pick<SqlRunner, 'run'>,
  clusters: readonly string[] | null,
  now: Date,
): Promise<readonly PoolHours[]> {
  const from = new Date(endOf(now) - 2 * DAY_HOURS * HOUR_MS);
  return (await sql.run(readPoolHours, [clusters, from, now, HOUR_MS / 1000, MAX_POOLS])).rows;
}

/** The change in the pools of {@link readTwoDays}. */
export const changeUntil = (pools: readonly PoolHours[], now: Date): Change => changeSince(pools, endOf(now));
