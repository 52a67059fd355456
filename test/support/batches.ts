/*
 * Batches for tests, and a sender that adds them to the inboxes as an agent does.
 */

import { randomUUID } from 'node:crypto';
import { type Batch, batchId, encodeBatch } from '../../src/protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../src/protocol/record.ts';
import {
  type AckReply,
  ackReplyKey,
  inboxKey,
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
export const agentIncarnation = (node: string, no = 1, agoMs = 60_000) =>
  agentStartedAt(node, no, Date.now() - agoMs);

/** The same, of an agent that started exactly then. */
export function agentStartedAt(node: string, no: number, startedMs: number) {
  const epoch: string = randomUUID();
  const startedUs = startedMs * 1000;
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
export type BatchIncarnation = ReturnType<typeof agentStartedAt>;

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
  send(batch: Batch, id?: string): Promise<void>;
  /** Adds anything to an inbox. */
  sendData(queue: number, data: unknown, id: string): Promise<void>;
  /** Adds any text to an inbox. */
  sendText(queue: number, text: string, id: string): Promise<void>;
  reply(incarnation: BatchIncarnation): Promise<AckReply | null>;
  /** Inputs in all inboxes, and jobs in all queues, in any state. */
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
  const sendText = async (queue: number, text: string, id: string) => {
    await redis.hsetnx(inboxKey(CLUSTER, queue), id.includes('.') ? id : `test.${id}`, text);
  };
  const sendData = (queue: number, data: unknown, id: string) => sendText(queue, JSON.stringify(data), id);
  return {
    redis,
    async send(batch, id = batchId(batch)) {
      await sendData(queueOf(batch.node, queueCount), await encodeBatch(batch), id);
    },
    sendData,
    sendText,
    async reply({ node, epoch }) {
      const json = await redis.hget(ackReplyKey(CLUSTER, node), epoch);
      if (json === null) return null;
      const reply = parseAckReply(json);
      if (!reply.ok) throw new Error(reply.error);
      return reply.value;
    },
    left: () => inputsLeft(redis, queueCount),
    async close() {
      redis.disconnect();
    },
  };
}

/** Inputs in all inboxes, and jobs in the queues that are not done. */
export async function inputsLeft(redis: RedisClient, queues: number, cluster = CLUSTER): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: queues }, async (_, queue) => {
      const key = `${queuePrefix(cluster, queue)}:${QUEUE_NAME}`;
      return [
        await redis.hlen(inboxKey(cluster, queue)),
        await redis.llen(`${key}:wait`),
        await redis.llen(`${key}:active`),
        await redis.zcard(`${key}:delayed`),
      ];
    }),
  );
  return counts.flat().reduce((sum, n) => sum + n, 0);
}
