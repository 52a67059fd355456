/*
 * Jobs that BullMQ cannot even make a job of.
 *
 * It parses a job's data and options before our code sees them, throws where they are not JSON, and takes the same job up
 * again for ever. Data that is not JSON is caught where jobs are made (lane.ts); options that are not JSON break the fetch
 * itself, and then the job is taken out of the queue here.
 */
import type { Redis } from 'ioredis';

export interface Unreadable {
  readonly id: string;
  readonly raw: string;
}

/** The fields that are parsed while a job is fetched. */
const PARSED = ['opts', 'progress', 'parent'] as const;

/** Takes every active job whose options cannot be read out of a queue and returns what it was. */
export async function takeUnreadable(redis: Redis, queueKey: string): Promise<Unreadable[]> {
  const taken: Unreadable[] = [];
  for (const id of await redis.lrange(`${queueKey}:active`, 0, -1)) {
    const fields = await redis.hmget(`${queueKey}:${id}`, ...PARSED, 'data');
    const [opts, progress, parent, data] = fields;
    if ([opts, progress, parent].every(isJson)) continue;
    await redis
      .multi()
      .lrem(`${queueKey}:active`, 0, id)
      .srem(`${queueKey}:stalled`, id)
      .del(`${queueKey}:${id}`, `${queueKey}:${id}:lock`)
      .exec();
    taken.push({ id, raw: JSON.stringify({ opts, progress, parent, data }) });
  }
  return taken;
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
