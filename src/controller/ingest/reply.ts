/*
 * Replies: what is committed, told to the agent over Redis.
 *
 * Two controllers may commit batches of one node and publish in the other order; a script keeps the later reply. Within a
 * round marks only rise, and a newer round replaces absolutely: agents read replies by the same rule. Something else under
 * the key, which only a stranger can have put there, goes: neither side could ever say or read a reply again.
 */

import type { RedisClient } from '../../platform/redis.ts';
import { ACK_REPLIES_TTL_S, type AckReply, ackReplyKey } from '../../protocol/keys.ts';

export interface Replies {
  /** Tells a reply and forgets those of closed epochs. Throws when Redis is away. */
  publish(node: string, epoch: string, reply: AckReply, closed: readonly string[]): Promise<void>;
}

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

export function createReplies(redis: RedisClient, cluster: string): Replies {
  return {
    async publish(node, epoch, { ackGeneration, ackedSeq }, closed) {
      const key = ackReplyKey(cluster, node);
      await redis.eval(PUBLISH, 1, key, epoch, ackGeneration, ackedSeq, ACK_REPLIES_TTL_S, ...closed);
    },
  };
}
