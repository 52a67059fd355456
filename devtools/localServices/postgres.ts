/*
 * A Postgres on loopback, with passwords, in a folder that is removed with it. Postgres refuses to run as root, so for
 * root it runs as nobody.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { messageOf } from '../../src/platform/errors.ts';
import { type LocalService, startService } from './localService.ts';
import {
  freePort,
  NOBODY,
  type RunningProcess,
  run,
  type ServiceNetwork,
  startProcess,
  type UnixUser,
} from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalPostgres extends LocalService {
  /** The URL of superuser `plegwatch` for the empty database `plegwatch`. */
  readonly url: string;
  readonly port: number;
  /** The folder of its Unix socket, which is reachable from every network namespace. */
  readonly socketDir: string;
}

export interface PostgresOptions {
  /** Where its data is. Default: a temporary folder. The caller's own folder is kept and can be started again. */
  readonly dir?: string;
  /** Listens there, and in the network namespace of the process `of`. Default: on a free port of this machine's loopback. */
  readonly network?: ServiceNetwork;
  /** The password of `plegwatch`. Default: random. */
  readonly password?: string;
  /** The folder of one that has ended: a new one begins with a copy of its databases, and with its password. */
  readonly copyOf?: string | undefined;
  /** Server settings, such as `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

const NAME = 'plegwatch';
const REMOTE_ACCESS = 'host all all all scram-sha-256\n';
const BACKENDS_EXIT_WITHIN_MS = 120_000;
/** No superuser, and no owner: row-level security does not hold for these. */
export const CONTROLLER_ROLE = 'controller';

const passwordFileIn = (dir: string): string => join(dir, 'password');

/** Starts Postgres, with a new database cluster where the folder has none. */
export async function startPostgres(options: PostgresOptions = {}): Promise<LocalPostgres> {
  const place = temporaryFolder('postgres', options.dir);
  const data = join(place.dir, 'data');
  const as = process.getuid?.() === 0 ? NOBODY : undefined;
  let command: string;
  let network: ServiceNetwork;
  try {
    command = where('postgres');
    network = options.network ?? { address: '127.0.0.1', port: await freePort() };
    if (as !== undefined) chownSync(place.dir, as.uid, as.gid);
    if (!existsSync(join(data, 'PG_VERSION'))) {
      if (options.copyOf === undefined)
        await initialise(place.dir, data, command, as, options.password ?? randomBytes(18).toString('hex'));
      else await copy(options.copyOf, place.dir);
      // initdb lets in this machine only.
      if (options.network !== undefined) appendFileSync(join(data, 'pg_hba.conf'), REMOTE_ACCESS);
    }
  } catch (error) {
    place.remove();
    throw error;
  }
  const settings: Record<string, string> = {
    listen_addresses: network.address,
    port: `${network.port}`,
    unix_socket_directories: place.dir,
    max_connections: '100',
    ...options.settings,
  };
  const start = () =>
    startProcess({
      name: 'postgres',
      command,
      args: ['-D', data, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
      cwd: place.dir,
      as,
      networkOf: network.of,
      logFile: join(place.dir, 'postgres.log'),
      ready: async (pid) => isReady(data, pid),
      // A "fast" shutdown closes open connections. SIGTERM would wait for their clients.
      stopSignal: 'SIGINT',
    });
  const service = await startService(
    () => startAfterBackends(start),
    async () => place.remove(),
  );
  const password = readFileSync(passwordFileIn(place.dir), 'utf8').trim();
  const { address, port } = network;
  return Object.assign(service, {
    url: `postgres://${NAME}:${password}@${address}:${port}/${NAME}`,
    port,
    socketDir: place.dir,
  });
}

/** Creates the controllers' role, which can only log in until a migration grants it something. Returns its URL of the database. */
export async function createControllerRole(databaseUrl: string): Promise<string> {
  const url = new URL(databaseUrl);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`CREATE ROLE ${CONTROLLER_ROLE} LOGIN PASSWORD '${url.password}'`);
  } finally {
    await client.end();
  }
  url.username = CONTROLLER_ROLE;
  return url.href;
}

async function initialise(
  dir: string,
  data: string,
  postgres: string,
  as: UnixUser | undefined,
  password: string,
): Promise<void> {
  const passwordFile = passwordFileIn(dir);
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (as !== undefined) chownSync(passwordFile, as.uid, as.gid);
  const layout = [`--pgdata=${data}`, '--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  const access = [`--username=${NAME}`, '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  await run(where('initdb'), [...layout, ...access], { as, cwd: dir });
  const statement = join(dir, 'create.sql');
  writeFileSync(statement, `CREATE DATABASE ${NAME};\n`, { mode: 0o644 });
  // The package has no client program, so the server runs the statement in single-user mode.
  await run('/bin/sh', ['-c', 'exec "$0" --single -D "$1" postgres < "$2"', postgres, data, statement], {
    as,
    cwd: dir,
  });
}

const copy = (from: string, to: string): Promise<string> =>
  run('cp', ['-a', '--reflink=auto', join(from, 'data'), passwordFileIn(from), to]);

/** Postgres writes its process id to the first line of this file, and its state to the eighth. */
function isReady(data: string, pid: number): boolean {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return false;
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines[0] === `${pid}` && lines[7]?.trim() === 'ready';
}

/** After a kill -9 the backends outlive the postmaster for a moment, and a new one refuses to start until they exit. */
async function startAfterBackends(start: () => Promise<RunningProcess>): Promise<RunningProcess> {
  const deadline = Date.now() + BACKENDS_EXIT_WITHIN_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const backendsRun = messageOf(error).includes('pre-existing shared memory block');
      if (!backendsRun || Date.now() > deadline) throw error;
      await delay(100);
    }
  }
}
