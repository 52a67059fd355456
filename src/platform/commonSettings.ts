/*
 * The settings that agents and controllers share.
 */
import * as v from 'valibot';
import { ClusterName } from '../protocol/batch.ts';
import { LOG_LEVELS } from './log.ts';
import { redisUrl } from './redisUrl.ts';
import {
  BadValue,
  duration,
  internal,
  list,
  listenAddress,
  oneOf,
  optional,
  repeated,
  required,
  requiredUnless,
  secret,
  string,
  withDefault,
} from './settings.ts';

const clusterName = (raw: string): string => {
  if (!v.is(ClusterName, raw)) {
    throw new BadValue('must be lower case letters, digits, - and ., at most 63 characters');
  }
  return raw;
};

export const CLUSTER = required(
  'name',
  'name of the cluster, the same for its agents and controllers',
  clusterName,
);

/** For commands that read what several clusters have stored. */
export const CLUSTERS = repeated(
  optional(
    'name',
    'only this cluster; may be given several times; default: every cluster that the role may read',
    list(clusterName),
  ),
);

/** The files are read again before each connect. */
export const REDIS_SETTINGS = {
  redisUrl: secret(
    requiredUnless(
      'redisSecretDir',
      'url',
      'Redis that carries the evidence: redis://[:password@]host:port[/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master[/db]; rediss for TLS',
      redisUrl,
    ),
  ),
  redisSecretDir: optional(
    'dir',
    'folder of a mounted Secret with a file url or uri, or with host, port, username and password, which take precedence over those of the URL',
    string,
  ),
  redisCaFile: optional('file', "file with the CA of Redis's certificate; default: well-known CAs", string),
  redisCertFile: optional('file', 'file with the client certificate for Redis', string),
  redisKeyFile: optional('file', 'file with the key of that certificate', string),
} as const;

export const HTTP_ADDRESS = withDefault(
  'address',
  ':9465',
  'address of /metrics, /livez and /readyz',
  listenAddress,
);

export const logLevelFrom = (fallback: (typeof LOG_LEVELS)[number]) =>
  withDefault('level', fallback, `one of ${LOG_LEVELS.join(', ')}`, oneOf(...LOG_LEVELS));

/** An interval that only tests shorten. */
export const internalInterval = (fallback: string, describe: string) =>
  internal(withDefault('duration', fallback, describe, duration(100, 3_600_000)));

export const REDIS_RETRY_INTERVAL = internalInterval('30s', 'longest wait between two tries to reach Redis');
