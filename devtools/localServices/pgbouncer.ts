/*
 * A PgBouncer on loopback in front of a Postgres: in transaction mode, with fewer connections to the server than its clients have, so that
 * what one of them leaves in a session reaches the others.
 */
import { chownSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type LocalService, startService } from './localService.ts';
import { freePort, NOBODY, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

interface LocalPgBouncer extends LocalService {
  readonly port: number;
}

export interface PgBouncerOptions {
  /** The port of the Postgres. */
  readonly postgres: number;
  /** The roles that may log in, and their passwords. */
  readonly users: Readonly<Record<string, string>>;
  /** Connections to Postgres for each role and database. */
  readonly poolSize: number;
}

export async function startPgBouncer({
  postgres,
  users,
  poolSize,
}: PgBouncerOptions): Promise<LocalPgBouncer> {
  const command = where('pgbouncer');
  const port = await freePort();
  const place = temporaryFolder('pgbouncer', undefined);
  // It refuses to run as root.
  const as = process.getuid?.() === 0 ? NOBODY : undefined;
  const config = join(place.dir, 'pgbouncer.ini');
  const list = join(place.dir, 'users.txt');
  const lines = Object.entries(users).map(([name, password]) => `"${name}" "${password}"`);
  writeFileSync(list, lines.join('\n'));
  writeFileSync(
    config,
    `[databases]
* = host=127.0.0.1 port=${postgres}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${list}
pool_mode = transaction
default_pool_size = ${poolSize}
`,
  );
  if (as !== undefined) for (const path of [place.dir, config, list]) chownSync(path, as.uid, as.gid);
  const service = await startService(
    () =>
      startProcess({
        name: 'pgbouncer',
        command,
        args: [config],
        cwd: place.dir,
        as,
        logFile: join(place.dir, 'pgbouncer.log'),
        ready: () => listens(port),
      }),
    async () => place.remove(),
  );
  return Object.assign(service, { port });
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
  });
}
