/*
 * The queue that this node's batches go to. Which one it is depends on the number of queues in the flow settings.
 */
import { type JobsOptions, Queue } from 'bullmq';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';
import { type EnrolmentJob, enrolmentId } from '../../protocol/enrolment.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { isUnknownScript, runScriptsByDigest } from '../../redis/scripts.ts';
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
    runScriptsByDigest(redis);
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

  /** Adds a batch, unless the queue has it. When it throws, the batch may have been added all the same. */
  async add(batch: SealedBatch): Promise<void> {
    if (this.#queue === null) return;
    await this.#addTo(this.#queue, 'batch', batch.data, batch.id);
  }

  async addEnrolment(enrol: string): Promise<void> {
    if (this.#queue === null) return;
    const data: EnrolmentJob = { enrol };
    await this.#addTo(this.#queue, 'enrolment', data, enrolmentId(enrol));
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }

  async #addTo(queue: Queue, name: string, data: object, jobId: string): Promise<void> {
    // For a job that is there the script would read it, which agents may not: jobs are the evidence of all nodes.
    if ((await this.#redis.exists(queue.toKey(jobId))) > 0) return;
    try {
      await queue.add(name, data, { ...JOB_OPTIONS, jobId });
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      const message = 'no controller has loaded the script that adds batches yet';
      throw new PlegwatchError('REDIS_REFUSED', message, 'Start a controller.', { cause: error });
    }
  }
}
