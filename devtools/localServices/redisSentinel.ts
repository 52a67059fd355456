/*
 * A real Redis with a replica and a Sentinel that watches them, on loopback: a master that fails over.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startProcess, waitFor } from './process.ts';
import { answersPing, type RedisPart, startRedis } from './redis.ts';
import { command } from './redisCluster.ts';
import { scratch } from './scratch.ts';
import { keepService } from './service.ts';
import { where } from './where.ts';

export interface RedisSentinelPart {
  readonly url: string;
  readonly sentinel: RedisPart;
  /** The first is the master at the start. */
  readonly servers: readonly [RedisPart, RedisPart];
  /** The port of the master, as the Sentinel has it at this moment. */
  master(): Promise<number>;
  stop(): Promise<void>;
}

const NAME = 'plegwatch';
const READY_WITHIN_MS = 30_000;

export async function startRedisSentinel(): Promise<RedisSentinelPart> {
  const first = await startRedis();
  const second = await startRedis({ args: ['--replicaof', '127.0.0.1', `${first.port}`] });
  const sentinel = await startSentinel(first.port);
  const stop = async () => {
    await Promise.all([sentinel.stop(), first.stop(), second.stop()]);
  };
  try {
    await waitFor('the Sentinel knows the replica', READY_WITHIN_MS, async () => {
      const said = await command(sentinel, 'INFO', 'sentinel');
      return /status=ok.*slaves=1/.test(String(said)) && (await isInSync(second));
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: `redis+sentinel://127.0.0.1:${sentinel.port}/${NAME}`,
    sentinel,
    servers: [first, second],
    async master() {
      const address = await command(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
      return Number(Array.isArray(address) ? address[1] : Number.NaN);
    },
    stop,
  };
}

async function isInSync(replica: RedisPart): Promise<boolean> {
  return String(await command(replica, 'INFO', 'replication')).includes('master_link_status:up');
}

/** It keeps what it learns in its configuration file, so it needs one. */
async function startSentinel(masterPort: number): Promise<RedisPart> {
  const port = await freePort();
  const place = scratch('sentinel', undefined);
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
  const service = await keepService(
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
