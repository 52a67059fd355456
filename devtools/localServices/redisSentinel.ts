/*
 * A Redis master with a replica, and a Sentinel that fails the master over, on loopback.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisUser } from '../../src/redis/users.ts';
import { startService } from './localService.ts';
import { freePort, startProcess, waitFor } from './process.ts';
import { answersPing, DEFAULT_CLUSTER, type LocalRedis, startRedis } from './redis.ts';
import { command, type RedisServer } from './redisCluster.ts';
import { urlAs } from './redisUsers.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { where } from './where.ts';

export interface LocalRedisSentinel {
  readonly url: string;
  /** As an agent or a controller of the cluster `test`. */
  urlOf(user: RedisUser): string;
  readonly sentinel: RedisServer;
  /** The first is the master at the start. */
  readonly servers: readonly [LocalRedis, LocalRedis];
  /** The port of the master that the Sentinel reports now. */
  master(): Promise<number>;
  stop(): Promise<void>;
}

const NAME = 'plegwatch';
const READY_WITHIN_MS = 240_000;

export async function startRedisSentinel(): Promise<LocalRedisSentinel> {
  const first = await startRedis();
  const second = await startRedis({ args: ['--replicaof', '127.0.0.1', `${first.port}`] });
  const sentinel = await startSentinel(first.port);
  const stop = async () => {
    await Promise.all([sentinel.stop(), first.stop(), second.stop()]);
  };
  try {
    await waitFor('the Sentinel knows the replica', READY_WITHIN_MS, async () => {
      const info = await command(sentinel, 'INFO', 'sentinel');
      return /status=ok.*slaves=1/.test(String(info)) && (await isInSync(second));
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/${NAME}`;
  return {
    url,
    urlOf: (user) => urlAs(url, user, DEFAULT_CLUSTER),
    sentinel,
    servers: [first, second],
    async master() {
      const address = await command(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
      return Number(Array.isArray(address) ? address[1] : Number.NaN);
    },
    stop,
  };
}

async function isInSync(replica: LocalRedis): Promise<boolean> {
  return String(await command(replica, 'INFO', 'replication')).includes('master_link_status:up');
}

/** A Sentinel needs a configuration file, because it writes its state to it. */
async function startSentinel(masterPort: number): Promise<RedisServer> {
  const port = await freePort();
  const place = temporaryFolder('sentinel', undefined);
  const file = join(place.dir, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${place.dir}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 5000`,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const service = await startService(
    () =>
      startProcess({
        name: 'redis-sentinel',
        command: where('redis-server'),
        args: [file, '--sentinel'],
        cwd: place.dir,
        logFile: join(place.dir, 'sentinel.log'),
        ready: () => answersPing(port),
      }),
    async () => place.remove(),
  );
  return Object.assign(service, { url: `redis://127.0.0.1:${port}`, port });
}
