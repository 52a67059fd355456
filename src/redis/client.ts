/*
 * Connections to Redis: one server, a cluster, or the master that Sentinels name, as `--redis-url` says.
 *
 * Every connection reconnects for ever, with full jitter up to `maxRetry`, and reads passwords and certificates again before that, so
 * that a rotated Secret needs no restart; connections that are open stay open. While Redis is down commands fail at once and the caller
 * decides what to do. A patient connection, which BullMQ's workers need, keeps them instead, for a minute.
 *
 * In a cluster one node may be down while the others answer: commands for it fail after about a second, in which the cluster may move
 * its slots.
 */
import { Cluster, type Redis, type RedisOptions } from 'ioredis';
import { doubled } from '../platform/backoff.ts';
import { monoNow } from '../platform/clock.ts';
import { messageOf } from '../platform/errors.ts';
import { explainTls, type TlsMaterial } from '../platform/tls.ts';
import { TokenBucket } from '../platform/tokenBucket.ts';
import type { Micros } from '../protocol/units.ts';
import {
  type RedisSettings,
  readRedisAccess,
  redisAccessChanges,
  redisSettingOf,
  redisTlsNames,
} from './access.ts';
import { addressConnector, sentinelConnector } from './connectors.ts';
import { EndingCluster, EndingRedis } from './endingClients.ts';
import type { ReplyGuard } from './replyGuard.ts';
import type { ClusterPlace, Login, RedisPlace, SentinelPlace } from './url.ts';

/** The same commands for a server, a cluster or a master behind Sentinels. */
export type RedisClient = Redis | Cluster;

const COMMAND_TIMEOUT_MS = 5_000;
/** A command that the client has lost must not be waited for without an end. */
const PATIENCE_MS = 60_000;
/**
 * A connection that has waited this long for an answer is closed. Otherwise a Redis whose node lost power would be waited for until
 * TCP gives up, a quarter of an hour later.
 */
const SOCKET_TIMEOUT_MS = 30_000;
/** How often, and at what interval, a command looks for the cluster node that owns its slot. */
const REDIRECTIONS = 5;
const REDIRECT_AFTER_MS = 300;
const PATIENT_REDIRECT_AFTER_MS = 1_000;

/** Waits in milliseconds before the n-th try to connect. */
type RetryStrategy = (times: number) => number;

const retryWithin =
  (maxRetry: Micros): RetryStrategy =>
  (times) =>
    Math.random() * doubled(100, maxRetry / 1000, times);

const saysReadOnly = ({ message }: Error): boolean => message.startsWith('READONLY');

/** A master may become a replica without closing its connections, and a new one lead to the next master. Not all the time: it may stay a replica. */
function leavesReplica(maxRetry: Micros): (error: Error) => boolean {
  const limit = new TokenBucket({ capacity: 1, interval: maxRetry });
  return (error) => saysReadOnly(error) && limit.tryTake(monoNow());
}

/** The options of any connection: to a server, a cluster node or a Sentinel. It does not name its client, for which users have no right. */
export const accessOptions = (login: Login, tls: TlsMaterial | null) => ({
  username: login.username ?? '',
  password: login.password ?? '',
  disableClientInfo: true,
  ...(tls === null ? {} : { tls }),
});

export interface RedisConnection {
  readonly maxRetry: Micros;
  readonly onError: (message: string) => void;
  /** Called after every connect, also after a reconnect: then Redis may have lost its data. */
  readonly onReady?: () => void;
  /** Commands wait for Redis for up to a minute. */
  readonly patient?: boolean;
  /** Bounds the replies. Without it, they may have any length. */
  readonly guard?: ReplyGuard;
}

/** Opens a connection that reconnects by itself. The caller must `disconnect()` it. */
export function connectRedis(settings: RedisSettings, connection: RedisConnection): RedisClient {
  const { maxRetry, onError, onReady, patient = false, guard } = connection;
  const redis = open(new FreshAccess(settings, onError), { patient, guard, maxRetry });
  redis.on('error', (error) => onError(errorMessage(error, settings)));
  if (onReady !== undefined) redis.on('ready', onReady);
  // A cluster emits `ready` once. A node that was down rejoins the pool, perhaps empty.
  if (onReady !== undefined && redis instanceof Cluster) {
    redis.on('+node', (node: Redis) => {
      if (redis.status === 'ready') node.once('ready', onReady);
    });
  }
  return redis;
}

/** The access to Redis, read again before each connect; what it last was where it cannot be read. */
class FreshAccess {
  readonly #settings: RedisSettings;
  readonly #onError: (message: string) => void;
  #place: RedisPlace;
  /** One object for all connections, which take from it what they need when they connect. */
  readonly tls: TlsMaterial | null;

  constructor(settings: RedisSettings, onError: (message: string) => void) {
    this.#settings = settings;
    this.#onError = onError;
    const { place, tls } = readRedisAccess(settings);
    this.#place = place;
    this.tls = place.tls ? { ...tls } : null;
  }

  get place(): RedisPlace {
    return this.#place;
  }

  refresh(): void {
    if (!redisAccessChanges(this.#settings)) return;
    try {
      const { place, tls } = readRedisAccess(this.#settings);
      if (place.kind === this.#place.kind) this.#place = place;
      if (this.tls !== null) Object.assign(this.tls, tls);
    } catch (error) {
      this.#onError(messageOf(error));
    }
  }

  /** Brings the options of a connection up to date. */
  refreshOptions(options: object): void {
    this.refresh();
    const { login } = this.#place;
    Object.assign(options, accessOptions(login, this.tls));
    if (this.#place.kind === 'server') Object.assign(options, this.#place.address);
    if (this.#place.kind === 'sentinel')
      Object.assign(options, { sentinelPassword: this.#place.sentinelLogin.password ?? '' });
  }
}

interface OpenOptions {
  readonly patient: boolean;
  readonly guard: ReplyGuard | undefined;
  readonly maxRetry: Micros;
}

function open(access: FreshAccess, { patient, guard, maxRetry }: OpenOptions): RedisClient {
  const { place } = access;
  const waitMs = retryWithin(maxRetry);
  const options = {
    ...accessOptions(place.login, access.tls),
    maxRetriesPerRequest: patient ? null : 1,
    connectTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    commandTimeout: patient ? PATIENCE_MS : COMMAND_TIMEOUT_MS,
  };
  // Called with the options of the connection that is about to reconnect.
  const retryStrategy = function (this: RedisOptions, times: number): number {
    access.refreshOptions(this);
    return waitMs(times);
  };
  const alone = {
    ...options,
    enableOfflineQueue: patient,
    retryStrategy,
    reconnectOnError: leavesReplica(maxRetry),
  };
  switch (place.kind) {
    case 'server':
      return new EndingRedis({ ...alone, ...place.address, ...guarded(guard, addressConnector) });
    case 'cluster': {
      // The client makes a new connection where it would reconnect to a single server.
      const Connector = addressConnector(guard, (fresh) => access.refreshOptions(fresh));
      return openCluster(place, { ...options, Connector }, waitMs, patient);
    }
    case 'sentinel':
      return new EndingRedis({
        ...alone,
        ...sentinelOptions(place, access, retryStrategy),
        ...guarded(guard, sentinelConnector),
      });
  }
}

const guarded = (
  guard: ReplyGuard | undefined,
  connector: (guard: ReplyGuard) => NonNullable<RedisOptions['Connector']>,
): Pick<RedisOptions, 'Connector'> => (guard === undefined ? {} : { Connector: connector(guard) });

function openCluster(
  place: ClusterPlace,
  redisOptions: Omit<RedisOptions, 'replyMapping'>,
  waitMs: RetryStrategy,
  patient: boolean,
): Cluster {
  const pauseMs = patient ? PATIENT_REDIRECT_AFTER_MS : REDIRECT_AFTER_MS;
  return new EndingCluster([...place.nodes], {
    redisOptions,
    enableOfflineQueue: patient,
    clusterRetryStrategy: waitMs,
    // With the check, a connection that finds the cluster down would never report it. Commands detect it as well.
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
  { tls }: FreshAccess,
  retryStrategy: RetryStrategy,
): Omit<RedisOptions, 'replyMapping'> {
  const { password } = place.sentinelLogin;
  return {
    sentinels: place.sentinels.map((each) => ({ ...each })),
    name: place.master,
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    reconnectOnError: saysReadOnly,
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(tls === null ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  };
}

const REFUSED = /NOAUTH|WRONGPASS|invalid (username-)?password/;

/** The message of an error, with its cure if there is one. When no node of a cluster can be reached, the last one's has the reason. */
function errorMessage(error: unknown, settings: RedisSettings): string {
  const last: unknown = Reflect.get(Object(error), 'lastNodeError') ?? null;
  const tls = explainTls(last ?? error, redisTlsNames(settings));
  if (tls !== null) return `${tls.message}. ${tls.cure}`;
  const message = last === null ? messageOf(error) : `${messageOf(error)} ${messageOf(last)}`;
  if (!REFUSED.test(message)) return message;
  const setting = redisSettingOf(settings);
  return redisAccessChanges(settings)
    ? `${message.replace(/\.+$/, '')}; ${setting} is read again before the next try`
    : `${message.replace(/\.+$/, '')}; put the right password into ${setting}`;
}
