/*
 * `plegwatch maintain`: makes partitions ahead, drops those past their retention, and closes epochs that will not be continued. Run
 * daily, as the owner of the database.
 *
 *   event_retention_days     events, changes and minutes; minutes are merged into hours before they are dropped
 *   finding_retention_days   hours, findings, sessions, mode changes, conditions and gaps
 *
 * Partitions are removed with DETACH CONCURRENTLY: a plain DROP waiting for one slow reader would block inserts into other
 * partitions. The next run finishes what an interrupted one began.
 */
import type { Client } from 'pg';
import type { Logger } from '../../platform/log.ts';
import { withClient } from './connection.ts';
import { explainDatabaseError } from './databaseError.ts';
import { DAYS_AHEAD } from './partitions.ts';
import closeAbandoned from './sql/closeAbandoned.sql';
import deleteExpired from './sql/deleteExpired.sql';
import listExpiredPartitions from './sql/listExpiredPartitions.sql';
import mergeMinutes from './sql/mergeMinutes.sql';

export interface MaintainOptions {
  readonly databaseUrl: string;
  readonly log: Logger;
}

export interface MaintenanceResult {
  readonly made: number;
  readonly dropped: readonly string[];
  /** How many epochs were closed because their agent had not reported for a week. */
  readonly abandoned: number;
}

interface ExpiredPartition {
  readonly of_table: string;
  readonly name: string;
  /** The first day after it, in days since 1970. */
  readonly upper: number;
  /** Whether an earlier run was interrupted while detaching it. */
  readonly pending: boolean;
}

/** The advisory lock that keeps a second maintenance of the same database from running. */
export const MAINTENANCE_LOCK = 5_143_873_212;
const ABANDONED_DAYS = 7;
/** How long to wait for readers of a partition; the next run tries again. */
const LOCK_WAIT_MS = 60_000;

/** Returns null if another maintenance of this database is running. */
export async function maintain({ databaseUrl, log }: MaintainOptions): Promise<MaintenanceResult | null> {
  return withClient(databaseUrl, 'plegwatch maintain', async (client) => {
    try {
      const lock = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [
        MAINTENANCE_LOCK,
      ]);
      if (lock.rows[0]?.got !== true) {
        log.info('another maintenance is running');
        return null;
      }
      await client.query(`SET lock_timeout = ${LOCK_WAIT_MS}`);
      const made = await client.query<{ made: number }>('SELECT store.make_partitions($1) AS made', [
        DAYS_AHEAD,
      ]);
      const dropped = await dropExpired(client, log);
      await client.query(deleteExpired);
      const abandoned = await client.query(closeAbandoned, [ABANDONED_DAYS]);
      const done = { made: made.rows[0]?.made ?? 0, dropped, abandoned: abandoned.rowCount ?? 0 };
      log.info(done, 'database maintained');
      return done;
    } catch (error) {
      throw explainDatabaseError(databaseUrl, error);
    }
  });
}

async function dropExpired(client: Client, log: Logger): Promise<string[]> {
  const { rows } = await client.query<ExpiredPartition>(listExpiredPartitions);
  const dropped: string[] = [];
  for (const partition of rows) {
    try {
      await drop(client, partition);
      dropped.push(partition.name);
    } catch (error) {
      log.warn({ partition: partition.name, error: String(error) }, 'partition could not be dropped');
    }
  }
  return dropped;
}

async function drop(client: Client, { of_table, name, upper, pending }: ExpiredPartition): Promise<void> {
  const parent = `store.${client.escapeIdentifier(of_table)}`;
  const child = `store.${client.escapeIdentifier(name)}`;
  if (of_table === 'relist_minute') {
    await client.query("SELECT store.make_partition('relist_hour', date '1970-01-01' + $1::int4)", [
      upper - 1,
    ]);
    await client.query(mergeMinutes, [upper - 1]);
  }
  // Names cannot be parameters; these come from the system catalog and are quoted.
  await client.query(
    `ALTER TABLE ${parent} DETACH PARTITION ${child} ${pending ? 'FINALIZE' : 'CONCURRENTLY'}`,
  );
  await client.query(`DROP TABLE ${child}`);
}
