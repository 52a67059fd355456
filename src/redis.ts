/*
 * Connections to Redis: options from `--redis-url`, and one check at start-up that tells a wrong setting from a Redis
 * that is merely away.
 *
 * Every connection retries for ever with full jitter up to 30 s. Commands fail at once while it is away: whoever sends
 * one decides what to do about that.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { messageOf, PlegwatchError, redact } from './errors.ts';

/** How to reach a Redis and how the connection behaves. */
export type ConnectOptions = Omit<RedisOptions, 'replyMapping'>;

const MAX_RETRY_MS = 30_000;
const CHECK_TIMEOUT_MS = 5_000;
const CURE = 'Set --redis-url (PLEGWATCH_REDIS_URL) to redis://[:password@]host:port[/db].';

/** Reads `--redis-url`. Throws SETTING_INVALID where it is not a URL that can be used. */
export function redisOptions(url: string): ConnectOptions {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new PlegwatchError('SETTING_INVALID', '--redis-url is not a URL.', CURE);
  }
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') {
    throw new PlegwatchError(
      'SETTING_INVALID',
      `--redis-url has the scheme ${parsed.protocol}// and must have redis:// or rediss://.`,
      CURE,
    );
  }
  const db = parsed.pathname.replace('/', '');
  if (!/^\d{0,4}$/.test(db) || parsed.hostname === '') {
    throw new PlegwatchError(
      'SETTING_INVALID',
      `--redis-url ${redact(url)} names no host or a database that is no number.`,
      CURE,
    );
  }
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: parsed.port === '' ? 6379 : Number(parsed.port),
    db: db === '' ? 0 : Number(db),
    ...(parsed.username === '' ? {} : { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password === '' ? {} : { password: decodeURIComponent(parsed.password) }),
    ...(parsed.protocol === 'rediss:' ? { tls: {} } : {}),
    retryStrategy: (times) => Math.random() * Math.min(MAX_RETRY_MS, 100 * 2 ** Math.min(times, 16)),
  };
}

export interface RedisConnection {
  /** The setting as given. */
  readonly url: string;
  /** Told of every error while the connection is away; without a listener Node would end the process. */
  readonly onError: (message: string) => void;
  /** What this connection differs in, e.g. `maxRetriesPerRequest: null` for a blocking reader. */
  readonly options?: ConnectOptions;
}

/** Opens a connection that keeps itself alive. It is the caller's to `disconnect()`. */
export function connectRedis({ url, onError, options }: RedisConnection): Redis {
  const redis = new Redis({
    ...redisOptions(url),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 5_000,
    connectTimeout: 5_000,
    ...options,
  });
  redis.on('error', (error) => onError(messageOf(error)));
  return redis;
}

/**
 * Asks once whether the address answers as a Redis that lets us in.
 * Throws REDIS_UNREACHABLE, REDIS_REFUSED (credentials), or REDIS_NOT_REDIS (something else answers, or nothing does).
 */
export async function checkRedis(url: string): Promise<void> {
  const where = redact(url);
  const redis = new Redis({
    ...redisOptions(url),
    lazyConnect: true,
    connectTimeout: CHECK_TIMEOUT_MS,
    commandTimeout: CHECK_TIMEOUT_MS,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let last: unknown;
  redis.on('error', (error) => {
    last = error;
  });
  try {
    await redis.connect();
    const pong = await redis.ping();
    if (pong !== 'PONG') throw new Error(`answered PING with ${JSON.stringify(pong).slice(0, 60)}`);
  } catch (error) {
    throw explain(where, last ?? error, error);
  } finally {
    redis.disconnect();
  }
}

function explain(where: string, cause: unknown, thrown: unknown): PlegwatchError {
  const text = `${messageOf(cause)} ${messageOf(thrown)}`;
  const options = { cause };
  if (/NOAUTH|WRONGPASS|invalid (username-)?password|NOPERM|ERR AUTH/i.test(text)) {
    return new PlegwatchError(
      'REDIS_REFUSED',
      `Redis at ${where} (--redis-url) does not accept these credentials.`,
      'Put the right user and password into --redis-url (PLEGWATCH_REDIS_URL).',
      options,
    );
  }
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|connect/i.test(text)) {
    return new PlegwatchError(
      'REDIS_UNREACHABLE',
      `No Redis can be reached at ${where} (--redis-url): ${messageOf(cause)}.`,
      'Start it, or correct host and port in --redis-url (PLEGWATCH_REDIS_URL).',
      options,
    );
  }
  return new PlegwatchError(
    'REDIS_NOT_REDIS',
    `What answers at ${where} (--redis-url) is not Redis: ${messageOf(cause)}.`,
    'Correct host and port in --redis-url (PLEGWATCH_REDIS_URL).',
    options,
  );
}
