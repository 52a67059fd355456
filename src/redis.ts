/*
 * Connections to Redis: options from `--redis-url`, and one check at start-up that tells a wrong setting from a Redis
 * that is merely away.
 *
 * Every connection retries for ever with full jitter up to 30 s. Commands fail at once while it is away: whoever sends
 * one decides what to do about that.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { messageOf, PlegwatchError, redact } from './errors.ts';
import { millis } from './evidence/units.ts';
import { interval } from './interval.ts';
import { redisUrl } from './settings.ts';

/** How to reach a Redis and how the connection behaves. */
export type ConnectOptions = Omit<RedisOptions, 'replyMapping'>;

const MAX_RETRY_MS = interval('RETRY', millis(30_000)) / 1000;
const CHECK_TIMEOUT_MS = 5_000;
/**
 * A connection on which an answer is outstanding for this long is given up. Without it a Redis that vanished without a
 * word (its node lost power) is waited for until TCP gives up, a quarter of an hour later. Longer than any blocking call.
 */
const SOCKET_TIMEOUT_MS = 30_000;
const CURE = 'Set --redis-url (PLEGWATCH_REDIS_URL) to redis://[:password@]host:port[/db].';

/** Reads `--redis-url`. Throws SETTING_INVALID where it is not a URL that can be used. */
export function redisOptions(url: string): ConnectOptions {
  try {
    redisUrl(url);
  } catch (error) {
    throw new PlegwatchError('SETTING_INVALID', `--redis-url ${messageOf(error)}.`, CURE);
  }
  const parsed = new URL(url);
  const db = parsed.pathname.replace('/', '');
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: parsed.port === '' ? 6379 : Number(parsed.port),
    db: db === '' ? 0 : Number(db),
    ...(parsed.username === '' ? {} : { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password === '' ? {} : { password: decodeURIComponent(parsed.password) }),
    ...(parsed.protocol === 'rediss:' ? { tls: {} } : {}),
    socketTimeout: SOCKET_TIMEOUT_MS,
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
 * Throws REDIS_UNREACHABLE (nothing listens, or what listens says nothing or that it is not well), REDIS_REFUSED
 * (credentials, or a database that it does not have), or REDIS_NOT_REDIS (something else answers).
 */
export async function checkRedis(url: string): Promise<void> {
  const options = redisOptions(url);
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: CHECK_TIMEOUT_MS,
    commandTimeout: CHECK_TIMEOUT_MS,
    disconnectTimeout: 100,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let listens = false;
  redis.on('connect', () => {
    listens = true;
  });
  const said: unknown[] = [];
  redis.on('error', (error) => said.push(error));
  try {
    await redis.connect();
    const pong = await redis.ping();
    if (pong !== 'PONG') throw new Error(`it answers PING with ${JSON.stringify(pong).slice(0, 60)}`);
    // The driver has asked for it too, and takes a refusal for a success. The first needs no asking, nor the right to.
    if (options.db !== undefined && options.db > 0) await redis.select(options.db);
  } catch (error) {
    throw explain(url, listens, [...said, error]);
  } finally {
    redis.disconnect();
  }
}

const REFUSED = /NOAUTH|WRONGPASS|invalid (username-)?password|NOPERM|ERR AUTH|DB index/i;
/** Redis's own words, while it loads, is full of clients or follows nobody. */
const NOT_WELL = /LOADING|BUSY|MASTERDOWN|max number of clients|DENIED/;

/** `errors` in the order in which they came: the first says why, those after it that everything ended. */
function explain(url: string, listens: boolean, errors: readonly unknown[]): PlegwatchError {
  const where = `${redact(url)} (--redis-url)`;
  const words = errors.map((error) => messageOf(error).replace(/\.+$/, ''));
  const find = (pattern: RegExp) => words.find((each) => pattern.test(each));
  const options = { cause: errors[0] };
  const refused = find(REFUSED);
  if (refused !== undefined) {
    return new PlegwatchError(
      'REDIS_REFUSED',
      `Redis at ${where} refuses: ${refused.startsWith('NOAUTH') ? 'it asks for a password' : refused}.`,
      'Put the right user, password and database into --redis-url (PLEGWATCH_REDIS_URL).',
      options,
    );
  }
  // A Redis that hangs and a server that waits for other words look the same: neither is a reason not to watch a node.
  const unwell = find(NOT_WELL) ?? find(/timed out/i);
  if (!listens || unwell !== undefined) {
    return new PlegwatchError(
      'REDIS_UNREACHABLE',
      `No Redis can be reached at ${where}: ${unwell ?? words[0]}.`,
      'Start it, or correct host and port in --redis-url (PLEGWATCH_REDIS_URL).',
      options,
    );
  }
  return new PlegwatchError(
    'REDIS_NOT_REDIS',
    `What listens at ${where} does not answer as Redis does: ${words[0]}.`,
    'Correct host and port in --redis-url (PLEGWATCH_REDIS_URL); it leads to something else.',
    options,
  );
}
