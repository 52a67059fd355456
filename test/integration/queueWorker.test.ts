/*
 * A worker on one queue of a real Redis: what it leaves there, and what it does while its scripts are refused.
 */
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import {
  type QueueWorker,
  type QueueWorkerOptions,
  startQueueWorker,
} from '../../src/controller/ingest/queueWorker.ts';
import { QUEUE_NAME, queuePrefix } from '../../src/protocol/redisKeys.ts';
import { CLUSTER, createSender, type Sender } from '../support/batches.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

const ATTEMPTS = 3;

let redis: LocalRedis;
let sender: Sender;
let worker: QueueWorker;

needs('redis-server')('a queue worker', () => {
  beforeEach(async () => {
    redis = await startRedis();
    sender = createSender(redis.url, 1);
  });
  afterEach(async () => {
    await worker?.stop();
    await sender?.close();
    await redis?.stop();
  });

  /** Adds an input, and the job that its mover would add. */
  async function addJob(): Promise<void> {
    await sender.sendData(0, 'any', 'node.1');
    const queue = new Queue(QUEUE_NAME, { connection: sender.redis, prefix: queuePrefix(CLUSTER, 0) });
    await queue.add('input', null, { jobId: 'node.1' });
    await queue.close();
  }

  function start(
    handle: QueueWorkerOptions['handler']['handle'],
    more: Partial<QueueWorkerOptions> = {},
  ): void {
    worker = startQueueWorker({
      ...{ cluster: CLUSTER, queue: 0, redis: sender.redis, lockMs: 10_000, handler: { handle } },
      log: { warn: () => undefined, error: () => undefined },
      ...more,
    });
  }

  test('does not count a job that is not due as one that it could take', async () => {
    start(async () => ({ done: false, delayMs: 300_000 }));
    await addJob();
    const depth = await waitFor('it is delayed', async () => {
      const now = await worker.depth(sender.redis);
      return now.ready === 0 && now.all === 1 ? now : undefined;
    });
    expect(depth).toEqual({ all: 1, ready: 0 });
  });

  test('handles jobs though Redis did not answer in time when it began', async () => {
    const impatient = new Redis(redis.url, { maxRetriesPerRequest: null, commandTimeout: 1_000 });
    onTestFinished(() => impatient.disconnect());
    await waitFor('it is connected', async () => (await impatient.ping()) === 'PONG');
    await addJob();
    await redis.kill('SIGSTOP');
    const handled: string[] = [];
    const warnings: string[] = [];
    const log = {
      warn: ({ error }: { error?: string }) => warnings.push(error ?? ''),
      error: () => undefined,
    };
    const handle = async (_: unknown, id: string) => {
      handled.push(id);
      return { done: true } as const;
    };
    start(handle, { redis: impatient, log });
    await waitFor('a command has timed out', () => warnings.some((each) => each.includes('timed out')));
    await redis.kill('SIGCONT');
    await waitFor('the job is handled', () => handled.length > 0);
  });

  test('takes a job again when it is due, not when it next looks for jobs of others', async () => {
    let handled = 0;
    start(async () => {
      handled += 1;
      // Meanwhile the worker looks for another job, and waits for one.
      for (let asked = 0; asked < 20; asked += 1) await sender.redis.ping();
      return { done: false, delayMs: 20 };
    });
    await addJob();
    // It would be taken every five seconds.
    await waitFor('it has been taken often', () => handled > 50);
  });

  test('does not wait for a clock that was set back since a job was delayed', async () => {
    const now = Date.now.bind(Date);
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 30 * 24 * 3_600_000);
    onTestFinished(() => clock.mockRestore());
    let handled = 0;
    start(async () => {
      handled += 1;
      return handled === 1 ? { done: false, delayMs: 1_000 } : { done: true };
    });
    await addJob();
    await waitFor(
      'it is delayed',
      async () => (await worker.depth(sender.redis)).ready === 0 && handled === 1,
    );
    clock.mockRestore();
    await waitFor('it is handled', async () => {
      await worker.shortenDelays(sender.redis);
      return handled === 2;
    });
  });

  test('that has just delayed a job when Redis is full waits before each further fetch', async () => {
    const refusedAt: number[] = [];
    await addJob();
    const log = {
      warn: ({ error }: { error?: string }) => {
        if (error?.includes('OOM')) refusedAt.push(performance.now());
      },
      error: () => undefined,
    };
    // A worker that has delayed a job fetches the next one without waiting for any to be added.
    const handle = async () => {
      await sender.redis.config('SET', 'maxmemory', '1');
      return { done: false, delayMs: 1_000_000 } as const;
    };
    start(handle, { lockMs: 10_000_000, log });
    await waitFor('fetches are refused', () => refusedAt.length >= ATTEMPTS);
    const [first = 0, , third = 0] = refusedAt;
    expect(third - first).toBeGreaterThan(1_500);
  });
});
