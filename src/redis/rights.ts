/*
 * Which rights the Redis user of a program lacks.
 *
 * Every command is queued in a transaction that is then discarded: Redis checks a user's rights, on the keys too, when it queues a
 * command, and runs none of them. It does so on connections of its own that are never opened again once they broke: outside of the
 * transaction the commands would run, and inside it those of others would not.
 */
import { Cluster, type Redis } from 'ioredis';
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import type { RedisClient } from './client.ts';
import type { RedisGrant } from './users.ts';

const COMMAND_TIMEOUT_MS = 5_000;

/** A command on one key. */
interface RedisNeed {
  readonly command: string;
  /** Null if it has none. */
  readonly key: string | null;
}

export interface MissingRights {
  readonly needs: readonly RedisNeed[];
  /** The grants that these belong to. */
  readonly grants: readonly RedisGrant[];
}

/** The rights of these that the user lacks; null if it may not even be asked. Throws if Redis fails. */
export async function missingRights(
  redis: RedisClient,
  grants: readonly RedisGrant[],
): Promise<MissingRights | null> {
  const asked = new Map<Redis, Redis>();
  try {
    const needs: RedisNeed[] = [];
    const lacking: RedisGrant[] = [];
    for (const grant of grants) {
      const keys = grant.keys.length === 0 ? [null] : grant.keys.map(sampleOf);
      for (const key of keys) {
        const server = await serverOf(redis, key);
        const own = asked.get(server) ?? duplicateOnce(server);
        asked.set(server, own);
        const refused = await refusedOn(own, grant.commands, key);
        if (refused === null) return null;
        needs.push(...refused);
        if (refused.length > 0 && !lacking.includes(grant)) lacking.push(grant);
      }
    }
    return { needs, grants: lacking };
  } finally {
    for (const own of asked.values()) own.disconnect();
  }
}

/** A connection to the same server that is opened once. Commands fail after it broke. */
function duplicateOnce(server: Redis): Redis {
  const own = server.duplicate({
    lazyConnect: false,
    // The first command waits for the connection.
    enableOfflineQueue: true,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  // Every command that waits fails with it.
  own.on('error', () => undefined);
  return own;
}

/** `LPUSH {plegwatch:…}:wait, PING`, for messages. */
export const describeNeeds = (needs: readonly RedisNeed[]): string =>
  needs
    .map(({ command, key }) => [command.replace('|', ' ').toUpperCase(), ...(key === null ? [] : [key])])
    .map((words) => words.join(' '))
    .join(', ');

/** A key that a pattern of a grant matches. */
const sampleOf = (pattern: string): string =>
  pattern.replaceAll(/\[(.)[^\]]*\]|\*/g, (_, first) => first ?? '0');

async function refusedOn(
  redis: Redis,
  commands: readonly string[],
  key: string | null,
): Promise<RedisNeed[] | null> {
  if (await isRefused(redis.call('MULTI'))) return null;
  try {
    const refused: RedisNeed[] = [];
    for (const command of commands.filter((each) => !IN_TRANSACTION.includes(each))) {
      if (await isRefused(callOf(redis, command, key))) refused.push({ command, key });
    }
    return refused;
  } finally {
    await redis.call('DISCARD');
  }
}

/** Redis runs these at once instead of queueing them. A user without the first two cannot be asked at all. */
const IN_TRANSACTION: readonly string[] = ['multi', 'discard', 'exec'];

/** The arguments after the key, where Redis counts the arguments before it checks the rights; `$` is the key again. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  expire: ['1'],
  getrange: ['0', '0'],
  hdel: ['f'],
  hexists: ['f'],
  hget: ['f'],
  hincrby: ['f', '1'],
  hmget: ['f'],
  hmset: ['f', ''],
  hset: ['f', ''],
  hsetnx: ['f', ''],
  hstrlen: ['f'],
  lpush: [''],
  lrange: ['0', '0'],
  lrem: ['0', ''],
  ltrim: ['0', '-1'],
  rpoplpush: ['$'],
  rpush: [''],
  sadd: [''],
  set: [''],
  srem: [''],
  xadd: ['*', 'f', ''],
  xtrim: ['MAXLEN', '1'],
  zadd: ['0', '0'],
  zcount: ['0', '1'],
  zrange: ['0', '0'],
  zrangebyscore: ['0', '0'],
  zrem: ['0'],
  zrevrangebyscore: ['0', '0'],
  zscore: ['0'],
  // Without a key.
  'cluster|keyslot': ['key'],
};

function callOf(redis: Redis, command: string, key: string | null): Promise<unknown> {
  const [name = '', ...subcommand] = command.split('|');
  const after = (ARGUMENTS[command] ?? []).map((each) => (each === '$' ? (key ?? '') : each));
  // A script has its text and the number of its keys before them.
  const before = name.startsWith('eval') ? ['return 1', '1'] : [];
  return redis.call(name, ...subcommand, ...before, ...(key === null ? [] : [key]), ...after);
}

async function isRefused(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer;
    return false;
  } catch (error) {
    if (/^NOPERM/.test(messageOf(error))) return true;
    throw error;
  }
}

/** In a cluster, the node that has the key. */
async function serverOf(redis: RedisClient, key: string | null): Promise<Redis> {
  if (!(redis instanceof Cluster)) return redis;
  const masters = redis.nodes('master');
  const slot = key === null ? null : Number(await redis.cluster('KEYSLOT', key));
  const at = slot === null ? undefined : redis.slots[slot]?.[0];
  const found =
    slot === null ? masters[0] : masters.find(({ options: { host, port } }) => `${host}:${port}` === at);
  if (found === undefined) {
    throw new PlegwatchError(
      'REDIS_UNREACHABLE',
      `No master of the Redis Cluster has the slot of ${key}.`,
      'Wait until each slot has a master, as CLUSTER INFO shows.',
    );
  }
  return found;
}
