/*
 * A real Redis of one's own: on loopback, without persistence, refusing writes when full rather than dropping keys.
 */
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort, startProcess } from './process.ts';
import { scratch } from './scratch.ts';
import { keepService, type Service } from './service.ts';
import { where } from './where.ts';

export interface RedisPart extends Service {
  readonly url: string;
  readonly port: number;
}

export interface RedisOptions {
  /** Where it runs and logs; a temporary folder when not said. A folder of the caller's is kept. */
  readonly dir?: string;
  /** More arguments; the last of a kind wins, so these can also bring persistence back. */
  readonly args?: readonly string[];
}

/** Starts Redis. After a kill it comes back empty, unless `args` say otherwise. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisPart> {
  const command = where('redis-server');
  const port = await freePort();
  const place = scratch('redis', options.dir);
  const args = [
    '--port',
    `${port}`,
    '--bind',
    '127.0.0.1',
    '--dir',
    place.dir,
    '--daemonize',
    'no',
    '--save',
    '',
  ];
  args.push('--appendonly', 'no', '--maxmemory-policy', 'noeviction', ...(options.args ?? []));
  const service = await keepService(
    () =>
      startProcess({
        name: 'redis-server',
        command,
        args,
        cwd: place.dir,
        logFile: join(place.dir, 'redis.log'),
        ready: () => answersPing(port),
      }),
    async () => place.remove(),
  );
  return Object.assign(service, { url: `redis://127.0.0.1:${port}`, port });
}

/** Whether a Redis on this port is done loading. One that asks for a password is there too. */
export function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
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
