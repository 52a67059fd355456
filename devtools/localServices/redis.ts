/*
 * A Redis on loopback, without persistence, which refuses writes when it is full instead of evicting keys.
 */
import { connect } from 'node:net';
import { join } from 'node:path';
import type { RedisUser } from '../../src/redis/users.ts';
import { type LocalService, startService } from './localService.ts';
import { freePort, type ServiceNetwork, startProcess } from './process.ts';
import { type PasswordOf, urlAs, userArguments } from './redisUsers.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalRedis extends LocalService {
  /** As the default user, who may do everything. */
  readonly url: string;
  /** As an agent or a controller of a cluster. */
  urlOf(user: RedisUser, cluster?: string): string;
  readonly port: number;
}

export interface RedisOptions {
  /** Where it runs and logs. Default: a temporary folder. The caller's own folder is kept. */
  readonly dir?: string;
  /** Listens there, and in the network namespace of the process `of`. Default: on a free port of this machine's loopback. */
  readonly network?: ServiceNetwork;
  /** The clusters that have users in it. */
  readonly clusters?: readonly string[];
  /** Default: each has one of its own. */
  readonly passwordOf?: PasswordOf;
  /** More arguments; the last of a kind wins, so they can also turn persistence on. */
  readonly args?: readonly string[];
}

/** The cluster of most tests. */
export const DEFAULT_CLUSTER = 'test';

/** Starts Redis. After a kill it restarts empty, unless `args` turn persistence on. */
export async function startRedis(options: RedisOptions = {}): Promise<LocalRedis> {
  const command = where('redis-server');
  const { address, port, of } = options.network ?? { address: '127.0.0.1', port: await freePort() };
  const place = temporaryFolder('redis', options.dir);
  const socket = join(place.dir, 'redis.sock');
  const fixed = `--port ${port} --bind ${address} --unixsocket ${socket} --daemonize no --appendonly no --maxmemory-policy noeviction`;
  const args = [...fixed.split(' '), '--dir', place.dir, '--save', ''];
  const service = await startService(
    () =>
      startProcess({
        name: 'redis-server',
        command,
        // Passwords may have changed since the last start.
        args: [
          ...args,
          ...userArguments(options.clusters ?? [DEFAULT_CLUSTER], options.passwordOf),
          ...(options.args ?? []),
        ],
        cwd: place.dir,
        logFile: join(place.dir, 'redis.log'),
        networkOf: of,
        ready: () => answersPing(socket),
      }),
    async () => place.remove(),
  );
  const url = `redis://${address}:${port}`;
  return Object.assign(service, {
    url,
    port,
    urlOf: (user: RedisUser, cluster = DEFAULT_CLUSTER) => urlAs(url, user, cluster, options.passwordOf),
  });
}

/** Whether the Redis on this port or Unix socket has finished loading. A request for a password counts too. */
export function answersPing(at: number | string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = typeof at === 'number' ? connect(at, '127.0.0.1') : connect(at);
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => done(false));
    socket.once('error', () => done(false));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => done(/^(\+PONG|-NOAUTH)/.test(data.toString('latin1'))));
  });
}
