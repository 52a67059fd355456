/*
 * The users of agents and controllers in a local Redis, with the rights that `plegwatch redis-acl` prints. The default user is left to
 * tests, for what no program does.
 */
import { createHash } from 'node:crypto';
import { aclRules, REDIS_USERS, type RedisUser, redisUserName } from '../../src/redis/users.ts';

/** The password of a user. */
export type PasswordOf = (user: RedisUser, cluster: string) => string;

const defaultPassword: PasswordOf = (user, cluster) => `${user}-of-${cluster}`;

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Arguments of redis-server that create the users of these clusters, also after a restart without data. */
export const userArguments = (
  clusters: readonly string[],
  passwordOf: PasswordOf = defaultPassword,
): readonly string[] =>
  clusters.flatMap((cluster) =>
    REDIS_USERS.flatMap((user) => [
      '--user',
      redisUserName(user, cluster),
      ...aclRules(user, cluster, hash(passwordOf(user, cluster))),
    ]),
  );

/** The same URL for a user of a cluster instead of the default user. */
export const urlAs = (
  url: string,
  user: RedisUser,
  cluster: string,
  passwordOf: PasswordOf = defaultPassword,
): string => url.replace('://', `://${redisUserName(user, cluster)}:${passwordOf(user, cluster)}@`);
