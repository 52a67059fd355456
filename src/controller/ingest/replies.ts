/*
 * Replies: what is committed, published to the agents over Redis.
 *
 * Two controllers may commit batches of one node and publish in the other order, so a script keeps the later reply: within an ack
 * generation the acked seq only rises, and a newer generation replaces absolutely. Agents read replies by the same rule.
 *
 * Where agents enrol, a controller signs its replies, and keeps no later one that it has not signed. Until it has read its key it publishes
 * none: agents would take an unsigned one for a forgery, and ask again if there is none. Anything else under the key, which only a
 * stranger can have put there, is deleted: it would block every reply.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { messageOf } from '../../platform/errors.ts';
import type { Envelope } from '../../protocol/batch.ts';
import { ACK_REPLIES_TTL_S, type AckReply, ackReplyKey, parseAckReply } from '../../protocol/redisKeys.ts';
import { ackStatement, isSignedBy, signatureOf } from '../../protocol/signature.ts';
import type { RedisClient } from '../../redis/client.ts';
import { redisScript } from '../../redis/scripts.ts';
import type { CommittedBatch } from './commitBatch.ts';

/**
 * KEYS[1] the node's hash; ARGV epoch, ackGeneration, ackedSeq, seconds to live, signature or '', a reply that is not to be kept or '', then
 * closed epochs. Returns the reply that was kept because it is later.
 */
const publish = redisScript(`
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local ackGeneration, ackedSeq = tonumber(ARGV[2]), tonumber(ARGV[3])
local there = redis.call('HGET', KEYS[1], ARGV[1])
local ok, old = pcall(cjson.decode, there or '')
local later = ok and type(old) == 'table'
  and type(old.ackGeneration) == 'number' and type(old.ackedSeq) == 'number' and old.ackGeneration <= 2147483646
  and (old.ackGeneration > ackGeneration or (old.ackGeneration == ackGeneration and old.ackedSeq > ackedSeq))
local kept = later and there ~= ARGV[6]
if not kept then
  local reply = {ackGeneration = ackGeneration, ackedSeq = ackedSeq}
  if ARGV[5] ~= '' then reply.sig = ARGV[5] end
  redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(reply))
end
for i = 7, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return kept and there or ''
`);

export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

export interface ReplyContext {
  readonly redis: RedisClient;
  readonly cluster: string;
  /** The key that signs replies, null while it is not known; null if they are not signed. */
  readonly signKey: (() => KeyObject | null) | null;
}

/** Publishes the reply to a committed batch and deletes those of the epochs that it closed. Throws {@link ReplyError}. */
export async function publishReply(
  { redis, cluster, signKey }: ReplyContext,
  { node, epoch }: Pick<Envelope, 'node' | 'epoch'>,
  { ackGeneration, ackedSeq, closed }: CommittedBatch,
): Promise<void> {
  const key = ackReplyKey(cluster, node);
  const signer = signKey === null ? null : signKey();
  if (signKey !== null && signer === null) return;
  const statementOf = (reply: AckReply) => ackStatement({ cluster, node }, epoch, reply);
  const sig = signer === null ? '' : signatureOf(signer, statementOf({ ackGeneration, ackedSeq }));
  const reply = [epoch, ackGeneration, ackedSeq, ACK_REPLIES_TTL_S, sig];
  try {
    const kept = String(await publish(redis, [key], ...reply, '', ...closed));
    if (kept === '' || signer === null) return;
    const later = parseAckReply(kept);
    const isOurs =
      later.ok && isSignedBy(createPublicKey(signer), statementOf(later.value), later.value.sig ?? '');
    // A stranger wrote a later one: agents would not believe it, and must not have to wait for the next generation.
    if (!isOurs) await publish(redis, [key], ...reply, kept, ...closed);
  } catch (error) {
    const message = `the reply to ${node} could not be published: ${messageOf(error)}`;
    throw new ReplyError(message, { cause: error });
  }
}
