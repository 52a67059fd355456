/*
 * A Redis on loopback, without persistence, which refuses writes when it is full instead of evicting keys.
 */
import { connect } from 'node:net';
import { join } from 'node:path';
import { type LocalService, startService } from './localService.ts';
import { freePort, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalRedis extends LocalService {
  readonly url: string;
  readonly port: number;
}

export interface RedisOptions {
  /** Where it runs and logs. Default: a temporary folder. The caller's own folder is kept. */
  readonly dir?: string;
  /** More arguments; the last of a kind wins, so they can also turn persistence on. */
  readonly args?: readonly string[];
}

/** Starts Redis. After a kill it restarts empty, unless `args` turn persistence on. */
export async function startRedis(options: RedisOptions = {}): Promise<LocalRedis> {
  const command = where('redis-server');
  const port = await freePort();
  const place = temporaryFolder('redis', options.dir);
  const fixed = `--port ${port} --bind 127.0.0.1 --daemonize no --appendonly no --maxmemory-policy noeviction`;
  const args = [...fixed.split(' '), '--dir', place.dir, '--save', '', ...(options.args ?? [])];
  const service = await startService(
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

/** Whether the Redis on this port has finished loading. A request for a password counts too. */
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
