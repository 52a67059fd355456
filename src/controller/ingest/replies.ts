/*
 * Replies: what is committed, published to the agents over Redis.
 *
 * Two controllers may commit batches of one node and publish in the other order, so a script keeps the later reply: within an ack
 * generation the acked seq only rises, and a newer generation replaces absolutely. Agents read replies by the same rule. Anything
 * else under the key, which only a stranger can have put there, is deleted: it would block every reply.
 */
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import type { Envelope } from '../../protocol/batch.ts';
import { ACK_REPLIES_TTL_S, ackReplyKey } from '../../protocol/redisKeys.ts';
import type { CommittedBatch } from './commitBatch.ts';

/** KEYS[1] the node's hash; ARGV epoch, ackGeneration, ackedSeq, seconds to live, then closed epochs. */
const PUBLISH = `
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
local ackGeneration, ackedSeq = tonumber(ARGV[2]), tonumber(ARGV[3])
local there = redis.call('HGET', KEYS[1], ARGV[1])
local ok, old = pcall(cjson.decode, there or '')
local later = ok and type(old) == 'table'
  and type(old.ackGeneration) == 'number' and type(old.ackedSeq) == 'number' and old.ackGeneration <= 2147483646
  and (old.ackGeneration > ackGeneration or (old.ackGeneration == ackGeneration and old.ackedSeq > ackedSeq))
if not later then
  redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({ackGeneration = ackGeneration, ackedSeq = ackedSeq}))
end
for i = 5, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[4])
`;

export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** Publishes the reply to a committed batch and deletes those of the epochs that it closed. Throws {@link ReplyError}. */
export async function publishReply(
  { redis, cluster }: { readonly redis: RedisClient; readonly cluster: string },
  { node, epoch }: Envelope,
  { ackGeneration, ackedSeq, closed }: CommittedBatch,
): Promise<void> {
  const key = ackReplyKey(cluster, node);
  try {
    await redis.eval(PUBLISH, 1, key, epoch, ackGeneration, ackedSeq, ACK_REPLIES_TTL_S, ...closed);
  } catch (error) {
    const message = `the reply to ${node} could not be published: ${messageOf(error)}`;
    throw new ReplyError(message, { cause: error });
  }
}
