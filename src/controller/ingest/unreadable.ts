/*
 * Jobs that BullMQ cannot even make a job of.
 *
 * It parses a job's data and options before our code sees them, throws where they are not JSON, and takes the same job up
 * again for ever. Data that is not JSON is caught where jobs are made (lane.ts); options that are not JSON, and a job that is
 * no hash or whose counters are no numbers, break the fetch itself, or the end of a job, or the search for stalled ones. Those
 * are taken out of the queue here.
 */
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';

export interface Unreadable {
  readonly id: string;
  readonly raw: string;
}

/** The fields that are parsed while a job is fetched. */
const PARSED = ['opts', 'progress', 'parent'] as const;
/** The fields that Redis counts in: attempts started and made, and how often it was found stalled. */
const COUNTED = ['ats', 'atm', 'stc'] as const;
/** Fits 64 bits with room to count on. */
const COUNTER = /^-?\d{1,15}$/;

/** Whether this error means that such a job was met. */
export const isUnreadable = (error: unknown): boolean =>
  error instanceof SyntaxError || /^WRONGTYPE|not an integer|would overflow/.test(messageOf(error));

/** Takes every active job that cannot be read out of a queue and returns what it was. */
export async function takeUnreadable(redis: RedisClient, queueKey: string): Promise<Unreadable[]> {
  const taken: Unreadable[] = [];
  for (const id of await redis.lrange(`${queueKey}:active`, 0, -1)) {
    const raw = await unreadableText(redis, `${queueKey}:${id}`);
    if (raw === null) continue;
    await redis
      .multi()
      .lrem(`${queueKey}:active`, 0, id)
      .srem(`${queueKey}:stalled`, id)
      .del(`${queueKey}:${id}`, `${queueKey}:${id}:lock`)
      .exec();
    taken.push({ id, raw });
  }
  return taken;
}

/** What stands in a job that cannot be read; null of one that can. */
async function unreadableText(redis: RedisClient, key: string): Promise<string | null> {
  const type = await redis.type(key);
  if (type !== 'hash') return type === 'none' ? null : `a ${type}`;
  const counters = await redis.hmget(key, ...COUNTED);
  const [opts, progress, parent, data] = await redis.hmget(key, ...PARSED, 'data');
  const readable =
    [opts, progress, parent].every(isJson) && counters.every((n) => n === null || COUNTER.test(n));
  return readable ? null : JSON.stringify({ opts, progress, parent, counters, data });
}

function isJson(text: string | null | undefined): boolean {
  if (text === null || text === undefined || text === '') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
