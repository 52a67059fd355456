/*
 * A Redis Cluster on loopback: masters that share the slots, without replicas and persistence. A master that is killed
 * and restarted has its slots back, but they are empty.
 */
import { Redis } from 'ioredis';
import type { RedisUser } from '../../src/redis/users.ts';
import { freePort, waitFor } from './process.ts';
import { DEFAULT_CLUSTER, type LocalRedis, startRedis } from './redis.ts';
import { urlAs } from './redisUsers.ts';

/** Any server that speaks Redis's protocol. */
export type RedisServer = Omit<LocalRedis, 'urlOf'>;

export interface LocalRedisCluster {
  /** Names the first two masters; clients discover the others through them. */
  readonly url: string;
  /** As an agent or a controller of the cluster `test`. */
  urlOf(user: RedisUser): string;
  readonly masters: readonly LocalRedis[];
  stop(): Promise<void>;
}

const SLOTS = 16_384;
/** A master that does not answer for this long counts as failed. */
const NODE_TIMEOUT_MS = 1_000;
const READY_WITHIN_MS = 240_000;

export async function startRedisCluster(count = 3): Promise<LocalRedisCluster> {
  const buses = await freePorts(count);
  const masters = await Promise.all(buses.map(startMaster));
  const stop = async () => {
    await Promise.all(masters.map((master) => master.stop()));
  };
  try {
    await join(masters, buses);
  } catch (error) {
    await stop();
    throw error;
  }
  const hosts = masters.slice(0, 2).map(({ port }) => `127.0.0.1:${port}`);
  const url = `redis+cluster://${hosts.join(',')}`;
  return { url, urlOf: (user) => urlAs(url, user, DEFAULT_CLUSTER), masters, stop };
}

/** Sends one command to one server, bypassing the cluster. */
export async function command(
  server: RedisServer,
  name: string,
  ...args: readonly string[]
): Promise<unknown> {
  const redis = new Redis(server.url);
  try {
    return await redis.call(name, ...args);
  } finally {
    redis.disconnect();
  }
}

/** The bus port is explicit: its default, the port plus 10,000, may be out of range. */
function startMaster(bus: number): Promise<LocalRedis> {
  const args = `--cluster-enabled yes --cluster-config-file nodes.conf --cluster-port ${bus}
    --cluster-announce-ip 127.0.0.1 --cluster-node-timeout ${NODE_TIMEOUT_MS}`;
  return startRedis({ args: args.split(/\s+/) });
}

async function join(masters: readonly LocalRedis[], buses: readonly number[]): Promise<void> {
  for (const [i, master] of masters.entries()) {
    const from = Math.ceil((i * SLOTS) / masters.length);
    const to = Math.ceil(((i + 1) * SLOTS) / masters.length) - 1;
    await command(master, 'CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to}`);
    await command(master, 'CLUSTER', 'SET-CONFIG-EPOCH', `${i + 1}`);
  }
  const [first, ...others] = masters;
  if (first === undefined) throw new Error('a cluster without a master');
  for (const [i, other] of others.entries()) {
    await command(first, 'CLUSTER', 'MEET', '127.0.0.1', `${other.port}`, `${buses[i + 1]}`);
  }
  await waitFor('the cluster is ok', READY_WITHIN_MS, async () => {
    const states = await Promise.all(masters.map((master) => command(master, 'CLUSTER', 'INFO')));
    return states.every((state) => isOk(String(state), masters.length));
  });
}

const isOk = (state: string, count: number): boolean =>
  state.includes('cluster_state:ok') && state.includes(`cluster_known_nodes:${count}`);

/** Requested together, so that no port is returned twice. */
const freePorts = (count: number): Promise<number[]> => Promise.all(Array.from({ length: count }, freePort));
