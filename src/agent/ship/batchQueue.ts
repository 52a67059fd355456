/*
 * The queue that this node's batches go to. Which one it is depends on the number of queues in the flow settings.
 */
import { type JobsOptions, Queue } from 'bullmq';
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../protocol/redisKeys.ts';
import type { SealedBatch } from './sealedBatch.ts';

const JOB_OPTIONS: JobsOptions = {
  attempts: 1,
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
};

export interface BatchQueueOptions {
  readonly cluster: string;
  readonly node: string;
  readonly onError: (error: string) => void;
}

export class BatchQueue {
  readonly #options: BatchQueueOptions;
  readonly #redis: RedisClient;
  #queue: Queue | null = null;
  #number: number | null = null;

  constructor(options: BatchQueueOptions, redis: RedisClient) {
    this.#options = options;
    this.#redis = redis;
  }

  async select(queues: number): Promise<void> {
    const { cluster, node, onError } = this.#options;
    const number = queueOf(node, queues);
    if (number === this.#number) return;
    await this.#queue?.close();
    this.#number = number;
    this.#queue = new Queue(QUEUE_NAME, {
      connection: this.#redis,
      prefix: queuePrefix(cluster, number),
      skipMetasUpdate: true,
      skipVersionCheck: true,
    });
    this.#queue.on('error', (error) => onError(messageOf(error)));
  }

  /** Adds a batch. When it throws, the batch may have been added all the same. */
  async add(batch: SealedBatch): Promise<void> {
    await this.#queue?.add('batch', batch.data, { ...JOB_OPTIONS, jobId: batch.id });
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }
}
