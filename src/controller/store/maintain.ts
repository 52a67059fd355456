/*
 * `plegwatch maintain`: partitions ahead, retention, and epochs that nobody will finish. Run daily, as the owner.
 *
 *   retention   events, changes and minutes; their minutes are merged into hours before they go
 *   keep        hours, findings, sessions, modes, conditions and gaps
 *
 * Partitions leave by DETACH CONCURRENTLY: a plain DROP behind one slow reader would stall inserts into other partitions.
 * An interrupted run is finished by the next one.
 */
import type { Client } from 'pg';
import type { Logger } from '../../platform/log.ts';
import { withClient } from './connection.ts';
import { explainDatabase } from './databaseError.ts';
import closeAbandoned from './sql/closeAbandoned.sql';
import deleteExpired from './sql/deleteExpired.sql';
import listPartitions from './sql/listPartitions.sql';
import mergeMinutes from './sql/mergeMinutes.sql';
import readSettings from './sql/readSettings.sql';
import setRetention from './sql/setRetention.sql';

export interface MaintainOptions {
  readonly databaseUrl: string;
  /** Days that events, changes and minutes are kept, from now on; what the database says when not given. */
  readonly retentionDays?: number | undefined;
  /** Days that everything else is kept. */
  readonly keepDays?: number | undefined;
  readonly log: Logger;
}

export interface Maintained {
  /** Partitions made. */
  readonly made: number;
  /** Partitions dropped, by name. */
  readonly dropped: readonly string[];
  /** Epochs closed because nothing was heard of them for a week. */
  readonly abandoned: number;
}

interface Partition {
  readonly of_table: string;
  readonly name: string;
  /** The first day after it, in days since 1970. */
  readonly upper: number;
  /** Whether an earlier run was interrupted while it left. */
  readonly pending: boolean;
}

/** The advisory lock of the one maintenance of a database that may run. */
export const MAINTENANCE_LOCK = 5_143_873_212;
const DAYS_AHEAD = 3;
const ABANDONED_DAYS = 7;
/** How long to wait for whoever still reads a partition; the next run tries again. */
const LOCK_WAIT_MS = 60_000;

/** Does it all once. Returns null where another maintenance of this database is under way. */
export async function maintain(options: MaintainOptions): Promise<Maintained | null> {
  const { databaseUrl, retentionDays, keepDays, log } = options;
  return withClient(databaseUrl, 'plegwatch maintain', async (client) => {
    try {
      const lock = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [
        MAINTENANCE_LOCK,
      ]);
      if (lock.rows[0]?.got !== true) {
        log.info('another maintenance is under way');
        return null;
      }
      await client.query(`SET lock_timeout = ${LOCK_WAIT_MS}`);
      await client.query(setRetention, [retentionDays ?? null, keepDays ?? null]);
      const made = await client.query<{ made: number }>('SELECT store.make_partitions($1) AS made', [
        DAYS_AHEAD,
      ]);
      const dropped = await dropExpired(client, log);
      await client.query(deleteExpired);
      const abandoned = await client.query(closeAbandoned, [ABANDONED_DAYS]);
      const done = { made: made.rows[0]?.made ?? 0, dropped, abandoned: abandoned.rowCount ?? 0 };
      log.info(done, 'the database is maintained');
      return done;
    } catch (error) {
      throw explainDatabase(databaseUrl, error);
    }
  });
}

async function dropExpired(client: Client, log: Logger): Promise<string[]> {
  const settings = await client.query<{ event_retention_days: number; finding_retention_days: number }>(
    readSettings,
  );
  const { event_retention_days: retention = 14, finding_retention_days: keep = 400 } = settings.rows[0] ?? {};
  const { rows } = await client.query<Partition>(listPartitions, [retention, keep]);
  const dropped: string[] = [];
  for (const partition of rows) {
    try {
      await drop(client, partition);
      dropped.push(partition.name);
    } catch (error) {
      log.warn({ partition: partition.name, error: String(error) }, 'a partition could not be dropped now');
    }
  }
  return dropped;
}

async function drop(client: Client, { of_table, name, upper, pending }: Partition): Promise<void> {
  const parent = `store.${client.escapeIdentifier(of_table)}`;
  const child = `store.${client.escapeIdentifier(name)}`;
  if (of_table === 'relist_minute') {
    await client.query("SELECT store.make_partition('relist_hour', date '1970-01-01' + $1::int4)", [
      upper - 1,
    ]);
    await client.query(mergeMinutes, [upper - 1]);
  }
  // Names cannot be parameters; these come from the catalogue and are quoted.
  await client.query(
    `ALTER TABLE ${parent} DETACH PARTITION ${child} ${pending ? 'FINALIZE' : 'CONCURRENTLY'}`,
  );
  await client.query(`DROP TABLE ${child}`);
}
