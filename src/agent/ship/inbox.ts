/*
 * The inbox that this node's batches go to, which is all that an agent writes in Redis. Which one it is depends on the number of queues in
 * the flow settings.
 */
import { type EnrolmentData, enrolmentId } from '../../protocol/enrolment.ts';
import { inboxKey, queueOf } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { SealedBatch } from './sealedBatch.ts';

export class Inbox {
  readonly #redis: RedisClient;
  readonly #cluster: string;
  readonly #node: string;
  #key = '';

  constructor(redis: RedisClient, cluster: string, node: string) {
    this.#redis = redis;
    this.#cluster = cluster;
    this.#node = node;
  }

  /** Before anything is added. */
  select(queues: number): void {
    this.#key = inboxKey(this.#cluster, queueOf(this.#node, queues));
  }

  /** Adds a batch, unless it is there. When it throws, the batch may have been added all the same. */
  add({ id, data }: SealedBatch): Promise<void> {
    return this.#add(id, data);
  }

  addEnrolment(enrol: string): Promise<void> {
    const data: EnrolmentData = { enrol };
    return this.#add(enrolmentId(this.#node, enrol), data);
  }

  async #add(id: string, data: object): Promise<void> {
    await this.#redis.hsetnx(this.#key, id, JSON.stringify(data));
  }
}
