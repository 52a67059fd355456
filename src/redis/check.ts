/*
 * The check at start-up that distinguishes a wrong setting from a Redis that is merely down.
 *
 * It checks that a Redis answers at the address, accepts the credentials, and is of the kind that the scheme says: a plain client of a
 * cluster or of a Sentinel would fail only later, and with a misleading error. One answering address of several is enough.
 */
import { Redis } from 'ioredis';
import { messageOf, PlegwatchError, redact } from '../platform/errors.ts';
import { explainTls, type TlsMaterial } from '../platform/tls.ts';
import { millis } from '../protocol/units.ts';
import { type RedisSettings, readRedisAccess, redisSettingOf, redisTlsNames } from './access.ts';
import { accessOptions } from './client.ts';
import { addressConnector } from './connectors.ts';
import { ReplyGuard } from './replyGuard.ts';
import type { Address, Login, RedisPlace, SentinelPlace } from './url.ts';

const CHECK_TIMEOUT_MS = 5_000;

type RedisMode = 'standalone' | 'cluster' | 'sentinel';
const SCHEMES = {
  standalone: 'redis://',
  cluster: 'redis+cluster://',
  sentinel: 'redis+sentinel://',
} as const;
const WHAT = {
  standalone: 'a Redis that is no cluster',
  cluster: 'a node of a Redis Cluster',
  sentinel: 'a Redis Sentinel',
} as const;

interface RedisTarget {
  readonly settings: RedisSettings;
  /** The place without its password, and the setting that it is from. */
  readonly where: string;
  readonly login: Login;
  readonly tls: TlsMaterial | null;
  readonly mode: RedisMode;
}

/**
 * Throws REDIS_UNREACHABLE (nothing listens, nothing answers, or Redis is not ready), REDIS_REFUSED (wrong credentials, or no such
 * master), REDIS_TLS (one side does not accept the other's certificate), REDIS_NOT_REDIS (something else answers, or a
 * Redis of another kind than the scheme says), or SETTING_INVALID (a file is missing or cannot be used).
 */
export async function checkRedis(settings: RedisSettings): Promise<void> {
  const { place, tls } = readRedisAccess(settings);
  const where = whereOf(settings, place);
  const target = { settings, where, login: place.login, tls: place.tls ? tls : null };
  switch (place.kind) {
    case 'server':
      return ask({ ...target, mode: 'standalone' }, place.address, nothingMore);
    case 'cluster':
      return askAny({ ...target, mode: 'cluster' }, place.nodes, wellCluster);
    case 'sentinel': {
      const sentinels = { ...target, login: place.sentinelLogin, mode: 'sentinel' } as const;
      const master = await askAny(sentinels, place.sentinels, (redis) => masterOf(redis, place));
      return ask({ ...target, mode: 'standalone' }, master, nothingMore);
    }
  }
}

const nothingMore = () => Promise.resolve();

async function wellCluster(redis: Redis): Promise<void> {
  await redis.cluster('SLOTS');
  const state = /^cluster_state:(\w+)/m.exec(await unlessForbidden(redis.cluster('INFO')))?.[1];
  if (state === 'fail') throw new Error('CLUSTERDOWN its cluster_state is fail');
}

async function masterOf(redis: Redis, { master }: SentinelPlace): Promise<Address> {
  const answer = await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master);
  if (!Array.isArray(answer)) throw new Error(`NOMASTER it watches no master named ${master}`);
  return { host: String(answer[0]), port: Number(answer[1]) };
}

/** Asks all addresses at once. Returns the first good answer, or throws the most specific error. */
async function askAny<T>(
  target: RedisTarget,
  addresses: readonly Address[],
  more: (redis: Redis) => Promise<T>,
): Promise<T> {
  const done = new AbortController();
  try {
    return await Promise.any(addresses.map((address) => ask(target, address, more, done.signal)));
  } catch (error) {
    const faults: unknown[] = error instanceof AggregateError ? error.errors : [error];
    throw faults.find((each) => codeOf(each) !== 'REDIS_UNREACHABLE') ?? faults[0];
  } finally {
    done.abort();
  }
}

const codeOf = (error: unknown) => (error instanceof PlegwatchError ? error.code : null);

async function ask<T>(
  target: RedisTarget,
  address: Address,
  more: (redis: Redis) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const guard = new ReplyGuard({ maxPause: millis(0), onFault: () => undefined });
  const redis = new Redis({
    ...accessOptions(target.login, target.tls),
    Connector: addressConnector(guard),
    ...address,
    lazyConnect: true,
    connectTimeout: CHECK_TIMEOUT_MS,
    commandTimeout: CHECK_TIMEOUT_MS,
    disconnectTimeout: 100,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  const end = () => redis.disconnect();
  signal?.addEventListener('abort', end);
  let listens = false;
  redis.on('connect', () => {
    listens = true;
  });
  const errors: unknown[] = [];
  redis.on('error', (error) => errors.push(error));
  try {
    await redis.connect();
    const pong = await redis.ping();
    if (pong !== 'PONG') throw new Error(`it answers PING with ${JSON.stringify(pong).slice(0, 60)}`);
    await expectMode(redis, target);
    return await more(redis);
  } catch (error) {
    throw error instanceof PlegwatchError ? error : explain(target, listens, [...errors, error]);
  } finally {
    signal?.removeEventListener('abort', end);
    redis.disconnect();
  }
}

async function expectMode(redis: Redis, target: RedisTarget): Promise<void> {
  const mode = await modeOf(redis);
  if (mode === null || mode === target.mode) return;
  throw new PlegwatchError(
    'REDIS_NOT_REDIS',
    `The server at ${target.where} is ${WHAT[mode]}, which ${SCHEMES[target.mode]} is not for.`,
    `Begin the URL in ${redisSettingOf(target.settings)} with ${SCHEMES[mode]}, or correct host and port.`,
  );
}

/** Null if the answer does not contain it, or we may not ask. */
async function modeOf(redis: Redis): Promise<RedisMode | null> {
  const mode = /^redis_mode:(\w+)/m.exec(await unlessForbidden(redis.info('server')))?.[1];
  return mode === 'standalone' || mode === 'cluster' || mode === 'sentinel' ? mode : null;
}

/** Empty if we may not ask. */
async function unlessForbidden(answer: Promise<unknown>): Promise<string> {
  try {
    return String(await answer);
  } catch (error) {
    if (/^(NOPERM|ERR)/.test(messageOf(error))) return '';
    throw error;
  }
}

const REFUSED = /NOAUTH|WRONGPASS|invalid (username-)?password|NOPERM|ERR AUTH|DB index|NOMASTER/i;
/** Redis's errors while it loads, has too many clients or has no master. */
const UNAVAILABLE = /LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|max number of clients|DENIED/;

/** Where Redis is and the setting that says so, without a password. */
export function whereOf(settings: RedisSettings, place: RedisPlace): string {
  const { redisUrl, redisSecretDir } = settings;
  if (redisSecretDir === undefined) return `${redact(redisUrl ?? '')} (--redis-url)`;
  const addresses =
    place.kind === 'server' ? [place.address] : place.kind === 'cluster' ? place.nodes : place.sentinels;
  const hosts = addresses.map(({ host, port }) => `${host}:${port}`).join(',');
  return `${hosts} (--redis-secret-dir ${redisSecretDir})`;
}

/** `errors` in order: the first one is the cause, the others only follow from it. */
function explain(target: RedisTarget, listens: boolean, errors: readonly unknown[]): PlegwatchError {
  const { where, settings } = target;
  const setting = redisSettingOf(settings);
  const messages = errors.map((error) => messageOf(error).replace(/\.+$/, ''));
  const find = (pattern: RegExp) => messages.find((each) => pattern.test(each));
  const options = { cause: errors[0] };
  const refused = find(REFUSED);
  if (refused !== undefined) {
    return new PlegwatchError(
      'REDIS_REFUSED',
      `Redis at ${where} refuses: ${refused.startsWith('NOAUTH') ? 'it asks for a password' : refused}.`,
      target.mode === 'sentinel'
        ? `Put the right name of the master, and the Sentinels' own password as ?sentinelPassword=, into ${setting}.`
        : `Put the right user and password into ${setting}.`,
      options,
    );
  }
  for (const error of errors) {
    const tls = explainTls(error, redisTlsNames(settings), target.tls !== null && listens);
    if (tls !== null) {
      const what = `The TLS connection to Redis at ${where} fails: ${tls.message}.`;
      return new PlegwatchError('REDIS_TLS', what, tls.cure, { cause: error });
    }
  }
  // A Redis that hangs and a server of another protocol that waits for input cannot be distinguished. Neither stops an agent.
  const unavailable = find(UNAVAILABLE) ?? find(/timed out/i);
  if (!listens || unavailable !== undefined) {
    return new PlegwatchError(
      'REDIS_UNREACHABLE',
      `No Redis can be reached at ${where}: ${unavailable ?? messages[0]}.`,
      `Start it, or correct host and port in ${setting}.`,
      options,
    );
  }
  return new PlegwatchError(
    'REDIS_NOT_REDIS',
    `The server at ${where} does not answer as Redis does: ${messages[0]}.`,
    `Correct host and port in ${setting}; it leads to something else.`,
    options,
  );
}
