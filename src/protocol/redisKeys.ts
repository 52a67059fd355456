/*
 * What agents and controllers share in Redis.
 *
 *   queue           carries batches; all batches of a node go to the same queue, and their order in it does not matter
 *   ack reply       the answer to a node's batches, one per epoch: every seq up to `ackedSeq` is committed in Postgres
 *   flow settings   how agents may send: the number of queues, the window, the envelope versions that are accepted
 *
 * Only controllers write ack replies and flow settings, both with an expiry. Agents may read them and add jobs, nothing else.
 */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { int4, type Parsed, parseJson } from './validation.ts';

/** The BullMQ name of every queue; they differ by {@link queuePrefix}. */
export const QUEUE_NAME = 'evidence';

/**
 * The BullMQ prefix of a queue, or of all queues of a cluster as a pattern. The braces are a hash tag: they keep all keys of a queue on
 * one shard of a Redis Cluster. No name of a cluster has a colon, so the pattern of one never matches a key of another.
 */
export const queuePrefix = (cluster: string, queue: number | '*'): string =>
  `${queuesHead(cluster)}${queue}}`;

/** No database has more queues, so no key of a queue has a higher number than this less one. */
export const MAX_QUEUES = 1_024;

/** What the keys of every queue of a cluster begin with, before the number of the queue. */
export const queuesHead = (cluster: string): string => `{plegwatch:${cluster}:`;

/** The number of the queue whose keys begin with this; -1 where it is that of no queue. */
export function queueNumber(queueKey: string): number {
  return Number(/:(\d+)\}:[^:]*$/.exec(queueKey)?.[1] ?? -1);
}

/** The number of the queue, from 0, that a node's batches go to. */
export function queueOf(node: string, queues: number): number {
  return createHash('sha256').update(node).digest().readUInt32BE(0) % queues;
}

/** The key of the hash with a node's ack replies: one field per epoch, an {@link AckReply} as JSON. */
export const ackReplyKey = (cluster: string, node: string): string =>
  `plegwatch-acks:{${cluster}}:node:${node}`;

/** The key of a cluster's {@link FlowSettings} as JSON. */
export const flowSettingsKey = (cluster: string): string => `plegwatch-acks:{${cluster}}:flow`;

/**
 * The longest value that agents read. Flow settings have 500 bytes at most, ack replies and confirmations 250: the rest is for the fields
 * of a newer controller.
 */
export const MAX_VALUE_BYTES = 4 * 1024;

/** After how many seconds the keys expire when they are not written again. */
export const ACK_REPLIES_TTL_S = 3600;
export const FLOW_SETTINGS_TTL_S = 120;

// A newer controller may send more fields: they are dropped.
const AckReplySchema = v.object({
  /** The highest ack generation of this epoch that the store has seen. */
  ackGeneration: int4,
  /** Every seq from 1 to this one is committed or declared lost. */
  ackedSeq: int4,
  /** The controller's signature; absent if it has no key. */
  sig: v.optional(v.pipe(v.string(), v.maxLength(100))),
});
export type AckReply = v.InferOutput<typeof AckReplySchema>;

const FlowSettingsSchema = v.object({
  queues: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_QUEUES)),
  /** How many bytes of encoded batches one agent may have unacknowledged. 0 stops it. */
  window: v.pipe(v.number(), v.integer(), v.minValue(0)),
  accepts: v.pipe(v.array(v.number()), v.maxLength(16)),
});
export type FlowSettings = v.InferOutput<typeof FlowSettingsSchema>;

export const parseAckReply = (json: string): Parsed<AckReply> => parseJson(AckReplySchema, json);

export const parseFlowSettings = (json: string): Parsed<FlowSettings> => parseJson(FlowSettingsSchema, json);
