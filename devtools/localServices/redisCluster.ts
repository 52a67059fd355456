/*
 * A real Redis Cluster of one's own: masters on loopback that share the slots between them, without replicas and without
 * persistence. A master that is killed and started again has its slots, and nothing in them.
 */
import { Redis } from 'ioredis';
import { freePort, waitFor } from './process.ts';
import { type RedisPart, startRedis } from './redis.ts';

export interface RedisClusterPart {
  /** Names the first two masters: the others are found through them. */
  readonly url: string;
  readonly masters: readonly RedisPart[];
  stop(): Promise<void>;
}

const SLOTS = 16_384;
/** After this a master that does not answer is held for dead. */
const NODE_TIMEOUT_MS = 1_000;
const READY_WITHIN_MS = 30_000;

export async function startRedisCluster(count = 3): Promise<RedisClusterPart> {
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
  return { url: `redis+cluster://${hosts.join(',')}`, masters, stop };
}

/** Sends one command to one server, past any cluster. */
export async function command(part: RedisPart, name: string, ...args: readonly string[]): Promise<unknown> {
  const redis = new Redis(part.url);
  try {
    return await redis.call(name, ...args);
  } finally {
    redis.disconnect();
  }
}

/** The bus is told: by itself it is at the port and 10,000, which may be more than there are. */
function startMaster(bus: number): Promise<RedisPart> {
  const args = [
    '--cluster-enabled',
    'yes',
    '--cluster-config-file',
    'nodes.conf',
    '--cluster-port',
    `${bus}`,
  ];
  args.push('--cluster-announce-ip', '127.0.0.1', '--cluster-node-timeout', `${NODE_TIMEOUT_MS}`);
  return startRedis({ args });
}

async function join(masters: readonly RedisPart[], buses: readonly number[]): Promise<void> {
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
  await waitFor('the cluster is well', READY_WITHIN_MS, async () => {
    const states = await Promise.all(masters.map((master) => command(master, 'CLUSTER', 'INFO')));
    return states.every((state) => isWell(String(state), masters.length));
  });
}

const isWell = (state: string, count: number): boolean =>
  state.includes('cluster_state:ok') && state.includes(`cluster_known_nodes:${count}`);

/** All of them are asked for at once, so that none is given twice. */
const freePorts = (count: number): Promise<number[]> => Promise.all(Array.from({ length: count }, freePort));
