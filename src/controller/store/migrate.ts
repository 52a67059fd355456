/*
 * `plegwatch migrate`: brings a database to this program's schema and stores the settings that belong to the database.
 *
 * Drizzle's migrator takes no lock, does not compare files with what was applied, and puts statements and parameters into its
 * errors; all three are done here. Run as the owner of the database; no superuser is needed.
 */
import { NodePgSession } from 'drizzle-orm/node-postgres';
import { PgDialect } from 'drizzle-orm/pg-core';
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
import ensureCluster from './sql/ensureCluster.sql';
import setQueues from './sql/setQueues.sql';

export interface MigrateOptions {
  readonly databaseUrl: string;
  /** How many queues the agents use. */
  readonly queues: number;
  /** A cluster to add, so that its rows can be granted before a controller starts. */
  readonly cluster?: string | undefined;
  readonly log: Logger;
  /** The folder of migration files; by default the one beside this program's package.json. */
  readonly migrationsDir?: string | undefined;
}

/** An advisory lock, the same in every version: two migrations of one database never run at the same time. */
const LOCK = 5_143_873_211;
const LOCK_WAIT_MS = 120_000;

/** Applies what is missing and returns the names of those migrations. Safe to run twice, also at the same time. */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[] }> {
  const { databaseUrl, queues, cluster, log } = options;
  const dir = options.migrationsDir ?? defaultMigrationsDir();
  const files = readMigrations(dir);
  return withClient(databaseUrl, 'plegwatch migrate', async (client) => {
    try {
      await client.query(`SET lock_timeout = ${LOCK_WAIT_MS}`);
      await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
      const before = await readApplied(client);
      compareApplied(files, before);
      await applyMissing(client, dir, files);
      const applied = files.slice(before.length).map((file) => file.name);
      await client.query(setQueues, [queues]);
      if (cluster !== undefined) await client.query(ensureCluster, [cluster]);
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
  const { rows } = await client.query<{ number: string; hash: string }>(
    'SELECT created_at AS number, hash FROM store.migration ORDER BY created_at',
  );
  return rows.map(({ number, hash }) => ({ number: Number(number), hash }));
}

async function applyMissing(client: Client, dir: string, files: readonly Migration[]): Promise<void> {
  const dialect = new PgDialect();
  // The migrator orders migrations by the field in which its generator would put a time.
  const migrations = files.map(({ sql, number, hash }) => ({
    sql: [sql],
    folderMillis: number,
    hash,
    bps: false,
  }));
  try {
    await dialect.migrate(migrations, new NodePgSession(client, dialect, undefined), {
      migrationsFolder: dir,
      migrationsSchema: 'store',
      migrationsTable: 'migration',
    });
  } catch (error) {
    throw withoutStatement(error, files);
  }
}

/** The database's own message about a failed migration and the name of the migration: no statement, no parameters. */
function withoutStatement(error: unknown, files: readonly Migration[]): unknown {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const query = error instanceof Error ? Reflect.get(error, 'query') : undefined;
  const file = files.find(({ sql }) => sql === query);
  if (file === undefined) return cause;
  return new PlegwatchError(
    'DATABASE_REFUSED',
    `Postgres refuses migration ${file.name}: ${messageOf(cause)}.`,
    'Run plegwatch migrate as the owner of the database, on Postgres 15 or later; nothing was changed.',
    { cause },
  );
}
