/*
 * Why Redis refuses a command of an agent. Redis names a command at most, and in a script not even that: so the agent asks for all its
 * rights, and says which are missing and how to get them.
 */
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../redis/client.ts';
import { describeNeeds, missingRights } from '../../redis/rights.ts';
import { redisGrants } from '../../redis/users.ts';

const REFUSED = /NOPERM|The user executing the script|ACL failure in script/;

/** The reason of a failure, for the operator. Never throws. */
export async function reasonOf(error: unknown, redis: RedisClient, cluster: string): Promise<string> {
  const message = messageOf(error);
  if (!REFUSED.test(message)) return message;
  try {
    const missing = await missingRights(redis, redisGrants('agent', cluster));
    if (missing === null) return `${message}; plegwatch redis-acl prints the rights of agents`;
    // Only a controller may set up a queue, which it does when it finds Redis empty.
    if (missing.needs.length === 0) return `no controller has set up the queues yet: ${message}`;
    return `the Redis user may not: ${describeNeeds(missing.needs)}; plegwatch redis-acl prints the rights of agents`;
  } catch (failure) {
    return `${message}; its rights could not be checked: ${messageOf(failure)}`;
  }
}
