/*
 * What the two Redis users of a cluster may do. Everything that names a right takes it from here: the command `redis-acl`, the
 * trial's Redis, the doctor, the page about databases, and the Redis of every test.
 *
 *   agent        adds batches to the queues of its cluster, reads its replies and the flow settings; reads no job, deletes nothing
 *   controller   does what ingest needs with the keys of its cluster
 *
 * The agent's rights are those of BullMQ's script for adding a job, which Redis checks command by command. Scripts are run by their
 * digest only: a user that may send one of its own could stop Redis with an endless loop.
 */
import { JOB_ID_PATTERN } from '../protocol/batch.ts';
import { ackReplyKey, flowSettingsKey, QUEUE_NAME, queuePrefix } from '../protocol/redisKeys.ts';

export const REDIS_USERS = ['agent', 'controller'] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

/** Commands on keys. */
export interface RedisGrant {
  readonly commands: readonly string[];
  /** Redis distinguishes reading the content of a key from writing; all keys of the grant have the same. */
  readonly access: 'read' | 'write' | 'both';
  /** Patterns. None: the commands have no key. */
  readonly keys: readonly string[];
}

/** The sha256 of a password in hexadecimal digits, which Redis takes instead of the password. */
export type PasswordHash = string;

export const redisUserName = (user: RedisUser, cluster: string): string => `plegwatch-${cluster}-${user}`;

export const redisGrants = (user: RedisUser, cluster: string): readonly RedisGrant[] =>
  user === 'agent' ? agentGrants(cluster) : controllerGrants(cluster);

/** The rules for `ACL SETUSER`. They replace all earlier rights of the user, but no password: a rotation may need two. */
export function aclRules(user: RedisUser, cluster: string, passwordHash: PasswordHash): readonly string[] {
  return [
    ...['on', `#${passwordHash}`, 'resetkeys', 'resetchannels', 'clearselectors', '-@all'],
    ...redisGrants(user, cluster).flatMap(aclOf),
  ];
}

/** A selector, so that each command is allowed on its own keys only; without keys, the commands themselves. */
export function aclOf({ commands, access, keys }: RedisGrant): readonly string[] {
  const rules = commands.map((command) => `+${command}`);
  if (keys.length === 0) return rules;
  const prefix = { read: '%R~', write: '%W~', both: '~' }[access];
  return [`(${[...rules, ...keys.map((key) => `${prefix}${key}`)].join(' ')})`];
}

const to =
  (access: RedisGrant['access']) =>
  (commands: readonly string[], ...keys: readonly string[]): RedisGrant => ({ commands, access, keys });
const read = to('read');
const write = to('write');
const both = to('both');

/** Every connection sends INFO to learn whether Redis is still loading, or has become a replica. The rest is for the doctor. */
const CONNECTION = both(['ping', 'info', 'select', 'multi', 'discard', 'acl|whoami']);
/** How a client finds the nodes of a Redis Cluster. They show addresses, no keys. */
const TOPOLOGY = both(['cluster|slots', 'cluster|info', 'cluster|keyslot']);

function agentGrants(cluster: string): readonly RedisGrant[] {
  const on = (suffix: string) => `${queuePrefix(cluster, '*')}:${QUEUE_NAME}:${suffix}`;
  const job = on(JOB_ID_PATTERN);
  return [
    CONNECTION,
    TOPOLOGY,
    read(['getrange'], flowSettingsKey(cluster)),
    read(['hstrlen', 'hmget'], ackReplyKey(cluster, '*')),
    both(
      ['evalsha'],
      ...['wait', 'paused', 'meta', 'id', 'completed', 'delayed', 'active', 'events', 'marker'].map(on),
    ),
    both(['incr'], on('id')),
    read(['hget', 'hmget'], on('meta')),
    write(['exists', 'hmset'], job),
    write(['lpush'], on('wait')),
    write(['zadd'], on('marker')),
    write(['xadd'], on('events')),
  ];
}

function controllerGrants(cluster: string): readonly RedisGrant[] {
  return [
    CONNECTION,
    TOPOLOGY,
    // SCAN shows the names of all keys, those of other clusters too, and no content.
    both(['script|load', 'client|setname', 'scan']),
    both(REPLY_COMMANDS, ackReplyKey(cluster, '*'), flowSettingsKey(cluster)),
    both(QUEUE_COMMANDS, `${queuePrefix(cluster, '*')}:${QUEUE_NAME}:*`),
  ];
}

const REPLY_COMMANDS = [
  ...['eval', 'evalsha', 'type', 'get', 'getrange', 'set'],
  ...['del', 'expire', 'hget', 'hset', 'hdel'],
];

/** What BullMQ's worker and its scripts send, and what we look at and repair ourselves. */
const QUEUE_COMMANDS = [
  ...['eval', 'evalsha', 'type', 'exists', 'del', 'unlink', 'pttl', 'get', 'set', 'strlen', 'incr'],
  ...['llen', 'lindex', 'lrange', 'lpush', 'rpush', 'rpop', 'lrem', 'ltrim', 'rpoplpush'],
  ...['zcard', 'zcount', 'zscore', 'zrange', 'zrangebyscore', 'zrevrangebyscore', 'zadd', 'zrem'],
  ...['zpopmin', 'bzpopmin'],
  ...['hget', 'hmget', 'hgetall', 'hkeys', 'hlen', 'hstrlen', 'hexists', 'hset', 'hmset', 'hincrby', 'hdel'],
  ...['scard', 'smembers', 'sadd', 'srem', 'xadd', 'xtrim'],
];
