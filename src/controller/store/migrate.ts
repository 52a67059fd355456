/*
 * `plegwatch migrate`: brings a database to this program's schema and stores the settings that belong to the database. Run
 * as the owner of the database; no superuser is needed.
 */
import type { Client } from 'pg';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { withClient } from './connection.ts';
import { explainDatabaseError, redactDatabaseUrl } from './databaseError.ts';
import {
  type AppliedMigration,
  compareApplied,
  defaultMigrationsDir,
  type Migration,
  readMigrations,
} from './migrations.ts';
import { DAYS_AHEAD } from './partitions.ts';
import createMigrationTable from './sql/createMigrationTable.sql';
import setQueues from './sql/setQueues.sql';

export interface MigrateOptions {
  readonly databaseUrl: string;
  readonly queues: number;
  readonly log: Logger;
  /** The folder of migration files; by default the one beside this program's package.json. */
  readonly migrationsDir?: string | undefined;
}

/** An advisory lock, the same in every version: two migrations of one database never run at the same time. */
const LOCK = 5_143_873_211;
const LOCK_WAIT_MS = 120_000;

/** Applies what is missing and returns the names of those migrations. Safe to run twice, also at the same time. */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[] }> {
  const { databaseUrl, queues, log } = options;
  const files = readMigrations(options.migrationsDir ?? defaultMigrationsDir());
  return withClient(databaseUrl, 'plegwatch migrate', async (client) => {
    try {
      await client.query(`SET lock_timeout = ${LOCK_WAIT_MS}`);
      await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
      const before = await readApplied(client);
      compareApplied(files, before);
      const missing = files.slice(before.length);
      await apply(client, missing);
      const applied = missing.map(({ name }) => name);
      await client.query(setQueues, [queues]);
      await client.query('SELECT store.make_partitions($1)', [DAYS_AHEAD]);
      log.info({ database: redactDatabaseUrl(databaseUrl), applied, queues }, 'database migrated');
      return { applied };
    } catch (error) {
      throw explainDatabaseError(databaseUrl, error);
    }
  });
}

async function readApplied(client: Client): Promise<AppliedMigration[]> {
  const table = await client.query("SELECT to_regclass('store.migration') IS NOT NULL AS there");
  if (table.rows[0]?.there !== true) return [];
  return (await client.query<AppliedMigration>('SELECT number, hash FROM store.migration ORDER BY number'))
    .rows;
}

/** Applies migrations in one transaction, which an error rolls back: the connection is closed after it. */
async function apply(client: Client, missing: readonly Migration[]): Promise<void> {
  await client.query('BEGIN');
  await client.query(createMigrationTable);
  for (const migration of missing) {
    await client.query(migration.sql).catch((error: unknown) => {
      throw refused(migration, error);
    });
    await client.query('INSERT INTO store.migration VALUES ($1, $2)', [migration.number, migration.hash]);
  }
  await client.query('COMMIT');
}

function refused({ name }: Migration, cause: unknown): PlegwatchError {
  return new PlegwatchError(
    'DATABASE_REFUSED',
    `Postgres refuses migration ${name}: ${messageOf(cause)}.`,
    'Run plegwatch migrate as the owner of the database, on Postgres 15 or later; nothing was changed.',
    { cause },
  );
}
