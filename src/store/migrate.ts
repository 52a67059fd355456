/*
 * `plegwatch migrate`: brings a database to this program's schema, stores the settings that belong to the database, and grants roles
 * what they need. Run as the owner of the database; no superuser is needed. A database that is ahead and compatible stays as it is.
 */
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import { untilReachable } from '../platform/untilReachable.ts';
import { type Micros, millis } from '../protocol/units.ts';
import { withClient } from './connection.ts';
import { type DatabaseSettings, databaseAt } from './databaseAccess.ts';
import { explainDatabaseError, FleetError, isLockTimeout, isMadeAlready } from './databaseError.ts';
import { lockedError } from './lockHolders.ts';
import {
  type AppliedMigration,
  compareApplied,
  defaultMigrationsDir,
  type Migration,
  readMigrations,
} from './migrations.ts';
import { DAYS_AHEAD } from './partitions.ts';
import type { SqlRunner } from './runner.ts';
import { migration } from './schema/tables.ts';
import { command } from './statement.ts';
import { changeSettings, createMigrationTable, hasMigrations, makePartitions } from './statements.ts';

export interface MigrateOptions extends DatabaseSettings {
  /** Settings of the database; what is not given stays. */
  readonly queues?: number | undefined;
  readonly eventRetentionDays?: number | undefined;
  readonly findingRetentionDays?: number | undefined;
  /** Roles that get the rights of a controller: `role=cluster`, or `role` for every cluster. */
  readonly controllerRoles?: readonly string[] | undefined;
  readonly log: Logger;
  /** How long to wait for a Postgres that cannot be reached. Default: not at all. */
  readonly databaseWait?: Micros | undefined;
  /** The folder of migration files; by default the one beside this program's package.json. */
  readonly migrationsDir?: string | undefined;
  /** For tests. Default: {@link LOCK_WAIT_MS}. */
  readonly lockWaitMs?: number;
}

const LOCK_WAIT_MS = 120_000;

/** Applies what is missing and returns the names of those migrations. Safe to run twice, also at the same time. */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[] }> {
  const { databaseWait = millis(0), log } = options;
  const throttled = new ThrottledLog(log, { linesPerMinute: 1 });
  await untilReachable(() => withClient(options, 'plegwatch migrate', async () => undefined), {
    codes: ['DATABASE_UNREACHABLE'],
    wait: databaseWait,
    onWait: (error) => throttled.warn({ error: messageOf(error) }, 'waiting for Postgres'),
  });
  const files = readMigrations(options.migrationsDir ?? defaultMigrationsDir());
  return withClient(options, 'plegwatch migrate', async (sql) => {
    try {
      // One transaction, which an error rolls back: the connection is closed after it.
      await begin(sql, options);
      const before = await readApplied(sql);
      compareApplied(files, before);
      const missing = files.slice(before.length);
      await apply(sql, missing);
      await change(sql, options);
      await sql.run(command('COMMIT'));
      const applied = missing.map(({ name }) => name);
      const version = Math.max(files.length, before.length);
      log.info({ database: databaseAt(options), applied, version }, 'database migrated');
      return { applied };
    } catch (error) {
      if (!isLockTimeout(error)) throw explainDatabaseError(options, error);
      await sql.run(command('ROLLBACK'));
      throw await lockedError(sql, options, error);
    }
  });
}

/** Begins the transaction that migrates. Two migrations of one database never run at the same time, and no reader can take their lock. */
async function begin(sql: SqlRunner, options: MigrateOptions): Promise<void> {
  await sql.run(command('BEGIN'));
  await sql.run(command(`SET LOCAL lock_timeout = ${options.lockWaitMs ?? LOCK_WAIT_MS}`));
  const { rows } = await sql.run(hasMigrations);
  const isNew = rows[0]?.there !== true;
  if (isNew && rows[0]?.is_fleet === true) throw new FleetError(options);
  if (isNew && !(await isMade(sql))) {
    await sql.run(command('ROLLBACK'));
    return begin(sql, options);
  }
  await sql.run(command('LOCK TABLE store.migration IN SHARE ROW EXCLUSIVE MODE'));
}

/** Makes the table of migrations. False where another migration made it meanwhile. */
async function isMade(sql: SqlRunner): Promise<boolean> {
  try {
    await sql.run(createMigrationTable);
    return true;
  } catch (error) {
    if (isMadeAlready(error)) return false;
    throw error;
  }
}

const readApplied = (sql: SqlRunner): Promise<AppliedMigration[]> =>
  sql.query((db) => db.select().from(migration).orderBy(migration.number));

/** Applies migrations. Roles that were granted something before also get what the new ones need. */
async function apply(sql: SqlRunner, missing: readonly Migration[]): Promise<void> {
  for (const { number, hash, compatibleSince, name, sql: text } of missing) {
    await sql.run(command(text)).catch((error: unknown) => {
      throw isLockTimeout(error) ? error : refused(name, error);
    });
    await sql.query((db) => db.insert(migration).values({ number, hash, compatible_since: compatibleSince }));
  }
  if (missing.length > 0) await sql.run(command('SELECT store.renew_grants()'));
}

async function change(sql: SqlRunner, options: MigrateOptions): Promise<void> {
  const { queues, eventRetentionDays, findingRetentionDays, controllerRoles = [] } = options;
  await sql.run(changeSettings, [queues, eventRetentionDays, findingRetentionDays]);
  for (const grant of controllerRoles) {
    // A role may have any name, a cluster has no equals sign in its.
    const [, role, cluster] = /^(.+?)(?:=([^=]*))?$/.exec(grant) ?? [];
    await sql.run(command('SELECT store.grant_controller($1, $2)'), [role, cluster]);
  }
  await sql.run(makePartitions, [DAYS_AHEAD]);
}

function refused(name: string, cause: unknown): PlegwatchError {
  return new PlegwatchError(
    'DATABASE_REFUSED',
    `Postgres refuses migration ${name}: ${messageOf(cause)}.`,
    'Run plegwatch migrate as the owner of the database, on Postgres 15 or later; nothing was changed.',
    { cause },
  );
}
