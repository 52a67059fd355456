/*
 * The settings of the programs that use Redis.
 */
import { internalInterval } from '../platform/commonSettings.ts';
import { optional, requiredUnless, secret, string } from '../platform/settings.ts';
import { redisUrl } from './url.ts';

/** The files are read again before each connect. */
export const REDIS_SETTINGS = {
  redisUrl: secret(
    requiredUnless(
      'redisSecretDir',
      'url',
      'Redis: redis://[:password@]host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master; rediss for TLS',
      redisUrl,
    ),
  ),
  redisSecretDir: optional(
    'dir',
    'folder of a mounted Secret with url or uri, or with host, port, username and password, which override the URL',
    string,
  ),
  redisCaFile: optional(
    'file',
    "file with the CA of Redis's certificate; without it, well-known CAs",
    string,
  ),
  redisCertFile: optional('file', 'file with the client certificate for Redis', string),
  redisKeyFile: optional('file', 'file with the key of that certificate', string),
} as const;

export const REDIS_RETRY_INTERVAL = internalInterval('30s', 'longest wait between two tries to reach Redis');
