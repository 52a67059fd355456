/*
 * Looks for what no script of a queue ever meets: jobs in no list, which are put back, locks that never expire, keys that belong to no job, and
 * queues that no controller works on, whose jobs are moved (deadQueue.ts).
 *
 * Such keys are found only among all keys of a Redis, which may have many more from others. So one search serves all queues, on each
 * server of a Redis Cluster once, in steps with pauses: it takes at most a fifth of the time of a Redis.
 */
import type { Redis } from 'ioredis';
import { invariant } from '../../platform/invariant.ts';
import { sleep } from '../../platform/sleep.ts';
import { QUEUE_NAME, queuePrefix, queuesHead } from '../../protocol/redisKeys.ts';
import { mastersOf, type RedisClient } from '../../redis/client.ts';
import { clearDeadQueue, type RunOnQueue, runOnQueue } from './deadQueue.ts';
import { parseRepairs, type RepairReport } from './queueGuard.ts';
import { FIND_KEYS, SWEEP } from './queueGuardScripts.ts';

/** A pause is so many times as long as the step before it, but no longer than that. */
const PAUSE_FACTOR = 4;
const MAX_PAUSE_MS = 20;
/** Names that are kept until their queues are checked. */
const MAX_NAMES = 10_000;

export interface SweepOptions {
  readonly redis: RedisClient;
  readonly cluster: string;
  /** How many there are. It must be read from the database just before: all others are emptied. */
  readonly queues: number;
  readonly report: RepairReport;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Sweeps all queues once. Throws the reason of the signal if it is aborted while a dead queue is emptied. */
export async function sweepQueues(options: SweepOptions): Promise<void> {
  for (const master of mastersOf(options.redis)) await sweepServer(master, options);
  // Each queue has keys that are checked whether it has jobs or not.
  for (let queue = 0; queue < options.queues; queue += 1) {
    if (!options.signal.aborted) await check(queue, [], options);
  }
}

async function sweepServer(server: Redis, options: SweepOptions): Promise<void> {
  const { cluster, queues, report, signal } = options;
  const scope = [queuesHead(cluster), queues, QUEUE_NAME];
  let pairs: string[] = [];
  let cursor = '0';
  do {
    const answer: unknown = await paced(options, () => server.eval(FIND_KEYS, 0, cursor, ...scope));
    const [next, jobs, removed] = Array.isArray(answer) ? answer : [];
    cursor = String(next);
    pairs.push(...textsOf(jobs));
    for (const [queue, names] of byQueue(textsOf(removed))) {
      const repairs = names.map((name) => ({ kind: 'unused_key' as const, name, detail: '' }));
      await report(keyOf(cluster, queue), repairs);
    }
    if (cursor !== '0' && pairs.length < 2 * MAX_NAMES) continue;
    for (const [queue, names] of byQueue(pairs)) await check(queue, names, options);
    pairs = [];
  } while (cursor !== '0' && !signal.aborted);
}

/** Checks the keys of a queue, and the jobs and locks of these names. */
async function check(queue: number, names: readonly string[], options: SweepOptions): Promise<void> {
  const { redis, cluster, queues, report, signal } = options;
  const key = keyOf(cluster, queue);
  if (queue >= queues) {
    // It may have very many jobs; what was moved and not removed is a copy.
    const run: RunOnQueue = (...call) => {
      signal.throwIfAborted();
      return paced(options, () => runOnQueue(redis)(...call));
    };
    const live = keyOf(cluster, queue % queues);
    for (const [where, repairs] of await clearDeadQueue(run, key, live, names)) {
      if (repairs.length > 0) await report(where, repairs);
    }
    return;
  }
  const found = await paced(options, () => runOnQueue(redis)(key, SWEEP, ...names));
  const repairs = parseRepairs(String(found));
  if (repairs.length > 0) await report(key, repairs);
}

const keyOf = (cluster: string, queue: number): string => `${queuePrefix(cluster, queue)}:${QUEUE_NAME}`;

function textsOf(list: unknown): string[] {
  invariant(Array.isArray(list), 'the search for keys of queues answers lists');
  return list.map(String);
}

/** Names by the number of their queue, from a list in which each follows its queue. */
function byQueue(pairs: readonly string[]): Map<number, string[]> {
  const names = new Map<number, string[]>();
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const queue = Number(pairs[i]);
    const found = names.get(queue) ?? [];
    found.push(pairs[i + 1] ?? '');
    names.set(queue, found);
  }
  return names;
}

/** Others use this Redis too. */
async function paced<T>({ now, signal }: SweepOptions, step: () => Promise<T>): Promise<T> {
  const began = now();
  const answer = await step();
  await sleep(Math.min((now() - began) * PAUSE_FACTOR, MAX_PAUSE_MS), signal);
  return answer;
}
