/*
 * One BullMQ queue and our worker on it, which handles a few jobs at a time, so that they are committed together.
 *
 *   waiting ──► active ──► handled ──► removed
 *                 │ the handler asks for a delay
 *                 └──────► delayed ──► waiting
 *
 * A job never fails, so it can never be lost here: the handler returns when the batch is committed and its reply published, or asks
 * for a delay. A worker that dies leaves an active job behind; another one takes it when its lock has expired.
 *
 * A job carries the id of an input, which is in the inbox of the queue until it is handled. Only controllers may touch the keys of a queue, so a
 * job is as one of them added it (inboxMover.ts), which wakes its own worker. Those of other controllers look every few seconds, for jobs of one
 * that died.
 */
import {
  type BackendFactory,
  createRedisBackend,
  DelayedError,
  type Job,
  type RedisQueueBackend,
  Worker,
} from 'bullmq';
import { messageOf } from '../../platform/errors.ts';
import { sleep } from '../../platform/sleep.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { within } from '../../platform/within.ts';
import { inboxKey, QUEUE_NAME, queuePrefix } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';

export type JobOutcome = { readonly done: true } | { readonly done: false; readonly delayMs: number };

export interface InputHandler {
  /** Handles an input of the inbox of this queue, and removes it when that is done. Must not throw. */
  handle(queue: number, id: string): Promise<JobOutcome>;
}

/** How many inputs an inbox has. */
export interface QueueDepth {
  readonly all: number;
  /** Those that are handled or could be: the jobs of the others are delayed. */
  readonly ready: number;
}

export interface QueueWorkerOptions {
  readonly cluster: string;
  readonly queue: number;
  /** Shared by all queues. Its commands wait for Redis. */
  readonly redis: RedisClient;
  /** After this the job of a worker that died is taken by another. */
  readonly lockMs: number;
  readonly handler: InputHandler;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
}

export interface QueueWorker {
  readonly queue: number;
  /** Whether Redis refused the last fetch, as it does while it is full. */
  readonly isRefused: boolean;
  depth(redis: RedisClient): Promise<QueueDepth>;
  /** Lets no job wait until a clock is right again that was ahead when the job was delayed. */
  shortenDelays(redis: RedisClient): Promise<void>;
  /** Says that the queue has another job. */
  wake(): void;
  /** Takes no more jobs and waits for the present ones. */
  stop(): Promise<void>;
}

/** How many jobs of a queue are handled at a time. */
export const JOBS_AT_ONCE = 8;
const RETRY_MS = 1_000;
/** A batch that kills its worker is our fault and must not be discarded for it. */
const MAX_STALLED = 1_000_000;
/** How long a queue is given to end what is under way. */
export const STOP_WITHIN_MS = 10_000;
/** The scores of delayed jobs are milliseconds with a counter in the lower bits. */
const SCORES_PER_MS = 4_096;
/** No job is delayed for longer. */
const LONGEST_DELAY_MS = 600_000;
/** How many jobs are made due at a time. */
const DUE_AT_ONCE = 1_000;

export function startQueueWorker({
  cluster,
  queue,
  redis,
  lockMs,
  handler,
  log,
}: QueueWorkerOptions): QueueWorker {
  const prefix = queuePrefix(cluster, queue);
  const queueKey = `${prefix}:${QUEUE_NAME}`;
  const worker = new EvidenceWorker(
    async (job, token) => {
      const outcome = await handler.handle(queue, job.id ?? '');
      if (outcome.done) return;
      // If even that fails, the job stays active without a lock, and the search for stalled jobs finds it.
      await job.moveToDelayed(Date.now() + outcome.delayMs, token).then(
        // A wait that began before would not end when the job is due.
        () => worker.wake(),
        (error: unknown) => log.warn({ queue, error: messageOf(error) }, 'batch could not be delayed'),
      );
      throw new DelayedError();
    },
    { prefix, connection: redis, lockMs },
  );
  worker.on('error', (error) => {
    log.warn({ queue, error: messageOf(error) }, 'queue worker failed');
  });
  return {
    queue,
    get isRefused() {
      return worker.isRefused;
    },
    async depth(redis) {
      const [all, delayed, due] = await Promise.all([
        redis.hlen(inboxKey(cluster, queue)),
        redis.zcard(`${queueKey}:delayed`),
        redis.zcount(`${queueKey}:delayed`, '-inf', Date.now() * SCORES_PER_MS),
      ]);
      return { all, ready: Math.max(0, all - delayed + due) };
    },
    async shortenDelays(redis) {
      const delayed = `${queueKey}:delayed`;
      const due = Date.now() * SCORES_PER_MS;
      const longest = due + LONGEST_DELAY_MS * SCORES_PER_MS;
      const late = await redis.zrangebyscore(delayed, longest, '+inf', 'LIMIT', 0, DUE_AT_ONCE);
      if (late.length === 0) return;
      // Only those that are still delayed.
      await redis.zadd(delayed, 'XX', ...late.flatMap((id) => [due, id]));
      worker.wake();
    },
    wake: () => worker.wake(),
    async stop() {
      // If Redis is unavailable, an active job is taken again when its lock has expired.
      await within(worker.close(), STOP_WITHIN_MS);
    },
  };
}

/** A wait for jobs in this process. With one in Redis, BullMQ may wait for ever for a connection that is being opened anew. */
class JobWait {
  #woken = new AbortController();

  /** Ends the wait, or else the next one. */
  wake(): void {
    this.#woken.abort();
  }

  backendOf: BackendFactory<RedisQueueBackend> = (name, opts) =>
    Object.assign(createRedisBackend(name, opts), {
      waitForJob: async (seconds: number) => {
        await sleep(seconds * 1_000, this.#woken.signal);
        this.#woken = new AbortController();
        return null;
      },
      disconnectBlocking: async () => this.wake(),
    });
}

class EvidenceWorker extends Worker<null, void> {
  isRefused = false;
  readonly #wait: JobWait;
  /** Aborted when the worker closes. */
  readonly #closing = new AbortController();

  constructor(
    processor: (job: Job<null, void>, token: string | undefined) => Promise<void>,
    { lockMs, ...location }: { prefix: string; connection: RedisClient; lockMs: number },
  ) {
    const wait = new JobWait();
    const options = {
      ...location,
      concurrency: JOBS_AT_ONCE,
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      maxStalledCount: MAX_STALLED,
      runRetryDelay: RETRY_MS,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
      // One that no Redis answered in time would end the worker for good.
      skipVersionCheck: true,
      autorun: false,
    };
    super(QUEUE_NAME, processor, options, wait.backendOf);
    this.#wait = wait;
    this.on('closing', () => this.#closing.abort());
    // Not before the field above is set.
    this.run().catch((error: unknown) => this.emit('error', asError(error)));
  }

  wake(): void {
    this.#wait.wake();
  }

  /** BullMQ fetches again at once after an error reply: while Redis is full, that would be a retry storm. */
  protected override async moveToActive(token: string, name?: string): Promise<Job<null, void>> {
    this.#closing.signal.throwIfAborted();
    try {
      const job = await super.moveToActive(token, name);
      this.isRefused = false;
      return job;
    } catch (error) {
      this.isRefused = true;
      await sleep(RETRY_MS, this.#closing.signal);
      throw error;
    }
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
