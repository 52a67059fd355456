/*
 * `plegwatch redis-acl`: prints the Redis users of a cluster. It reads no password, only the digest of one, and connects to nothing.
 */

import { CLUSTER } from '../platform/commonSettings.ts';
import { type ConfigOf, matching, oneOf, withDefault } from '../platform/settings.ts';
import { aclRules, REDIS_USERS, type RedisUser, redisUserName } from './users.ts';

const digest = matching(/^[0-9a-f]{64}$/, "64 hexadecimal digits, as of printf %s 'PASSWORD' | sha256sum");
/** Redis refuses them: whoever pipes the output into it unchanged creates no user with a known password. */
const PLACEHOLDERS = {
  agent: 'SHA256-OF-AGENT-PASSWORD',
  controller: 'SHA256-OF-CONTROLLER-PASSWORD',
} as const;
const passwordOf = (user: RedisUser) =>
  withDefault('hex', PLACEHOLDERS[user], `sha256 of the password of the ${user}'s user`, (raw) =>
    raw === PLACEHOLDERS[user] ? raw : digest(raw),
  );

export const REDIS_ACL_SETTINGS = {
  cluster: CLUSTER,
  agentPasswordSha256: passwordOf('agent'),
  controllerPasswordSha256: passwordOf('controller'),
  format: withDefault(
    'format',
    'commands',
    'commands, for the input of redis-cli, or aclfile, lines for the file that aclfile names',
    oneOf('commands', 'aclfile'),
  ),
} as const;

/** The text for standard output. */
export function redisAcl(config: ConfigOf<typeof REDIS_ACL_SETTINGS>): string {
  const { cluster, format } = config;
  const prefix = format === 'aclfile' ? 'user' : 'ACL SETUSER';
  const hashes = { agent: config.agentPasswordSha256, controller: config.controllerPasswordSha256 };
  return REDIS_USERS.map(
    (user) =>
      `${[prefix, redisUserName(user, cluster), ...aclRules(user, cluster, hashes[user])].join(' ')}\n`,
  ).join('');
}
