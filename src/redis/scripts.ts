/*
 * Scripts that Redis runs by their digest, so that the text is not sent with every call. A Redis that does not know one, because it has restarted or
 * a replica took over, says so.
 *
 * Agents may not send a script, because one that does not end stops Redis: a controller loads the one that they need.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '../platform/errors.ts';
import { mastersOf, type RedisClient } from './client.ts';

type Argument = string | Buffer | number;
/** Runs a script on one key. */
export type RedisScript = (redis: RedisClient, key: string, ...args: readonly Argument[]) => Promise<unknown>;

/** The text is sent where Redis does not know it, which loads it there. */
export function redisScript(text: string): RedisScript {
  const digest = digestOf(text);
  return (redis, key, ...args) =>
    redis.evalsha(digest, 1, key, ...args).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error;
      return redis.eval(text, 1, key, ...args);
    });
}

/** Loads a script into every master. Loading it again changes nothing. */
export async function loadScript(redis: RedisClient, text: string): Promise<void> {
  await Promise.all(mastersOf(redis).map((master) => master.script('LOAD', text)));
}

/**
 * Runs the commands that are defined on this connection afterwards, as BullMQ does, by their digest only; the Redis client would send each script once
 * on every connection. They take one list: keys, then arguments.
 */
export function runScriptsByDigest(redis: RedisClient): void {
  redis.defineCommand = (name, { lua, numberOfKeys = 0 }) => {
    const digest = digestOf(lua);
    Object.assign(redis, {
      [name]: (args: readonly Argument[]) => redis.evalsha(digest, numberOfKeys, ...args),
    });
  };
}

export const isUnknownScript = (error: unknown): boolean => messageOf(error).startsWith('NOSCRIPT');

const digestOf = (text: string): string => createHash('sha1').update(text).digest('hex');
