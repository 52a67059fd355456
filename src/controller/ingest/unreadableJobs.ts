/*
 * Jobs that BullMQ cannot even turn into a job object.
 *
 * It parses a job's data and options before our code sees them, throws if they are not JSON, and takes the same job again for
 * ever. Data that is not JSON is caught where jobs are created (queueWorker.ts). Options that are not JSON, a job that is not a
 * hash, or counters that are not numbers break the fetch itself, the end of a job, or the search for stalled ones: such jobs are
 * removed from the queue here.
 */
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';

export interface UnreadableJob {
  readonly id: string;
  readonly raw: string;
}

/** The fields that are parsed while a job is fetched. */
const PARSED = ['opts', 'progress', 'parent'] as const;
/** The fields that Redis increments: attempts started and made, and how often the job was found stalled. */
const COUNTERS = ['ats', 'atm', 'stc'] as const;
/** Fits 64 bits with room to count on. */
const COUNTER = /^-?\d{1,15}$/;

export const isUnreadable = (error: unknown): boolean =>
  error instanceof SyntaxError || /^WRONGTYPE|not an integer|would overflow/.test(messageOf(error));

/** Removes every active job that cannot be read from a queue, and returns their contents. */
export async function removeUnreadableJobs(redis: RedisClient, queueKey: string): Promise<UnreadableJob[]> {
  const removed: UnreadableJob[] = [];
  for (const id of await redis.lrange(`${queueKey}:active`, 0, -1)) {
    const raw = await unreadableContent(redis, `${queueKey}:${id}`);
    if (raw === null) continue;
    await redis
      .multi()
      .lrem(`${queueKey}:active`, 0, id)
      .srem(`${queueKey}:stalled`, id)
      .del(`${queueKey}:${id}`, `${queueKey}:${id}:lock`)
      .exec();
    removed.push({ id, raw });
  }
  return removed;
}

async function unreadableContent(redis: RedisClient, key: string): Promise<string | null> {
  const type = await redis.type(key);
  if (type !== 'hash') return type === 'none' ? null : `a ${type}`;
  const counters = await redis.hmget(key, ...COUNTERS);
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
