/*
 * One BullMQ queue and our worker on it, which handles one job at a time.
 *
 *   waiting ──► active ──► handled ──► removed
 *                 │ the handler asks for a delay
 *                 └──────► delayed ──► waiting
 *
 * A job never fails, so it can never be lost here: the handler returns when the batch is committed and its reply published, or asks
 * for a delay. A worker that dies leaves an active job behind; another one takes it when its lock has expired.
 *
 * What a job says about itself comes from its producer and is not trusted: attempts, removal, parents and schedules are set here.
 */
import { DelayedError, type Job, type JobJson, Worker } from 'bullmq';
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { QUEUE_NAME, queuePrefix } from '../../protocol/redisKeys.ts';
import { isUnreadable, removeUnreadableJobs, type UnreadableJob } from './unreadableJobs.ts';

export type JobOutcome = { readonly done: true } | { readonly done: false; readonly delayMs: number };

export interface JobHandler {
  /** Handles a job's data. Must not throw. */
  handle(queue: number, data: unknown): Promise<JobOutcome>;
  /** Called with a job that could not be read and was removed from the queue. */
  handleUnreadable(queue: number, job: UnreadableJob): Promise<void>;
}

export interface QueueWorkerOptions {
  readonly cluster: string;
  readonly queue: number;
  /** Shared by all queues; the worker opens a second one for blocking commands. Never gives up on a command. */
  readonly redis: RedisClient;
  /** After this the job of a worker that died is taken by another. */
  readonly lockMs: number;
  readonly handler: JobHandler;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
}

export interface QueueWorker {
  readonly queue: number;
  /**
   * Returns how many jobs are waiting, active and delayed. Also bounds the queue's own event stream, a setting that a new Redis
   * lacks, and removes limits that a stranger has set on the queue.
   */
  tend(redis: RedisClient): Promise<number>;
  /** Takes no more jobs and waits for the present one. */
  stop(): Promise<void>;
}

/** Job data that is not JSON, as it was. */
export class NotJson {
  readonly raw: string;
  constructor(raw: string) {
    this.raw = raw;
  }
}

const RETRY_MS = 1_000;
/** A batch that kills its worker is our fault and must not be discarded for it. */
const MAX_STALLED = 1_000_000;
const MAX_EVENTS = 100;
/** Settings of a queue that stop or slow down its workers. We set none, but agents may write to this hash. */
const LIMITS = ['paused', 'concurrency', 'max', 'duration'] as const;
const STOP_WITHIN_MS = 10_000;

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
  const sweep = async () => {
    const removed = await removeUnreadableJobs(redis, queueKey);
    for (const job of removed) await handler.handleUnreadable(queue, job);
    return removed.length;
  };
  const worker = new EvidenceWorker(
    async (job, token) => {
      const outcome = await handler.handle(queue, job.data);
      if (outcome.done) return;
      // If even that fails, the job stays active without a lock, and the search for stalled jobs finds it.
      await job.moveToDelayed(Date.now() + outcome.delayMs, token).catch((error: unknown) => {
        log.warn({ queue, error: messageOf(error) }, 'batch could not be delayed');
      });
      throw new DelayedError();
    },
    { prefix, connection: redis, lockMs },
    sweep,
  );
  worker.on('error', (error) => {
    log.warn({ queue, error: messageOf(error) }, 'queue worker failed');
    // A job may be read and then fail to finish: its counters are used only then.
    if (isUnreadable(error)) sweep().catch((failure: unknown) => worker.emit('error', asError(failure)));
  });
  return {
    queue,
    async tend(redis) {
      await redis.hset(`${queueKey}:meta`, 'opts.maxLenEvents', MAX_EVENTS);
      await redis.hdel(`${queueKey}:meta`, ...LIMITS);
      const [waiting, active, delayed] = await Promise.all([
        redis.llen(`${queueKey}:wait`),
        redis.llen(`${queueKey}:active`),
        redis.zcard(`${queueKey}:delayed`),
      ]);
      return waiting + active + delayed;
    },
    async stop() {
      const stopped = await within(worker.close(), STOP_WITHIN_MS);
      // Redis is unavailable: an active job is taken again when its lock has expired.
      if (!stopped) await within(worker.close(true), STOP_WITHIN_MS);
    },
  };
}

class EvidenceWorker extends Worker<unknown, void> {
  readonly #sweep: () => Promise<number>;

  constructor(
    processor: (job: Job<unknown, void>, token: string | undefined) => Promise<void>,
    { lockMs, ...location }: { prefix: string; connection: RedisClient; lockMs: number },
    /** Removes jobs that cannot be read and returns how many there were. */
    sweep: () => Promise<number>,
  ) {
    super(QUEUE_NAME, processor, {
      ...location,
      concurrency: 1,
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      maxStalledCount: MAX_STALLED,
      runRetryDelay: RETRY_MS,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
      autorun: false,
    });
    this.#sweep = sweep;
    // Not before the field above is set.
    this.run().catch((error: unknown) => this.emit('error', asError(error)));
  }

  protected override createJob(json: JobJson, jobId: string): Job<unknown, void> {
    const { id, name, timestamp, attemptsStarted, attemptsMade, stalledCounter } = json;
    if (Number.isNaN(attemptsMade + stalledCounter))
      throw new SyntaxError('a counter of a job is not a number');
    const trusted = { id, name, timestamp, attemptsStarted, attemptsMade, stalledCounter };
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    const empty = { data: '{}', progress: 0, failedReason: '', returnvalue: '' };
    const job = super.createJob({ ...trusted, ...empty, opts }, jobId);
    job.processedOn = json.processedOn ?? Date.now();
    job.data = parseData(json.data);
    return job;
  }

  /** Every job is fetched here and nowhere else: a fetch that throws leaves a job that cannot be read. */
  protected override async moveToActive(token: string, name?: string): Promise<Job<unknown, void>> {
    for (;;) {
      try {
        return await super.moveToActive(token, name);
      } catch (error) {
        // Again at once, as long as some are removed: a pause for each would stall the queue.
        if (!isUnreadable(error) || (await this.#sweep()) === 0) throw error;
      }
    }
  }

  override processJob(job: Job<unknown, void>, token: string): Promise<void | Job<unknown, void>> {
    return super.processJob(job, token, () => false);
  }
}

/** BullMQ's type promises data, but a job may have none. */
function parseData(data: string | undefined): unknown {
  try {
    return JSON.parse(data ?? '');
  } catch {
    return new NotJson(data ?? '');
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
