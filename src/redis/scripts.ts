/*
 * Scripts that Redis runs by their digest, so that the text is not sent with every call. One that has restarted, or a replica that took over, says that
 * it does not know it.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '../platform/errors.ts';
import type { RedisClient } from './client.ts';

type Argument = string | Buffer | number;

/** What runs a script on one key. The text is sent where Redis does not know it, which loads it there. */
export function redisScript(text: string) {
  const digest = digestOf(text);
  return (redis: RedisClient, key: string, ...args: readonly Argument[]): Promise<unknown> =>
    redis.evalsha(digest, 1, key, ...args).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error;
      return redis.eval(text, 1, key, ...args);
    });
}

/**
 * Runs the commands that are defined on this connection afterwards, as BullMQ does, by their digest only. The user of agents may not send a script,
 * because one that does not end stops Redis: a controller loads the one that they need. The commands take one list: keys, then arguments.
 */
export function runScriptsByDigest(redis: RedisClient): void {
  redis.defineCommand = (name, { lua, numberOfKeys = 0 }) => {
    const digest = digestOf(lua);
    const run = (args: readonly Argument[]) => redis.evalsha(digest, numberOfKeys, ...args);
    Object.assign(redis, { [name]: run });
  };
}

export const isUnknownScript = (error: unknown): boolean => messageOf(error).startsWith('NOSCRIPT');

const digestOf = (text: string): string => createHash('sha1').update(text).digest('hex');
