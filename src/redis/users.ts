/*
 * The rights of the two Redis users of a cluster. Everything that names a right takes it from here: the command `redis-acl`, the trial's Redis, the
 * doctor, the page about databases, and the Redis of every test.
 *
 *   agent        adds to the inboxes of its cluster what is not there, shows that it runs, reads its replies and the flow settings; reads no batch,
 *                deletes nothing
 *   controller   does what ingest needs with the keys of its cluster
 *
 * All nodes of a cluster share the agents' user: one for each would be thousands of passwords to rotate, and still could fill Redis. Signatures
 * say whose evidence it is (docs/explanation/attribution.md).
 *
 * No agent may run a script: one that does not end stops Redis. Neither may select a database: both use the first.
 */
import { ackReplyKey, flowSettingsKey, inboxKeys, queuePrefix, signsKeys } from '../protocol/redisKeys.ts';

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
const CONNECTION = both(['ping', 'info', 'multi', 'discard', 'acl|whoami']);
/** How a client finds the nodes of a Redis Cluster. They show addresses, no keys. */
const TOPOLOGY = both(['cluster|slots', 'cluster|info', 'cluster|keyslot']);

function agentGrants(cluster: string): readonly RedisGrant[] {
  return [
    CONNECTION,
    TOPOLOGY,
    read(['getrange'], flowSettingsKey(cluster)),
    read(['hstrlen', 'hmget'], ackReplyKey(cluster, '*')),
    write(['hsetnx'], ...inboxKeys(cluster)),
    write(['hset'], ...signsKeys(cluster)),
  ];
}

function controllerGrants(cluster: string): readonly RedisGrant[] {
  return [
    CONNECTION,
    TOPOLOGY,
    both(REPLY_COMMANDS, ackReplyKey(cluster, '*'), flowSettingsKey(cluster)),
    both(QUEUE_COMMANDS, `${queuePrefix(cluster, '*')}:*`),
  ];
}

const REPLY_COMMANDS = [
  ...['eval', 'evalsha', 'type', 'get', 'getrange', 'set'],
  ...['del', 'expire', 'hget', 'hset', 'hdel'],
];

/** The commands of BullMQ and its scripts, and what we send to inboxes. */
const QUEUE_COMMANDS = [
  ...['eval', 'evalsha', 'exists', 'del', 'unlink', 'pttl', 'get', 'set', 'incr'],
  ...['llen', 'lrange', 'lpush', 'rpush', 'lrem', 'ltrim', 'rpoplpush'],
  ...['zcard', 'zcount', 'zscore', 'zrange', 'zrangebyscore', 'zrevrangebyscore', 'zadd', 'zrem'],
  ...['zpopmin'],
  ...[
    'hget',
    'hmget',
    'hgetall',
    'hlen',
    'hstrlen',
    'hexists',
    'hset',
    'hmset',
    'hincrby',
    'hdel',
    'hrandfield',
  ],
  ...['scard', 'smembers', 'sadd', 'srem', 'xadd', 'xtrim'],
];
