/*
 * Batches for tests, and a sender that adds them to the queues as an agent does.
 */

import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { type Batch, batchId, encodeBatch } from '../../src/protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../src/protocol/record.ts';
import {
  type AckReply,
  ackReplyKey,
  parseAckReply,
  QUEUE_NAME,
  queueOf,
  queuePrefix,
} from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { hexId } from './records.ts';

export const CLUSTER = 'test';

/** An incarnation of an agent that started `agoMs` ago and whose clock is right. */
export function agentIncarnation(node: string, no = 1, agoMs = 60_000) {
  const epoch = randomUUID();
  const startedUs = (Date.now() - agoMs) * 1000;
  return {
    node,
    epoch,
    /** A batch of these records, the first of which has seq `first`. */
    batch(first: number, records: readonly EvidenceRecord[], more: Partial<Batch> = {}): Batch {
      const mono0 = Date.now() * 1000 - startedUs;
      return {
        v: 1,
        cluster: CLUSTER,
        node,
        nodeUid: `uid-of-${node}`,
        bootId: 'boot-1',
        epoch,
        startedMono: startedUs,
        incarnation: no,
        prev: null,
        held: [{ epoch, incarnation: no, last: first + records.length - 1 }],
        ackGeneration: 1,
        context: {
          no: 1,
          runtime: { name: 'containerd', version: '2.1.4' },
          kubelet: 'v1.36.2',
          agent: '0.1.0',
          settings: { relistPeriod: 5e6, overdueAfter: 2e6, missedAfter: 30e6, lateAfter: 1e6 },
        },
        first,
        last: first + records.length - 1,
        oldestSeq: 1,
        lost: [],
        mono0,
        wall0: startedUs + mono0,
        objects: [
          ...new Set(
            records.flatMap((r) => ('containerId' in r && r.containerId !== null ? [r.containerId] : [])),
          ),
        ].map(objectOf),
        records,
        ...more,
      };
    },
  };
}
export type BatchIncarnation = ReturnType<typeof agentIncarnation>;

export const objectOf = (id: string): ContainerIdentity => ({
  id,
  sandbox: hexId(0xabc),
  isSandbox: false,
  podUid: 'uid-1',
  namespace: 'shop',
  pod: 'cart-7',
  container: 'app',
  attempt: 2,
});

export interface Sender {
  readonly redis: RedisClient;
  send(batch: Batch, jobId?: string): Promise<void>;
  /** Adds a job with any data to a queue. */
  sendData(queue: number, data: unknown, jobId: string): Promise<void>;
  reply(incarnation: BatchIncarnation): Promise<AckReply | null>;
  /** Jobs in all queues, in any state. */
  left(): Promise<number>;
  close(): Promise<void>;
}

export function createSender(redisUrl: string, queueCount: number): Sender {
  // Errors of this connection are expected: tests stop Redis.
  const redis = connectRedis(
    { redisUrl },
    {
      maxRetry: millis(30_000),
      onError: () => undefined,
      patient: true,
    },
  );
  const queues = Array.from(
    { length: queueCount },
    (_, queue) =>
      new Queue(QUEUE_NAME, {
        connection: redis,
        prefix: queuePrefix(CLUSTER, queue),
        skipMetasUpdate: true,
      }),
  );
  const add = async (queueNo: number, data: unknown, jobId: string) => {
    const queue = queues[queueNo];
    if (queue === undefined) throw new Error(`there is no queue ${queueNo}`);
    await queue.add('batch', data, { jobId, removeOnComplete: true, removeOnFail: true });
  };
  return {
    redis,
    async send(batch, jobId = batchId(batch)) {
      await add(queueOf(batch.node, queueCount), await encodeBatch(batch), jobId);
    },
    sendData: add,
    async reply({ node, epoch }) {
      const json = await redis.hget(ackReplyKey(CLUSTER, node), epoch);
      if (json === null) return null;
      const reply = parseAckReply(json);
      if (!reply.ok) throw new Error(reply.error);
      return reply.value;
    },
    async left() {
      const counts = await Promise.all(
        queues.map((queue) => queue.getJobCounts('wait', 'active', 'delayed', 'failed', 'completed')),
      );
      return counts.flatMap((one) => Object.values(one)).reduce((sum, n) => sum + n, 0);
    },
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
      redis.disconnect();
    },
  };
}
