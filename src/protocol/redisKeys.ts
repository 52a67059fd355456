/*
 * The names that agents and controllers share in Redis.
 *
 *   inbox           a hash that agents add batches to, by their ids; all batches of a node go to the same one, and their order does not matter
 *   signs           a hash beside each inbox with a sign of life of each agent: no job is made of it, and no answer is given
 *   queue           a BullMQ queue beside each inbox, which controllers move the batches to: no agent may touch it
 *   ack reply       the answer to a node's batches, one per epoch: every seq up to `ackedSeq` is committed in Postgres
 *   flow settings   how agents may send: the number of queues, the window, the envelope versions that are accepted
 *
 * Only controllers write ack replies and flow settings, both with an expiry. Agents may read them, add a field to an inbox if it is not
 * there, and set a field of signs, nothing else.
 */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { int4, type Parsed, parseJson } from './validation.ts';

/** The BullMQ name of every queue; they differ by {@link queuePrefix}. */
export const QUEUE_NAME = 'evidence';

/**
 * The BullMQ prefix of a queue, or of all queues of a cluster as a pattern. The braces are a hash tag: they keep a queue and its inbox on
 * one shard of a Redis Cluster. No name of a cluster has a colon, so the pattern of one never matches a key of another.
 */
export const queuePrefix = (cluster: string, queue: number | string): string =>
  `{plegwatch:${cluster}:${queue}}`;

/** No database has more queues. So agents can be kept to the inboxes from 0 to 999, each of which a controller looks into. */
export const MAX_QUEUES = 1_000;
/** Patterns of all their numbers. */
const QUEUE_NUMBERS = ['[0-9]', '[0-9][0-9]', '[0-9][0-9][0-9]'];

/** The key of the inbox of a queue: a field for each batch or enrolment, its id with its data as JSON. */
export const inboxKey = (cluster: string, queue: number | string): string =>
  `${queuePrefix(cluster, queue)}:inbox`;

/** Patterns of the keys of all inboxes of a cluster. */
export const inboxKeys = (cluster: string): readonly string[] =>
  QUEUE_NUMBERS.map((number) => inboxKey(cluster, number));

/**
 * The key of the signs of life of a queue: a field for each agent, of a name that nobody else can guess, with its latest sign as JSON. However
 * long no controller takes them, there is one of each agent.
 */
export const signsKey = (cluster: string, queue: number | string): string =>
  `${queuePrefix(cluster, queue)}:signs`;

/** The longest sign as JSON, in bytes. An agent that has more to say of its epochs sends a batch. */
export const MAX_SIGN_BYTES = 4 * 1024;

/** Patterns of the keys of all signs of a cluster. */
export const signsKeys = (cluster: string): readonly string[] =>
  QUEUE_NUMBERS.map((number) => signsKey(cluster, number));

/** The longest id in an inbox, or name of a sign. Those of agents have 150 characters at most. */
export const MAX_ID_BYTES = 256;

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
