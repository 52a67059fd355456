/*
 * Adds a job for each input of an inbox, a few at a time and in turns of the senders: nothing that floods an inbox fills a queue.
 *
 *   input ── job ──► queue ──► handled, removed
 *        └─────────► handled at once, removed: while Redis is too full to add a job
 *
 * A full Redis refuses what makes it larger, and BullMQ's scripts with it. To read and remove makes it smaller, so that it frees itself.
 */
import { Queue } from 'bullmq';
import { messageOf } from '../../platform/errors.ts';
import { Loop } from '../../platform/loop.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { within } from '../../platform/within.ts';
import { QUEUE_NAME, queuePrefix } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { type Inbox, isRedisFull, MAX_WAITING, type Removal } from './inbox.ts';
import { type InputHandler, JOBS_AT_ONCE, STOP_WITHIN_MS } from './queueWorker.ts';
import { SenderTurns } from './senderTurns.ts';

export interface InboxMoverOptions {
  readonly cluster: string;
  readonly queue: number;
  readonly inbox: Pick<Inbox, 'look'>;
  /** For the queue. Its commands wait for Redis. */
  readonly redis: RedisClient;
  /** How long to wait after no input was found, in milliseconds. */
  readonly intervalMs: () => number;
  readonly handler: InputHandler;
  readonly onRemoved: (removed: readonly Removal[]) => void;
  readonly log: Pick<ThrottledLog, 'warn'>;
}

export interface InboxMover {
  /** Adds no more jobs. */
  stop(): Promise<void>;
}

/** BullMQ keeps so many of its own events of a queue, which nobody reads. */
const MAX_EVENTS = 100;
const BACKOFF = { firstMs: 100, maxMs: 1_000 };
/** The more inputs there are that all have jobs, the more a look costs and the less it would find: each of so many adds an interval, up to ten. */
const INPUTS_AN_INTERVAL = 8;
const MAX_INTERVALS = 10;

export function startInboxMover(options: InboxMoverOptions): InboxMover {
  const { cluster, queue: number, inbox, redis, intervalMs, handler, onRemoved, log } = options;
  const turns = new SenderTurns();
  const queue = new Queue(QUEUE_NAME, {
    connection: redis,
    prefix: queuePrefix(cluster, number),
    streams: { events: { maxLen: MAX_EVENTS } },
    skipVersionCheck: true,
  });
  queue.on('error', (error) => {
    log.warn({ queue: number, error: messageOf(error) }, 'queue failed');
  });
  /** Returns false if Redis is too full to add it. */
  const add = async (jobId: string): Promise<boolean> => {
    try {
      await queue.add('input', null, { jobId, attempts: 1, removeOnComplete: true, removeOnFail: true });
      return true;
    } catch (error) {
      if (isRedisFull(error)) return false;
      throw error;
    }
  };
  const moving = new Loop({
    async work() {
      const { inputs, ids, removed } = await inbox.look();
      onRemoved(removed);
      const chosen = turns.choose(ids, MAX_WAITING / 2);
      const added = await Promise.all(chosen.map(add));
      const refused = chosen.filter((_, i) => added[i] === false).slice(0, JOBS_AT_ONCE);
      if (refused.length > 0) {
        log.warn({ queue: number, inputs }, 'Redis is full, inputs are handled without jobs');
        await Promise.all(refused.map((id) => handler.handle(number, id)));
      }
      if (chosen.length > 0) return 0;
      return intervalMs() * Math.min(MAX_INTERVALS, 1 + inputs / INPUTS_AN_INTERVAL);
    },
    onError: (error) => log.warn({ queue: number, error: messageOf(error) }, 'inbox could not be read'),
    backoff: BACKOFF,
  });
  moving.start();
  return {
    async stop() {
      await within(moving.stop(), STOP_WITHIN_MS);
      await within(queue.close(), STOP_WITHIN_MS);
    },
  };
}
