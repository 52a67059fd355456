/*
 * Adds a job for each input of an inbox, a few at a time and in turns of the senders: nothing that floods an inbox fills a queue.
 *
 *   input ── job ──► queue ──► handled, removed
 *        └─────────► handled at once, removed: while Redis is too full to add a job
 *
 * A full Redis refuses what makes it larger, and BullMQ's scripts with it. To read and remove makes it smaller, so that it frees itself. So do
 * inputs whose jobs cannot be fetched.
 */
import { Queue } from 'bullmq';
import { messageOf } from '../../platform/errors.ts';
import { sleep } from '../../platform/sleep.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { within } from '../../platform/within.ts';
import { QUEUE_NAME, queuePrefix } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { type Inbox, isRedisFull, MAX_WAITING, type Removal } from './inbox.ts';
import { type InputHandler, JOBS_AT_ONCE, type QueueWorker, STOP_WITHIN_MS } from './queueWorker.ts';
import { SenderTurns } from './senderTurns.ts';

export interface InboxMoverOptions {
  readonly cluster: string;
  readonly queue: number;
  readonly inbox: Pick<Inbox, 'look'>;
  readonly worker: Pick<QueueWorker, 'isRefused' | 'wake'>;
  /** For the queue. Its commands wait for Redis. */
  readonly redis: RedisClient;
  readonly handler: InputHandler;
  readonly onRemoved: (removed: readonly Removal[]) => void;
  readonly log: Pick<ThrottledLog, 'warn'>;
}

/** BullMQ keeps this many of its own events of a queue, which nobody reads. */
const MAX_EVENTS = 100;
const RETRY_MS = 1_000;
/** An inbox that has inputs, but no more than are known to have jobs, is looked into after this time: one may have replaced another. */
const LOOK_AGAIN_MS = 500;
/** A look that found none without a job is followed by a pause: the more have jobs, the more it cost and the less the next one would find. */
const PAUSE_PER_KNOWN_MS = 6;

export class InboxMover {
  readonly #options: InboxMoverOptions;
  readonly #queue: Queue;
  readonly #turns = new SenderTurns();
  readonly #stopping = new AbortController();
  #moving: Promise<void> | null = null;
  /** How many of the inputs are known to have jobs. */
  #known = 0;
  /** How many were handled here since the last look began. */
  #handled = 0;
  #lookedAt = performance.now();
  #pauseMs = 0;

  constructor(options: InboxMoverOptions) {
    const { cluster, queue, redis, log } = options;
    this.#options = options;
    this.#queue = new Queue(QUEUE_NAME, {
      connection: redis,
      prefix: queuePrefix(cluster, queue),
      streams: { events: { maxLen: MAX_EVENTS } },
      skipVersionCheck: true,
    });
    this.#queue.on('error', (error) => log.warn({ queue, error: messageOf(error) }, 'queue failed'));
  }

  /** Takes in how many inputs there are, and moves those that have no jobs. */
  counted(inputs: number): void {
    if (this.#moving !== null || this.#stopping.signal.aborted) return;
    this.#known = Math.min(this.#known, inputs);
    const waitMs = inputs > this.#known ? this.#pauseMs : LOOK_AGAIN_MS;
    if (inputs === 0 || performance.now() - this.#lookedAt < waitMs) return;
    this.#moving = this.#moveAll().finally(() => {
      this.#lookedAt = performance.now();
      this.#moving = null;
    });
  }

  /** An input was handled here. */
  handled(): void {
    this.#handled += 1;
    this.#known = Math.max(0, this.#known - 1);
  }

  /** Adds no more jobs. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#moving !== null) await within(this.#moving, STOP_WITHIN_MS);
    await within(this.#queue.close(), STOP_WITHIN_MS);
  }

  /** Never throws. */
  async #moveAll(): Promise<void> {
    const { queue, log } = this.#options;
    const { signal } = this.#stopping;
    try {
      let mayBeMore = true;
      while (mayBeMore && !signal.aborted) mayBeMore = await this.#moveSome();
    } catch (error) {
      log.warn({ queue, error: messageOf(error) }, 'inbox could not be emptied');
      await sleep(RETRY_MS, signal);
    }
  }

  /** Returns false when it has found fewer inputs without a job than it may move at a time. */
  async #moveSome(): Promise<boolean> {
    const { queue, inbox, worker, handler, onRemoved, log } = this.#options;
    const { isRefused } = worker;
    this.#handled = 0;
    const { known, ids, removed } = await inbox.look(isRefused);
    onRemoved(removed);
    const chosen = this.#turns.choose(ids, MAX_WAITING / 2);
    this.#known = Math.max(0, known + chosen.length - this.#handled);
    this.#pauseMs = chosen.length > 0 ? 0 : Math.min(LOOK_AGAIN_MS, known * PAUSE_PER_KNOWN_MS);
    const added = await Promise.all(chosen.map((id) => !isRefused && this.#add(id)));
    const refused = chosen.filter((_, i) => added[i] === false).slice(0, JOBS_AT_ONCE);
    if (refused.length > 0) {
      log.warn({ queue }, 'Redis refuses jobs, inputs are handled without them');
      await Promise.all(refused.map((id) => handler.handle(queue, id)));
    }
    return chosen.length === MAX_WAITING / 2;
  }

  /** Returns false if Redis is too full to add it. */
  async #add(jobId: string): Promise<boolean> {
    try {
      await this.#queue.add('input', null, {
        jobId,
        attempts: 1,
        removeOnComplete: true,
        removeOnFail: true,
      });
      this.#options.worker.wake();
      return true;
    } catch (error) {
      if (isRedisFull(error)) return false;
      throw error;
    }
  }
}
