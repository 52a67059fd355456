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
import { setTimeout as pause } from 'node:timers/promises';
import { escapeIdentifier } from 'pg';
import { PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { sleep } from '../platform/sleep.ts';
import { withClient } from './connection.ts';
import type { DatabaseSettings } from './databaseAccess.ts';
import { explainDatabaseError, isLockTimeout } from './databaseError.ts';
import { databaseNow } from './expressions.ts';
import { CURE_OF_LOCKS, holdersOf, lockedError } from './lockHolders.ts';
import { DAYS_AHEAD } from './partitions.ts';
import type { SqlRunner } from './runner.ts';
import { maintenance } from './schema/tables.ts';
import { command, type RowOf } from './statement.ts';
import {
  cancelWaiting,
  closeAbandoned,
  cutFutureTimes,
  deleteExpired,
  deleteExpiredEpochs,
  deleteGoneNodes,
  listExpiredPartitions,
  lookAgain,
  makePartitions,
} from './statements.ts';

export interface MaintainOptions extends DatabaseSettings {
  readonly log: Logger;
  /** For tests. Default: {@link LOCK_WAIT_MS}, and {@link OTHER_WAIT_MS} for another maintenance. */
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
/** How long another maintenance may take: that of 5,000 nodes takes a few minutes. */
const OTHER_WAIT_MS = 15 * 60_000;
const LOCK_TRY_MS = 500;
const LOCK_PAUSE_MS = 2_000;
/** How statements begin by which a pooler's sessions are found. */
const MARK = '/* plegwatch maintain */ ';

/**
 * Waits for another maintenance of this database. The lock is held by a transaction on a connection of its own: partitions cannot be detached
 * inside one, and a lock of a session could stay behind in a pooler. No reader can take it.
 *
 * Throws DATABASE_TIMEOUT, with who holds what, where the other one does not end, and after everything else where a reader keeps a partition.
 */
export async function maintain(options: MaintainOptions): Promise<MaintenanceResult> {
  const { lockWaitMs = OTHER_WAIT_MS, log } = options;
  return withClient(options, 'plegwatch maintain (lock)', async (holder) => {
    try {
      await lock(holder, lockWaitMs);
      const done = await withClient(options, 'plegwatch maintain', (sql) =>
        boundedWaits(sql, holder, options, (bounded) => maintainWith(bounded, options)),
      );
      if (done.kept.length > 0) throw await keptError(holder, done.kept);
      await holder.query((db) => db.update(maintenance).set({ succeeded_at: databaseNow }));
      await holder.run(command('COMMIT'));
      log.info(done, 'database maintained');
      return done;
    } catch (error) {
      if (!isLockTimeout(error)) throw explainDatabaseError(options, error);
      throw await lockedError(holder, options, error);
    }
  });
}

/** Takes the lock for a transaction. Between two tries it holds nothing: a pool may be as small as the other maintenance needs. */
async function lock(holder: SqlRunner, lockWaitMs: number): Promise<void> {
  const deadline = performance.now() + lockWaitMs;
  for (;;) {
    try {
      await holder.run(command('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0'));
      await holder.run(command(`SET LOCAL lock_timeout = ${Math.min(lockWaitMs, LOCK_TRY_MS)}`));
      await holder.run(command('LOCK TABLE store.maintenance IN SHARE ROW EXCLUSIVE MODE'));
      return;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      await holder.run(command('ROLLBACK'));
      if (performance.now() > deadline) throw error;
      await pause(LOCK_PAUSE_MS);
    }
  }
}

/**
 * Bounds how long each statement of `work` waits for a lock. Through a pooler, a lock_timeout would be set for whoever gets the session next, and partitions
 * cannot be detached in a transaction that has its own: there, `holder` cancels a statement that waits. No other maintenance has such statements meanwhile.
 */
async function boundedWaits<T>(
  sql: SqlRunner,
  holder: SqlRunner,
  options: MaintainOptions,
  work: (sql: SqlRunner) => Promise<T>,
): Promise<T> {
  const { lockWaitMs = LOCK_WAIT_MS } = options;
  if (options.databasePoolMode !== 'transaction') {
    await sql.run(command(`SET lock_timeout = ${lockWaitMs}`));
    return work(sql);
  }
  const ended = new AbortController();
  /** Whether the last look cancelled the statement that is under way. */
  let looked = Promise.resolve(false);
  async function look(): Promise<boolean> {
    await holder.run(lookAgain);
    const { rows } = await holder.run(cancelWaiting, [MARK, lockWaitMs]);
    return rows.some(({ cancelled }) => cancelled);
  }
  async function watch(): Promise<void> {
    for (;;) {
      await sleep(Math.min(lockWaitMs, LOCK_TRY_MS), ended.signal);
      if (ended.signal.aborted) return;
      looked = look();
      await looked;
    }
  }
  const bounded: SqlRunner = {
    ...sql,
    async run(statement, values) {
      looked = Promise.resolve(false);
      try {
        return await sql.run({ ...statement, text: `${MARK}${statement.text}` }, values);
      } catch (error) {
        throw (await looked) ? await lockedError(holder, options, error) : error;
      }
    },
  };
  const [done] = await Promise.all([work(bounded).finally(() => ended.abort()), watch()]);
  return done;
}

async function maintainWith(sql: SqlRunner, { log }: MaintainOptions): Promise<MaintenanceResult> {
  const made = await sql.run(makePartitions, [DAYS_AHEAD]);
  const { dropped, kept } = await dropExpired(sql, log);
  await sql.run(cutFutureTimes);
  await sql.run(deleteExpired);
  await sql.run(deleteExpiredEpochs);
  await sql.run(deleteGoneNodes);
  const abandoned = await sql.run(closeAbandoned, [ABANDONED_DAYS]);
  return { made: made.rows[0]?.made ?? 0, dropped, kept, abandoned: abandoned.count };
}

async function keptError(sql: SqlRunner, kept: readonly string[]): Promise<PlegwatchError> {
  return new PlegwatchError(
    'DATABASE_TIMEOUT',
    `Everything else was maintained, but these partitions could not be dropped, as the log says: ${kept.join(', ')}.${await holdersOf(sql)}`,
    CURE_OF_LOCKS,
  );
}

/** Drops what is expired. A partition that a reader keeps is tried once more, after everything else. */
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
