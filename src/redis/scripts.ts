/*
 * Scripts that Redis runs by their digest, so that the text is not sent with every call. One that has restarted, or a replica that took over, says that
 * it does not know it.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '../platform/errors.ts';
import type { RedisClient } from './client.ts';

type Argument = string | Buffer | number;

/** Runs a script on keys of one shard. The text is sent where Redis does not know it, which loads it there. */
export function redisScript(text: string) {
  const digest = digestOf(text);
  return (redis: RedisClient, keys: readonly string[], ...args: readonly Argument[]): Promise<unknown> =>
    redis.evalsha(digest, keys.length, ...keys, ...args).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error;
      return redis.eval(text, keys.length, ...keys, ...args);
    });
}

const isUnknownScript = (error: unknown): boolean => messageOf(error).startsWith('NOSCRIPT');

const digestOf = (text: string): string => createHash('sha1').update(text).digest('hex');
