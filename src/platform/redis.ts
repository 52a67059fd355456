/*
 * Connections to Redis: one server, a cluster, or the master that Sentinels name, as `--redis-url` says.
 *
 * Every connection reconnects for ever, with full jitter up to `maxRetry`. While Redis is down commands fail at once and the caller
 * decides what to do. A patient connection, which BullMQ's workers need, keeps them instead.
 *
 * In a cluster one node may be down while the others answer: commands for it fail after about a second, in which the cluster may move
 * its slots.
 */
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Micros } from '../protocol/units.ts';
import { doubled } from './backoff.ts';
import { messageOf, PlegwatchError } from './errors.ts';
import {
  type ClusterPlace,
  type Login,
  type RedisPlace,
  readRedisUrl,
  type SentinelPlace,
} from './redisUrl.ts';

/** The same commands for a server, a cluster or a master behind Sentinels. */
export type RedisClient = Redis | Cluster;

const COMMAND_TIMEOUT_MS = 5_000;
/**
 * A connection that has waited this long for an answer is closed. Otherwise a Redis whose node lost power would be waited for until
 * TCP gives up, a quarter of an hour later. Longer than any blocking call.
 */
const SOCKET_TIMEOUT_MS = 30_000;
/** How often, and at what interval, a command looks for the cluster node that owns its slot. */
const REDIRECTIONS = 5;
const REDIRECT_AFTER_MS = 300;
const PATIENT_REDIRECT_AFTER_MS = 1_000;

const CURE =
  'Set --redis-url (PLEGWATCH_REDIS_URL) to redis://[:password@]host:port[/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master[/db].';

/** Waits in milliseconds before the n-th try to connect. */
type RetryStrategy = (times: number) => number;

const retryWithin =
  (maxRetry: Micros): RetryStrategy =>
  (times) =>
    Math.random() * doubled(100, maxRetry / 1000, times);

/** Reads `--redis-url`. Throws SETTING_INVALID where it is not a URL that can be used. */
export function redisPlace(url: string): RedisPlace {
  try {
    return readRedisUrl(url);
  } catch (error) {
    throw new PlegwatchError('SETTING_INVALID', `--redis-url ${messageOf(error)}.`, CURE);
  }
}

/** Credentials and TLS for any connection: to a server, a cluster node or a Sentinel. */
export const accessOptions = (login: Login, tls: boolean) => ({ ...login, ...(tls ? { tls: {} } : {}) });

export interface RedisConnection {
  readonly url: string;
  readonly maxRetry: Micros;
  readonly onError: (message: string) => void;
  /** Called after every connect, also after a reconnect: then Redis may have lost its data. */
  readonly onReady?: () => void;
  /** Commands wait until Redis is back. */
  readonly patient?: boolean;
}

/** Opens a connection that reconnects by itself. The caller must `disconnect()` it. */
export function connectRedis(connection: RedisConnection): RedisClient {
  const { url, maxRetry, onError, onReady, patient = false } = connection;
  const redis = open(redisPlace(url), patient, retryWithin(maxRetry));
  redis.on('error', (error) => onError(errorMessage(error)));
  if (onReady !== undefined) redis.on('ready', onReady);
  // A cluster emits `ready` once. A node that was down rejoins the pool, perhaps empty.
  if (onReady !== undefined && redis instanceof Cluster) {
    redis.on('+node', (node: Redis) => {
      if (redis.status === 'ready') node.once('ready', onReady);
    });
  }
  return redis;
}

function open(place: RedisPlace, patient: boolean, retryStrategy: RetryStrategy): RedisClient {
  const options = {
    ...accessOptions(place.login, place.tls),
    maxRetriesPerRequest: patient ? null : 1,
    connectTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    ...(patient ? {} : { commandTimeout: COMMAND_TIMEOUT_MS }),
  };
  const alone = { ...options, enableOfflineQueue: patient, retryStrategy };
  switch (place.kind) {
    case 'server':
      return new Redis({ ...alone, ...place.address, db: place.db });
    case 'cluster':
      return openCluster(place, { ...options, retryStrategy }, patient);
    case 'sentinel':
      return new Redis({ ...alone, ...sentinelOptions(place, retryStrategy), db: place.db });
  }
}

function openCluster(
  place: ClusterPlace,
  {
    retryStrategy,
    ...redisOptions
  }: Pick<RedisOptions, 'maxRetriesPerRequest' | 'commandTimeout'> & {
    readonly retryStrategy: RetryStrategy;
  },
  patient: boolean,
): Cluster {
  const pauseMs = patient ? PATIENT_REDIRECT_AFTER_MS : REDIRECT_AFTER_MS;
  return new Cluster([...place.nodes], {
    redisOptions,
    enableOfflineQueue: patient,
    clusterRetryStrategy: retryStrategy,
    // With the check, a connection that finds the cluster down would never report it, and a BullMQ worker would wait for ever.
    // Commands detect it as well.
    enableReadyCheck: false,
    maxRedirections: patient ? Number.POSITIVE_INFINITY : REDIRECTIONS,
    retryDelayOnFailover: pauseMs,
    retryDelayOnClusterDown: pauseMs,
    slotsRefreshTimeout: COMMAND_TIMEOUT_MS,
    // A certificate is for the name of a node, not for its address.
    ...(place.tls ? { dnsLookup: (name, done) => done(null, name) } : {}),
  });
}

/** A master that becomes a replica answers READONLY, which makes the client reconnect to the new master. */
function sentinelOptions(
  place: SentinelPlace,
  retryStrategy: RetryStrategy,
): Omit<RedisOptions, 'replyMapping'> {
  const { password } = place.sentinelLogin;
  return {
    sentinels: place.sentinels.map((each) => ({ ...each })),
    name: place.master,
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(place.tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
  };
}

/** The message of an error. When no node of a cluster can be reached, the error of the last one has the reason. */
function errorMessage(error: unknown): string {
  const last: unknown = Reflect.get(Object(error), 'lastNodeError');
  return last instanceof Error ? `${messageOf(error)} ${messageOf(last)}` : messageOf(error);
}
