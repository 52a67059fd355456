/*
 * What agents and controllers meet over in Redis: names of lanes and keys, the reply and the flow settings.
 *
 *   lane    a queue; a node always hashes to the same lane, and order in it does not matter
 *   reply   `{round, mark}` per epoch, in one hash per node: all seqs up to `mark` are committed in Postgres
 *   flow    how agents shall send: how many lanes there are, how much may be unacknowledged, which versions are read
 *
 * Replies and flow settings are written by controllers only and expire; an agent may read them and add jobs, nothing else.
 */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { type Parsed, parse } from './record.ts';

/** The name of the queue in each lane; the lane is in the prefix. */
export const QUEUE_NAME = 'evidence';

/** The prefix of a lane's keys. The braces are a hash tag: all keys of a lane live on one shard of a Redis Cluster. */
export const queuePrefix = (cluster: string, lane: number): string => `{plegwatch-${cluster}-${lane}}`;

/** The hash with the replies to a node: one field per epoch, its value a {@link Reply} as JSON. */
export const replyKey = (cluster: string, node: string): string => `plegwatch-acks:{${cluster}}:node:${node}`;

/** The key with a cluster's {@link Flow} as JSON. */
export const flowKey = (cluster: string): string => `plegwatch-acks:{${cluster}}:flow`;

/** How long replies and flow settings live without being written again, in seconds. */
export const REPLY_TTL_S = 3600;
export const FLOW_TTL_S = 120;

export function queueOf(node: string, lanes: number): number {
  return createHash('sha256').update(node).digest().readUInt32BE(0) % lanes;
}

const position = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2_147_483_646));

// A newer controller may say more: what is not known here is left out.
const ReplySchema = v.object({
  /** The highest round of this epoch that the store has seen. */
  ackGeneration: position,
  /** The contiguous acknowledged seq: everything from 1 to here is committed, or declared lost. */
  ackedSeq: position,
});
export type Reply = v.InferOutput<typeof ReplySchema>;

const FlowSchema = v.object({
  queues: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1024)),
  /** Bytes of encoded batches that one agent may have unacknowledged. 0 stops it. */
  window: v.pipe(v.number(), v.integer(), v.minValue(0)),
  /** The envelope versions that the controllers read. */
  accepts: v.pipe(v.array(v.number()), v.maxLength(16)),
});
export type Flow = v.InferOutput<typeof FlowSchema>;

/** Reads a reply from Redis, which may hold anything. */
export const parseReply = (json: string): Parsed<Reply> => parseJson(ReplySchema, json);

/** Reads the flow settings from Redis, which may hold anything. */
export const parseFlow = (json: string): Parsed<Flow> => parseJson(FlowSchema, json);

function parseJson<S extends v.GenericSchema>(schema: S, json: string): Parsed<v.InferOutput<S>> {
  try {
    return parse(schema, JSON.parse(json));
  } catch (error) {
    return { ok: false, problem: String(error).slice(0, 300) };
  }
}
