/*
 * A lane: one queue and our worker on it, one job at a time.
 *
 *   waiting ──► active ──► handled ──► gone
 *                 │ the handler says later
 *                 └──────► delayed ──► waiting
 *
 * A job is never failed, so it can never be lost here: the handler returns when the batch is committed and told, or asks
 * for it to be delayed. A worker that dies leaves an active job behind; others find it when its lock has run out.
 *
 * What a job says about itself comes from its producer and is not believed: attempts, removal, parents and schedules are
 * set here.
 */
import { DelayedError, type Job, type JobJson, Worker } from 'bullmq';
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { QUEUE_NAME, queuePrefix } from '../../protocol/keys.ts';
import { isUnreadable, takeUnreadable, type Unreadable } from './unreadable.ts';

/** What to do with a job now that its handler is done. */
export type Verdict = { readonly done: true } | { readonly done: false; readonly delayMs: number };

export interface LaneHandler {
  /** Handles a job's data. Must not throw. */
  handle(lane: number, data: unknown): Promise<Verdict>;
  /** Told of a job that could not be read and is out of the queue. */
  unreadable(lane: number, job: Unreadable): Promise<void>;
}

export interface LaneOptions {
  readonly cluster: string;
  readonly lane: number;
  /** Shared by all lanes; the worker makes itself a second one for blocking. Never gives up on a command. */
  readonly redis: RedisClient;
  readonly handler: LaneHandler;
  /** After this the job of a worker that died is taken by another. */
  readonly lockMs: number;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
}

export interface Lane {
  readonly lane: number;
  /**
   * How many jobs are waiting, active and delayed. Also bounds the queue's own event stream, which a new Redis
   * forgets, and takes off what a stranger has put on to stop it.
   */
  tend(redis: RedisClient): Promise<number>;
  /** Takes no more jobs and waits for the present one. */
  stop(): Promise<void>;
}

/** The data of a job that is not JSON, handed on as what it was. */
export class NotJson {
  readonly raw: string;
  constructor(raw: string) {
    this.raw = raw;
  }
}

const RETRY_MS = 1_000;
/** A batch that kills its worker is our fault and must not be thrown away for it. */
const MAX_STALLED = 1_000_000;
const MAX_EVENTS = 100;
/** Settings of a queue that stop or slow down its workers. We set none; agents may write to this hash. */
const BRAKES = ['paused', 'concurrency', 'max', 'duration'] as const;
const STOP_WITHIN_MS = 10_000;

export function startLane({ cluster, lane, redis, lockMs, handler, log }: LaneOptions): Lane {
  const prefix = queuePrefix(cluster, lane);
  const queueKey = `${prefix}:${QUEUE_NAME}`;
  const sweep = async () => {
    const taken = await takeUnreadable(redis, queueKey);
    for (const job of taken) await handler.unreadable(lane, job);
    return taken.length;
  };
  const worker = new LaneWorker(
    async (job, token) => {
      const verdict = await handler.handle(lane, job.data);
      if (verdict.done) return;
      // Where even that fails, the job stays active without a lock, and is found again by whoever looks for stalled ones.
      await job.moveToDelayed(Date.now() + verdict.delayMs, token).catch((error: unknown) => {
        log.warn({ lane, error: messageOf(error) }, 'a batch could not be delayed');
      });
      throw new DelayedError();
    },
    { prefix, connection: redis, lockMs },
    sweep,
  );
  worker.on('error', (error) => {
    log.warn({ lane, error: messageOf(error) }, 'a lane had trouble');
    // A job may be read and then not be finished: its counters are touched only then.
    if (isUnreadable(error)) sweep().catch((failure: unknown) => worker.emit('error', asError(failure)));
  });
  return {
    lane,
    async tend(redis) {
      await redis.hset(`${queueKey}:meta`, 'opts.maxLenEvents', MAX_EVENTS);
      await redis.hdel(`${queueKey}:meta`, ...BRAKES);
      const [waiting, active, delayed] = await Promise.all([
        redis.llen(`${queueKey}:wait`),
        redis.llen(`${queueKey}:active`),
        redis.zcard(`${queueKey}:delayed`),
      ]);
      return waiting + active + delayed;
    },
    async stop() {
      const inOrder = worker.close();
      const stopped = await within(inOrder, STOP_WITHIN_MS);
      // Redis is away: what is active now is found by others, or by us, when its lock has run out.
      if (!stopped) await within(worker.close(true), STOP_WITHIN_MS);
    },
  };
}

class LaneWorker extends Worker<unknown, void> {
  readonly #sweep: () => Promise<number>;

  constructor(
    processor: (job: Job<unknown, void>, token: string | undefined) => Promise<void>,
    { lockMs, ...place }: { prefix: string; connection: RedisClient; lockMs: number },
    /** Takes out what cannot be read and tells how much that was. */
    sweep: () => Promise<number>,
  ) {
    super(QUEUE_NAME, processor, {
      ...place,
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
    // Not before the field above is there.
    this.run().catch((error: unknown) => this.emit('error', asError(error)));
  }

  protected override createJob(json: JobJson, jobId: string): Job<unknown, void> {
    const { id, name, timestamp, attemptsStarted, attemptsMade, stalledCounter } = json;
    if (Number.isNaN(attemptsMade + stalledCounter))
      throw new SyntaxError('a counter of a job is not a number');
    const believed = { id, name, timestamp, attemptsStarted, attemptsMade, stalledCounter };
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    const empty = { data: '{}', progress: 0, failedReason: '', returnvalue: '' };
    const job = super.createJob({ ...believed, ...empty, opts }, jobId);
    job.processedOn = json.processedOn ?? Date.now();
    job.data = parseData(json.data);
    return job;
  }

  /** Every job is fetched here and nowhere else: a fetch that throws has left a job behind that cannot be read. */
  protected override async moveToActive(token: string, name?: string): Promise<Job<unknown, void>> {
    for (;;) {
      try {
        return await super.moveToActive(token, name);
      } catch (error) {
        // At once and again, as long as that takes some out: a pause for each would be a lane that stands still.
        if (!isUnreadable(error) || (await this.#sweep()) === 0) throw error;
      }
    }
  }

  override processJob(job: Job<unknown, void>, token: string): Promise<void | Job<unknown, void>> {
    return super.processJob(job, token, () => false);
  }
}

/** A job without data has none, whatever its type says. */
function parseData(data: string | undefined): unknown {
  try {
    return JSON.parse(data ?? '');
  } catch {
    return new NotJson(data ?? '');
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Whether a promise is settled in time. */
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
