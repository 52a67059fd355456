/*
 * Scripts that are run by their digest, and never sent: the user of agents may not send one, because a script that does not end stops
 * Redis. A controller loads the one that agents need. The Redis client would send each script once on every connection.
 */
import { createHash } from 'node:crypto';
import type { RedisClient } from '../../redis/client.ts';

/** For commands that are defined afterwards, as BullMQ does. They take one list: keys, then arguments. */
export function runScriptsByDigest(redis: RedisClient): void {
  redis.defineCommand = (name, { lua, numberOfKeys = 0 }) => {
    const digest = createHash('sha1').update(lua).digest('hex');
    const run = (args: readonly (string | Buffer | number)[]) => redis.evalsha(digest, numberOfKeys, ...args);
    Object.assign(redis, { [name]: run });
  };
}
