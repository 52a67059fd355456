/*
 * `plegwatch federate`: makes an ordinary database the fleet database of groups of clusters, each of which has a database of its own, or brings one
 * up to date. Run as its owner, again whenever a group is added, moved or migrated; a run changes everything or nothing.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { escapeIdentifier } from 'pg';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { invariant } from '../platform/invariant.ts';
import type { Logger } from '../platform/log.ts';
import { withClient } from './connection.ts';
import {
  caFileOf,
  type DatabaseSettings,
  databaseAt,
  databaseSettingOf,
  readDatabaseAccess,
} from './databaseAccess.ts';
import {
  explainDatabaseError,
  isLockTimeout,
  isMadeAlready,
  isOfDatabase,
  reasonOf,
} from './databaseError.ts';
import {
  type Group,
  hasNodes,
  mappingDdl,
  serverDdl,
  serverOf,
  serverOptions,
  sharedBy,
  viewsDdl,
} from './fleetSchema.ts';
import { lockedError } from './lockHolders.ts';
import { defaultMigrationsDir, readMigrations } from './migrations.ts';
import type { SqlRunner } from './runner.ts';
import { command } from './statement.ts';
import {
  fleetBasis,
  inPlainSession,
  inPostgresNames,
  listClusters,
  listDependents,
  listGroupServers,
  listPublished,
  lockFederate,
} from './statements.ts';

export interface FederateOptions extends DatabaseSettings {
  /** A folder with the files of {@link readDatabaseAccess} for each group, in a folder of the group's name. */
  readonly groupsDir: string;
  /** A role of the fleet database that reads as these users of the groups. Default: its owner, and the fleet is made of these groups. */
  readonly reader?: string | undefined;
  readonly log: Logger;
  /** For tests. Default: {@link LOCK_WAIT_MS}. */
  readonly lockWaitMs?: number;
}

/** How long to wait for each lock: another run, or the readers of a view. */
const LOCK_WAIT_MS = 60_000;

/** Throws SETTING_INVALID for a group or database that cannot be used, and what {@link withClient} does of each group. */
export async function federate(options: FederateOptions): Promise<void> {
  const { groupsDir, reader, log } = options;
  const groups = await Promise.all(namesIn(groupsDir).map((name) => readGroup(options, name)));
  const { shared, leftOut } = sharedBy(groups);
  if (!hasNodes(shared))
    throw new PlegwatchError(
      'DATABASE_NOT_MIGRATED',
      'The groups do not all have a view plegwatch.nodes of which a fleet can be made.',
      'Run plegwatch migrate in each of them, as its owner.',
    );
  if (leftOut.length > 0)
    log.warn(
      { leftOut },
      'left out: groups of different versions do not share it, or it is not of plegwatch',
    );
  await withClient(options, 'plegwatch federate', async (sql) => {
    try {
      await begin(sql, options);
      const { role, dblink } = await basisOf(sql, options);
      if (reader === undefined) await removeEarlier(sql, groups, options);
      await mapUsers(sql, groups, reader ?? role);
      if (reader === undefined) {
        await sql.run(command(viewsDdl(groups, shared, dblink)));
        await sql.run(command('SELECT FROM plegwatch.clusters')).catch((error: unknown) => {
          throw notReached(options, error);
        });
      }
      await sql.run(command('COMMIT'));
    } catch (error) {
      if (!isLockTimeout(error)) throw explainDatabaseError(options, error);
      await sql.run(command('ROLLBACK'));
      throw await lockedError(sql, options, error);
    }
  });
  log.info(
    { database: databaseAt(options), groups: groups.map(({ name }) => name), reader },
    'fleet database set up',
  );
}

/** Begins the transaction of a run, when no other one is under way. */
async function begin(sql: SqlRunner, options: FederateOptions): Promise<void> {
  await sql.run(command('BEGIN'));
  await sql.run(inPostgresNames);
  await sql.run(command(`SET LOCAL lock_timeout = ${options.lockWaitMs ?? LOCK_WAIT_MS}`));
  try {
    await sql.run(lockFederate);
  } catch (error) {
    // By another first run.
    if (!isMadeAlready(error)) throw error;
    await sql.run(command('ROLLBACK'));
    await begin(sql, options);
  }
}

/** Makes `role` in each group the user that is named for it. */
async function mapUsers(sql: SqlRunner, groups: readonly Group[], role: string): Promise<void> {
  for (const group of groups)
    await sql.run(command(mappingDdl(group, role))).catch((error: unknown) => {
      if (isLockTimeout(error)) throw error;
      throw new PlegwatchError(
        'SETTING_INVALID',
        `The role ${role} cannot be given a user in group ${group.name}: ${messageOf(error)}.`,
        'Set --reader to a role of the fleet database, and --groups-dir to groups of which plegwatch federate made it without --reader.',
        { cause: error },
      );
    });
}

function namesIn(groupsDir: string): string[] {
  let names: string[];
  try {
    // Kubernetes mounts more than the keys: ..data and the like.
    names = readdirSync(groupsDir).filter((name) => !name.startsWith('.'));
  } catch (error) {
    throw invalid(`--groups-dir cannot be read: ${messageOf(error)}.`);
  }
  const wrong = names.find((name) => !/^[a-z0-9][a-z0-9_-]{0,40}$/.test(name));
  if (wrong !== undefined)
    throw invalid(`The name of group ${wrong} has other characters than a-z, 0-9, - and _, or more than 41.`);
  if (names.length === 0) throw invalid('--groups-dir has no group.');
  return names.sort();
}

/** Reads where a group is, and what it publishes. */
async function readGroup(options: FederateOptions, name: string): Promise<Group> {
  const dir = join(options.groupsDir, name);
  const settings = { databaseSecretDir: dir, databaseCaFile: caFileOf(options) };
  try {
    const access = readDatabaseAccess(settings);
    const { user, password, database } = access;
    if (user === undefined || password === undefined || database === undefined)
      throw invalid(`Group ${name} lacks the user, the password or the database.`);
    const { published, clusters } = await withClient(settings, 'plegwatch federate', async (sql) => {
      await sql.run(inPlainSession);
      const { rows } = await sql.run(listPublished);
      return { published: rows, clusters: rows.length === 0 ? [] : (await sql.run(listClusters)).rows };
    });
    if (published.length === 0)
      throw new PlegwatchError(
        'DATABASE_NOT_MIGRATED',
        `The database of group ${name} at ${databaseAt(settings)} has no schema plegwatch.`,
        'Run plegwatch migrate there, as its owner.',
      );
    const withNodes = clusters.flatMap((each) => (each.hasNodes ? [each.name] : []));
    const of = { published, clusters: withNodes };
    return { name, server: serverOptions(access, database), user: { user, password }, ...of };
  } catch (error) {
    if (!isOfDatabase(error)) throw error;
    const { code, message, cure } = explainDatabaseError(settings, error);
    const ofGroup = (text: string) => text.replaceAll(databaseSettingOf(settings), dir);
    throw new PlegwatchError(code, ofGroup(message), ofGroup(cure), { cause: error });
  }
}

/** Checks that the database can be a fleet's. Returns its owner and the schema of dblink. */
async function basisOf(
  sql: SqlRunner,
  options: DatabaseSettings,
): Promise<{ readonly role: string; readonly dblink: string }> {
  const { rows } = await sql.run(fleetBasis);
  const [basis] = rows;
  invariant(basis, 'a row');
  const { role, dblink } = basis;
  if (basis.has_evidence)
    throw new PlegwatchError(
      'SETTING_INVALID',
      `The database at ${databaseAt(options)} has evidence of its own, so it cannot be a fleet's.`,
      'Make an empty database for the fleet, also if one of the groups is on the same server.',
    );
  if (basis.has_schema && !basis.is_fleet)
    throw new PlegwatchError(
      'SETTING_INVALID',
      `The database at ${databaseAt(options)} has a schema plegwatch or store that plegwatch federate did not make, and would drop.`,
      'Make an empty database for the fleet.',
    );
  if (dblink === null || !basis.may_connect)
    throw new PlegwatchError(
      'DATABASE_REFUSED',
      `The database at ${databaseAt(options)} lacks an extension, or ${role} may not use it.`,
      `Run there as a superuser: CREATE EXTENSION IF NOT EXISTS postgres_fdw; CREATE EXTENSION IF NOT EXISTS dblink; GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO ${escapeIdentifier(role)}.`,
    );
  return { role, dblink };
}

/** Removes what an earlier run made, but for the servers of groups that remain, of which readers have mappings, and brings these up to date. */
async function removeEarlier(
  sql: SqlRunner,
  groups: readonly Group[],
  options: DatabaseSettings,
): Promise<void> {
  const { rows: dependents } = await sql.run(listDependents);
  if (dependents.length > 0)
    throw new PlegwatchError(
      'DATABASE_REFUSED',
      `In the database at ${databaseAt(options)}, others read the views of the fleet, which are made anew: ${dependents.map(({ dependent }) => dependent).join(', ')}.`,
      'Drop them before, and make them again after.',
    );
  const { rows: existing } = await sql.run(listGroupServers);
  await sql.run(command('DROP SCHEMA IF EXISTS plegwatch, store CASCADE'));
  for (const { server } of existing) {
    await sql.run(command(`DROP SCHEMA IF EXISTS ${escapeIdentifier(server)} CASCADE`));
    if (!groups.some((group) => serverOf(group) === server))
      await sql.run(command(`DROP SERVER ${escapeIdentifier(server)} CASCADE`));
  }
  const [functions] = readMigrations(defaultMigrationsDir());
  await sql.run(command(functions?.sql ?? ''));
  for (const group of groups)
    await sql.run(
      command(serverDdl(group, existing.find(({ server }) => server === serverOf(group))?.options)),
    );
}

/** This program reaches every group, and the server of the fleet database does not. */
const notReached = (options: DatabaseSettings, cause: unknown): PlegwatchError =>
  new PlegwatchError(
    'DATABASE_UNREACHABLE',
    `The server of the fleet database at ${databaseAt(options)} cannot read a group: ${reasonOf(cause)}.`,
    /certificate/.test(reasonOf(cause))
      ? 'It does not get the CA of --groups-dir or --database-ca-file: on its machine, make it ~/.postgresql/root.crt of its user, or name its path there as the option sslrootcert of its server plegwatch_GROUP, before this command runs.'
      : 'It must reach every group under the host and port in --groups-dir, as a reader there (store.grant_reader), and be asked for a password.',
    { cause },
  );

const invalid = (message: string): PlegwatchError =>
  new PlegwatchError(
    'SETTING_INVALID',
    message,
    'Set --groups-dir to a folder that has a folder for each group, with the files of a Secret that has the URL of a reader there.',
  );
