/*
 * Where Redis is, how to log in, and what TLS needs: from `--redis-url`, from the folder of a Secret, or from both.
 *
 *   the folder has `url` or `uri`      that URL is used, `--redis-url` is not
 *   otherwise                          `host`, `port`, `username`, `password` and `sentinelPassword` replace those of `--redis-url`
 */
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { readSecretDir, type SecretFields } from '../platform/secretDir.ts';
import { BadValue } from '../platform/settings.ts';
import { readTlsFiles, type TlsFiles, type TlsMaterial, type TlsSettingNames } from '../platform/tls.ts';
import { type RedisPlace, readRedisUrl } from './url.ts';

export interface RedisSettings {
  readonly redisUrl?: string | undefined;
  readonly redisSecretDir?: string | undefined;
  readonly redisCaFile?: string | undefined;
  readonly redisCertFile?: string | undefined;
  readonly redisKeyFile?: string | undefined;
}

export interface RedisAccess {
  readonly place: RedisPlace;
  /** Empty without TLS. */
  readonly tls: TlsMaterial;
}

const URL_CURE =
  'Set --redis-url (PLEGWATCH_REDIS_URL) to redis://[:password@]host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master.';
const DIR_SETTING = '--redis-secret-dir (PLEGWATCH_REDIS_SECRET_DIR)';

/** The setting that says where Redis is and how to log in, for messages. */
export const redisSettingOf = ({ redisSecretDir }: RedisSettings): string =>
  redisSecretDir === undefined ? '--redis-url (PLEGWATCH_REDIS_URL)' : DIR_SETTING;

export const redisTlsNames = (settings: RedisSettings): TlsSettingNames => ({
  host: redisSettingOf(settings),
  ca: '--redis-ca-file (PLEGWATCH_REDIS_CA_FILE)',
  cert: '--redis-cert-file (PLEGWATCH_REDIS_CERT_FILE)',
  key: '--redis-key-file (PLEGWATCH_REDIS_KEY_FILE)',
});

/** Whether {@link readRedisAccess} may have another result later. */
export const redisAccessChanges = (settings: RedisSettings): boolean =>
  settings.redisSecretDir !== undefined || Object.keys(tlsFilesOf(settings)).length > 0;

/** Reads the files anew. Throws SETTING_INVALID where something is missing or cannot be used. */
export function readRedisAccess(settings: RedisSettings): RedisAccess {
  const files = tlsFilesOf(settings);
  const place = readPlace(settings);
  const hasFiles = Object.keys(files).length > 0;
  if (hasFiles && !place.tls) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      'A CA or client certificate for Redis is set, but the URL begins with redis and not with rediss.',
      `Begin the URL in ${redisSettingOf(settings)} with rediss, or set no certificates.`,
    );
  }
  if ((files.cert === undefined) !== (files.key === undefined)) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      'A client certificate for Redis needs both --redis-cert-file and --redis-key-file.',
      'Set both of them, or neither.',
    );
  }
  return { place, tls: readTlsFiles(files) };
}

function readPlace(settings: RedisSettings): RedisPlace {
  const { redisUrl, redisSecretDir } = settings;
  if (redisSecretDir === undefined) return parsed(redisUrl ?? '', '--redis-url', URL_CURE);
  const fields = readSecretDir(redisSecretDir, DIR_SETTING);
  const cure = `Correct the Secret that ${DIR_SETTING} is the folder of.`;
  if (fields.url !== undefined) return parsed(fields.url, `${redisSecretDir}: the URL`, cure);
  const base = redisUrl === undefined ? null : parsed(redisUrl, '--redis-url', URL_CURE);
  if (base === null && fields.host === undefined) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      `${DIR_SETTING}: ${redisSecretDir} has neither a file url or uri nor a file host.`,
      `${cure} Or set --redis-url (PLEGWATCH_REDIS_URL) as well: the folder then gives user name and password.`,
    );
  }
  return withFields(base ?? plainPlace(settings), fields);
}

function withFields(base: RedisPlace, fields: SecretFields): RedisPlace {
  const { username, password, sentinelPassword, host, port } = fields;
  const login = {
    ...base.login,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
  if (base.kind === 'server') {
    const address = { host: host ?? base.address.host, port: Number(port ?? base.address.port) };
    return { ...base, login, address };
  }
  if (base.kind === 'sentinel' && sentinelPassword !== undefined)
    return { ...base, login, sentinelLogin: { password: sentinelPassword } };
  return { ...base, login };
}

/** A server of which only a Secret is known: with TLS if there are files for it. */
const plainPlace = (settings: RedisSettings): RedisPlace => ({
  kind: 'server',
  address: { host: '', port: 6379 },
  login: {},
  tls: Object.keys(tlsFilesOf(settings)).length > 0,
});

function parsed(url: string, what: string, cure: string): RedisPlace {
  try {
    return readRedisUrl(url);
  } catch (error) {
    if (!(error instanceof BadValue)) throw error;
    throw new PlegwatchError('SETTING_INVALID', `${what} ${messageOf(error)}.`, cure);
  }
}

function tlsFilesOf(settings: RedisSettings): TlsFiles {
  const names = redisTlsNames(settings);
  const { redisCaFile, redisCertFile, redisKeyFile } = settings;
  return {
    ...(redisCaFile === undefined ? {} : { ca: { file: redisCaFile, setting: names.ca } }),
    ...(redisCertFile === undefined ? {} : { cert: { file: redisCertFile, setting: names.cert } }),
    ...(redisKeyFile === undefined ? {} : { key: { file: redisKeyFile, setting: names.key } }),
  };
}
