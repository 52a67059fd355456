/*
 * A Postgres that is made once for a test run, with a migrated database. Each file starts a copy of it, and its migrated databases are copies of
 * that one: a copy takes a tenth of the processor time of initdb and of the migrations.
 */
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { type LocalPostgres, startPostgres } from '../../devtools/localServices/postgres.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { migrate } from '../../src/store/migrate.ts';
import { has } from './needs.ts';
import { query } from './query.ts';

/** The folder of the prepared one, in the environment of the processes that run tests. Programs that are no tests have none. */
const FOLDER = 'PLEGWATCH_PREPARED_POSTGRES';
/** The migrated database, and the role that owns what is in it. Nobody can connect to the one or log in as the other. */
const PREPARED = 'prepared';
const SETTINGS = { fsync: 'off' } as const;

export default async function setup(): Promise<() => void> {
  // Each project of a run asks for one: the first makes it, and removes it at the end.
  if (!has('postgres') || process.env[FOLDER] !== undefined) return () => undefined;
  const folder = temporaryFolder('prepared', undefined);
  const postgres = await startPostgres({ dir: folder.dir, settings: SETTINGS });
  try {
    await prepare(postgres.url);
  } finally {
    await postgres.stop();
  }
  process.env[FOLDER] = folder.dir;
  return () => folder.remove();
}

async function prepare(url: string): Promise<void> {
  const password = randomBytes(8).toString('hex');
  await query(url, `CREATE ROLE ${PREPARED} LOGIN PASSWORD '${password}'`);
  await query(url, `CREATE DATABASE ${PREPARED} OWNER ${PREPARED}`);
  const databaseUrl = Object.assign(new URL(url), { username: PREPARED, password, pathname: `/${PREPARED}` });
  // Those that get a copy can raise the number of queues that it ever had, and not lower it.
  await migrate({ databaseUrl: databaseUrl.href, queues: 1, log: pino({ level: 'silent' }) });
  for (const text of [
    `ALTER DATABASE ${PREPARED} OWNER TO CURRENT_USER`,
    `ALTER DATABASE ${PREPARED} ALLOW_CONNECTIONS false`,
    `ALTER ROLE ${PREPARED} NOLOGIN`,
  ])
    await query(url, text);
}

/** Starts a Postgres of its own for a file of tests. */
export const startTestPostgres = (): Promise<LocalPostgres> =>
  startPostgres({ settings: SETTINGS, copyOf: process.env[FOLDER] });

/** Makes a database for this owner. `migrated`: a copy of the prepared one, if there is one. It still has to be migrated: its settings are missing. */
export async function createDatabase(
  url: string,
  name: string,
  owner: string,
  migrated: boolean,
): Promise<void> {
  if (!migrated || process.env[FOLDER] === undefined) {
    await query(url, `CREATE DATABASE ${name} OWNER ${owner}`);
    return;
  }
  await query(url, `CREATE DATABASE ${name} OWNER ${owner} TEMPLATE ${PREPARED}`);
  await giveTo(url, name, owner);
}

/** Puts the prepared database, if there is one, in the place of the empty one of a server. It still has to be migrated. */
export async function usePrepared(url: string): Promise<void> {
  if (process.env[FOLDER] === undefined) return;
  const { username: owner, pathname } = new URL(url);
  const name = pathname.slice(1);
  const elsewhere = Object.assign(new URL(url), { pathname: '/postgres' });
  for (const text of [
    `DROP DATABASE ${name}`,
    `ALTER DATABASE ${PREPARED} RENAME TO ${name}`,
    `ALTER DATABASE ${name} ALLOW_CONNECTIONS true`,
  ])
    await query(elsewhere.href, text);
  await giveTo(url, name, owner);
}

/** A new database counts as maintained now. */
async function giveTo(url: string, name: string, owner: string): Promise<void> {
  const database = Object.assign(new URL(url), { pathname: `/${name}` });
  await query(database.href, `REASSIGN OWNED BY ${PREPARED} TO ${owner}`);
  await query(database.href, 'UPDATE store.maintenance SET succeeded_at = now()');
}
