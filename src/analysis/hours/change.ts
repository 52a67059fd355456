/*
 * The changes for the worse since yesterday, as the page and `plegwatch readiness` say it.
 */
import type { SqlRunner } from '../../store/runner.ts';
import { HOUR_MS, hourOf, readPoolHours } from './hours.ts';
import { type Change, changeSince, DAY_HOURS } from './worse.ts';

/** More than any fleet has: the sentence is about all. */
const MAX_POOLS = 20_000;

/** The change in the clusters, null for all that may be read. */
export async function readChange(
  sql: Pick<SqlRunner, 'run'>,
  clusters: readonly string[] | null,
  now: Date,
): Promise<Change> {
  const end = hourOf(now).getTime() + HOUR_MS;
  const from = new Date(end - 2 * DAY_HOURS * HOUR_MS);
  const { rows } = await sql.run(readPoolHours, [clusters, from, now, HOUR_MS / 1000, MAX_POOLS]);
  return changeSince(rows, end);
}
