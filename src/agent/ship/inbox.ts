/*
 * The inbox that this node's batches go to, and the signs of life beside it, which is all that an agent writes in Redis. Which one it is depends
 * on the number of queues in the flow settings.
 */
import { senderId } from '../../protocol/batch.ts';
import { type EnrolmentData, enrolmentId } from '../../protocol/enrolment.ts';
import { inboxKey, MAX_SIGN_BYTES, queueOf, signsKey } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { PROCESS_ID, type SealedBatch } from './sealedBatch.ts';

export class Inbox {
  readonly #redis: RedisClient;
  readonly #cluster: string;
  readonly #node: string;
  #key = '';
  #signsKey = '';

  constructor(redis: RedisClient, cluster: string, node: string) {
    this.#redis = redis;
    this.#cluster = cluster;
    this.#node = node;
  }

  /** Before anything is added. */
  select(queues: number): void {
    const queue = queueOf(this.#node, queues);
    this.#key = inboxKey(this.#cluster, queue);
    this.#signsKey = signsKey(this.#cluster, queue);
  }

  /** Adds a batch, unless it is there. When it throws, the batch may have been added all the same. */
  add({ id, data }: SealedBatch): Promise<void> {
    return this.#add(id, data);
  }

  /** Shows with a batch without records that this agent runs. It takes the place of the last such sign, if that is still there. */
  async showLife(sealed: SealedBatch): Promise<void> {
    const sign = JSON.stringify(sealed.data);
    if (sign.length > MAX_SIGN_BYTES) return this.add(sealed);
    await this.#redis.hset(this.#signsKey, `${senderId(this.#node)}.${PROCESS_ID}`, sign);
  }

  addEnrolment(enrol: string): Promise<void> {
    const data: EnrolmentData = { enrol };
    return this.#add(enrolmentId(this.#node, enrol), data);
  }

  async #add(id: string, data: object): Promise<void> {
    await this.#redis.hsetnx(this.#key, id, JSON.stringify(data));
  }
}
