/*
 * `plegwatch maintain`: makes partitions ahead, drops those past their retention, and closes epochs that will not be continued. Run
 * daily, as the owner of the database.
 *
 *   event_retention_days     events, changes and minutes
 *   finding_retention_days   hours, findings, sessions, mode changes, conditions and gaps
 *
 * Partitions are removed with DETACH CONCURRENTLY: a plain DROP waiting for one slow reader would block inserts into other
 * partitions. The next run finishes what an interrupted one began. Only a run that did everything that was due counts as a success:
 * the controllers report when the last one was.
 */
import type { Client } from 'pg';
import type { Logger } from '../platform/log.ts';
import { withClient } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import { explainDatabaseError } from './databaseError.ts';
import { DAYS_AHEAD } from './partitions.ts';
import closeAbandoned from './sql/closeAbandoned.sql';
import cutFutureTimes from './sql/cutFutureTimes.sql';
import deleteExpired from './sql/deleteExpired.sql';
import deleteExpiredEpochs from './sql/deleteExpiredEpochs.sql';
import deleteGoneNodes from './sql/deleteGoneNodes.sql';
import listExpiredPartitions from './sql/listExpiredPartitions.sql';
import noteMaintenance from './sql/noteMaintenance.sql';

export interface MaintainOptions extends DatabaseSettings {
  readonly log: Logger;
  /** For tests. Default: {@link LOCK_WAIT_MS}. */
  readonly lockWaitMs?: number;
}

export interface MaintenanceResult {
  readonly made: number;
  readonly dropped: readonly string[];
  /** Expired partitions that could not be dropped. */
  readonly kept: readonly string[];
  /** How many epochs were closed because their agent had not reported for a week. */
  readonly abandoned: number;
}

interface ExpiredPartition {
  readonly of_table: string;
  readonly name: string;
  /** Whether an earlier run was interrupted while detaching it. */
  readonly pending: boolean;
  /** Whether an earlier run detached it and could not drop it. */
  readonly detached: boolean;
}

/** The advisory lock that keeps a second maintenance of the same database from running. */
export const MAINTENANCE_LOCK = 5_143_873_212;
const ABANDONED_DAYS = 7;
/** How long to wait for the readers of a table each time; the next run tries again. */
const LOCK_WAIT_MS = 60_000;

/**
 * Returns null if another maintenance of this database is running. Its lock is held by a transaction on a connection of its own: partitions
 * cannot be detached inside one, and a lock of a session could stay behind in a pooler.
 */
export async function maintain(options: MaintainOptions): Promise<MaintenanceResult | null> {
  return withClient(options, 'plegwatch maintain (lock)', async (holder) => {
    await holder.query('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0');
    // Without a parameter: the portal of a statement with one lives as long as the transaction, and its snapshot would keep a partition from
    // being detached.
    const lock = await holder.query<{ got: boolean }>(
      `SELECT pg_try_advisory_xact_lock(${MAINTENANCE_LOCK}) AS got`,
    );
    if (lock.rows[0]?.got !== true) {
      options.log.info('another maintenance is running');
      return null;
    }
    return withClient(options, 'plegwatch maintain', (client) => maintainWith(client, options));
  });
}

async function maintainWith(client: Client, options: MaintainOptions): Promise<MaintenanceResult> {
  const { log, lockWaitMs = LOCK_WAIT_MS } = options;
  try {
    // Through a pooler they would be set for whoever gets the session next. A slow reader then ends a run only by its deadline.
    if (options.databasePoolMode !== 'transaction') await client.query(`SET lock_timeout = ${lockWaitMs}`);
    const made = await client.query<{ made: number }>('SELECT store.make_partitions($1) AS made', [
      DAYS_AHEAD,
    ]);
    const { dropped, kept } = await dropExpired(client, log);
    await client.query(cutFutureTimes);
    await client.query(deleteExpired);
    await client.query(deleteExpiredEpochs);
    await client.query(deleteGoneNodes);
    const abandoned = await client.query(closeAbandoned, [ABANDONED_DAYS]);
    if (kept.length === 0) await client.query(noteMaintenance);
    const done = { made: made.rows[0]?.made ?? 0, dropped, kept, abandoned: abandoned.rowCount ?? 0 };
    log.info(done, 'database maintained');
    return done;
  } catch (error) {
    throw explainDatabaseError(options, error);
  }
}

/** Drops what is expired. What a reader keeps is tried once more, after everything else. */
async function dropExpired(
  client: Client,
  log: Logger,
): Promise<Pick<MaintenanceResult, 'dropped' | 'kept'>> {
  const { rows } = await client.query<ExpiredPartition>(listExpiredPartitions);
  const first = await dropEach(client, log, rows);
  if (first.kept.length === 0) return first;
  const again = (await client.query<ExpiredPartition>(listExpiredPartitions)).rows;
  const second = await dropEach(client, log, again);
  return { dropped: [...first.dropped, ...second.dropped], kept: second.kept };
}

async function dropEach(
  client: Client,
  log: Logger,
  partitions: readonly ExpiredPartition[],
): Promise<{ readonly dropped: readonly string[]; readonly kept: readonly string[] }> {
  const dropped: string[] = [];
  const kept: string[] = [];
  for (const partition of partitions) {
    try {
      await drop(client, partition);
      dropped.push(partition.name);
    } catch (error) {
      kept.push(partition.name);
      log.warn({ partition: partition.name, error: String(error) }, 'partition could not be dropped');
    }
  }
  return { dropped, kept };
}

async function drop(client: Client, partition: ExpiredPartition): Promise<void> {
  // Names cannot be parameters; these come from the system catalog and are quoted.
  const child = `store.${client.escapeIdentifier(partition.name)}`;
  if (!partition.detached) await detach(client, partition, child);
  await client.query(`DROP TABLE ${child}`);
}

async function detach(client: Client, { of_table, pending }: ExpiredPartition, child: string): Promise<void> {
  const parent = `store.${client.escapeIdentifier(of_table)}`;
  await client.query(
    `ALTER TABLE ${parent} DETACH PARTITION ${child} ${pending ? 'FINALIZE' : 'CONCURRENTLY'}`,
  );
}
