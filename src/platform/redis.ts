/*
 * Connections to Redis: one server, a cluster, or the master that Sentinels name, as `--redis-url` says.
 *
 * Every connection retries for ever with full jitter up to 30 s. Commands fail at once while it is away: whoever sends
 * one decides what to do about that. A patient connection, which the queue's workers need, keeps them instead.
 *
 * Of a cluster one node may be away while the others answer: then commands for it fail, after a second in which the cluster
 * may say who has its slots now.
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

/** Answers the same commands, whatever is behind it. */
export type RedisClient = Redis | Cluster;

const COMMAND_TIMEOUT_MS = 5_000;
/**
 * A connection on which an answer is outstanding for this long is given up. Without it a Redis that vanished without a
 * word (its node lost power) is waited for until TCP gives up, a quarter of an hour later. Longer than any blocking call.
 */
const SOCKET_TIMEOUT_MS = 30_000;
/** How often, and how long apart, a command looks for the node of a cluster that has its slot now. */
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

/** What a connection to any server needs, of a cluster and of Sentinels too. */
export const accessOptions = (
  login: Login,
  tls: boolean,
): Pick<RedisOptions, 'username' | 'password' | 'tls'> => ({
  ...login,
  ...(tls ? { tls: {} } : {}),
});

export interface RedisConnection {
  /** The setting as given. */
  readonly url: string;
  /** The longest wait between two tries to connect. */
  readonly maxRetry: Micros;
  /** Told of every error while the connection is away; without a listener Node would end the process. */
  readonly onError: (message: string) => void;
  /** Told when there is a connection, at first and whenever one is there again: what was in Redis may be gone. */
  readonly onReady?: () => void;
  /** Commands wait for Redis however long it takes. */
  readonly patient?: boolean;
}

/** Opens a connection that keeps itself alive. It is the caller's to `disconnect()`. */
export function connectRedis(connection: RedisConnection): RedisClient {
  const { url, maxRetry, onError, onReady, patient = false } = connection;
  const redis = open(redisPlace(url), patient, retryWithin(maxRetry));
  redis.on('error', (error) => onError(wordsOf(error)));
  if (onReady !== undefined) redis.on('ready', onReady);
  // A cluster is ready once. A node of it that was away comes into the pool again, empty perhaps.
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
    // A connection that finds the cluster down, as after all its nodes started again, would never say so to whoever waits
    // for it, and a queue's worker would wait for ever. Commands find it out as well.
    enableReadyCheck: false,
    maxRedirections: patient ? Number.POSITIVE_INFINITY : REDIRECTIONS,
    retryDelayOnFailover: pauseMs,
    retryDelayOnClusterDown: pauseMs,
    slotsRefreshTimeout: COMMAND_TIMEOUT_MS,
    // A certificate is for the name of a node, not for its address.
    ...(place.tls ? { dnsLookup: (name, told) => told(null, name) } : {}),
  });
}

/** A master that becomes a replica answers READONLY until it is left for the new one. */
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

/** Of a cluster that nobody can be asked about, the last node says why. */
function wordsOf(error: unknown): string {
  const last: unknown = Reflect.get(Object(error), 'lastNodeError');
  return last instanceof Error ? `${messageOf(error)} ${messageOf(last)}` : messageOf(error);
}
