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
import { escapeIdentifier } from 'pg';
import type { Logger } from '../platform/log.ts';
import { withClient } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import { explainDatabaseError } from './databaseError.ts';
import { databaseNow } from './expressions.ts';
import { DAYS_AHEAD } from './partitions.ts';
import type { SqlRunner } from './runner.ts';
import { maintenance } from './schema/tables.ts';
import { command, type RowOf } from './statement.ts';
import {
  closeAbandoned,
  cutFutureTimes,
  deleteExpired,
  deleteExpiredEpochs,
  deleteGoneNodes,
  listExpiredPartitions,
  makePartitions,
  tryMaintenanceLock,
} from './statements.ts';

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

type ExpiredPartition = RowOf<typeof listExpiredPartitions>;

const ABANDONED_DAYS = 7;
/** How long to wait for the readers of a table each time; the next run tries again. */
const LOCK_WAIT_MS = 60_000;

/**
 * Returns null if another maintenance of this database is running. Its lock is held by a transaction on a connection of its own: partitions
 * cannot be detached inside one, and a lock of a session could stay behind in a pooler.
 */
export async function maintain(options: MaintainOptions): Promise<MaintenanceResult | null> {
  return withClient(options, 'plegwatch maintain (lock)', async (holder) => {
    await holder.run(command('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0'));
    const { rows } = await holder.run(tryMaintenanceLock);
    if (rows[0]?.got !== true) {
      options.log.info('another maintenance is running');
      return null;
    }
    return withClient(options, 'plegwatch maintain', (sql) => maintainWith(sql, options));
  });
}

async function maintainWith(sql: SqlRunner, options: MaintainOptions): Promise<MaintenanceResult> {
  const { log, lockWaitMs = LOCK_WAIT_MS } = options;
  try {
    // Through a pooler they would be set for whoever gets the session next. A slow reader then ends a run only by its deadline.
    if (options.databasePoolMode !== 'transaction')
      await sql.run(command(`SET lock_timeout = ${lockWaitMs}`));
    const made = await sql.run(makePartitions, [DAYS_AHEAD]);
    const { dropped, kept } = await dropExpired(sql, log);
    await sql.run(cutFutureTimes);
    await sql.run(deleteExpired);
    await sql.run(deleteExpiredEpochs);
    await sql.run(deleteGoneNodes);
    const abandoned = await sql.run(closeAbandoned, [ABANDONED_DAYS]);
    if (kept.length === 0) await sql.query((db) => db.update(maintenance).set({ succeeded_at: databaseNow }));
    const done = { made: made.rows[0]?.made ?? 0, dropped, kept, abandoned: abandoned.count };
    log.info(done, 'database maintained');
    return done;
  } catch (error) {
    throw explainDatabaseError(options, error);
  }
}

/** Drops what is expired. What a reader keeps is tried once more, after everything else. */
async function dropExpired(
  sql: SqlRunner,
  log: Logger,
): Promise<Pick<MaintenanceResult, 'dropped' | 'kept'>> {
  const first = await dropEach(sql, log, (await sql.run(listExpiredPartitions)).rows);
  if (first.kept.length === 0) return first;
  const second = await dropEach(sql, log, (await sql.run(listExpiredPartitions)).rows);
  return { dropped: [...first.dropped, ...second.dropped], kept: second.kept };
}

async function dropEach(
  sql: SqlRunner,
  log: Logger,
  partitions: readonly ExpiredPartition[],
): Promise<{ readonly dropped: readonly string[]; readonly kept: readonly string[] }> {
  const dropped: string[] = [];
  const kept: string[] = [];
  for (const partition of partitions) {
    try {
      await drop(sql, partition);
      dropped.push(partition.name);
    } catch (error) {
      kept.push(partition.name);
      log.warn({ partition: partition.name, error: String(error) }, 'partition could not be dropped');
    }
  }
  return { dropped, kept };
}

async function drop(sql: SqlRunner, partition: ExpiredPartition): Promise<void> {
  // Names cannot be parameters; these come from the system catalog and are quoted.
  const child = `store.${escapeIdentifier(partition.name)}`;
  if (!partition.detached) await detach(sql, partition, child);
  await sql.run(command(`DROP TABLE ${child}`));
}

async function detach(sql: SqlRunner, { of_table, pending }: ExpiredPartition, child: string): Promise<void> {
  const parent = `store.${escapeIdentifier(of_table)}`;
  const how = pending ? 'FINALIZE' : 'CONCURRENTLY';
  await sql.run(command(`ALTER TABLE ${parent} DETACH PARTITION ${child} ${how}`));
}
