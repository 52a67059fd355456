/*
 * The inbox of a queue. An input stays in it until what it says is committed; its job in the queue carries only its id.
 *
 * Agents may add a field of any name and length to any inbox of their cluster. Other fields than those of our agents are removed unread: ids that are
 * not ours, and inputs that are too long. Ids are drawn by chance and one at a time: so nobody can bury another's, and a Redis that holds many very
 * long ones copies one at most.
 */
import { messageOf } from '../../platform/errors.ts';
import { invariant } from '../../platform/invariant.ts';
import { MAX_INPUT_BYTES } from '../../protocol/batch.ts';
import {
  inboxKey,
  MAX_ID_BYTES,
  MAX_QUEUES,
  QUEUE_NAME,
  queuePrefix,
  signsKey,
} from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { redisScript } from '../../redis/scripts.ts';

export const REMOVAL_KINDS = ['bad_id', 'oversized', 'bad_sign', 'stray_inbox'] as const;

/** A field that was removed unread. */
export interface Removal {
  readonly kind: (typeof REMOVAL_KINDS)[number];
  readonly queue: number;
  /** How its id begins; of several, that of one. */
  readonly id: string;
  /** Size of the ids and the data; of more than {@link MAX_DRAWN}, an estimate from that many. */
  readonly bytes: number;
}

/** This many jobs at most wait in a queue; none is added while more than half of them do. */
export const MAX_WAITING = 64;
const MAX_DRAWN = 128;
/** How much of an id is shown. */
export const SHOWN = 64;

const LIMITS = `
local function isTooLong(id) return redis.call('HSTRLEN', KEYS[1], id) > ${MAX_INPUT_BYTES} end
`;

/** KEYS[1] the inbox, KEYS[2] the list of waiting jobs; ARGV[1] what keys of jobs begin with, ARGV[2] 1 if jobs do not count. */
const look = redisScript(`${LIMITS}
local ids, removed, seen, known = {}, {}, {}, 0
local inputs = redis.call('HLEN', KEYS[1])
local jobsCount = ARGV[2] == '0'
if inputs == 0 or (jobsCount and redis.call('LLEN', KEYS[2]) > ${MAX_WAITING / 2}) then
  return { known, ids, removed }
end

local function remove(kind, id)
  local bytes = #id + redis.call('HSTRLEN', KEYS[1], id)
  redis.call('HDEL', KEYS[1], id)
  for _, each in ipairs({ kind, string.sub(id, 1, ${SHOWN}), bytes }) do removed[#removed + 1] = each end
end
for _ = 1, math.min(${MAX_DRAWN}, 4 * inputs) do
  local id = redis.call('HRANDFIELD', KEYS[1])
  if not id then break end
  if #id > ${MAX_ID_BYTES} or not string.find(id, '^%w+%.[%w%.-]+$') then
    remove('bad_id', id)
  elseif not seen[id] then
    seen[id] = true
    if isTooLong(id) then
      remove('oversized', id)
    elseif not jobsCount or redis.call('EXISTS', ARGV[1] .. id) == 0 then
      ids[#ids + 1] = id
    else
      known = known + 1
    end
  end
end
return { known, ids, removed }
`);

/** KEYS[1] the inbox, ARGV[1] an id. */
const read = redisScript(`${LIMITS}
return not isTooLong(ARGV[1]) and redis.call('HGET', KEYS[1], ARGV[1])
`);

/** KEYS an inbox that no queue has, and its signs: both are removed. */
const removeStray = redisScript(`
local removed = {}
for _, key in ipairs(KEYS) do
  local fields = redis.pcall('HLEN', key)
  local isHash = type(fields) == 'number'
  local shown, bytes, drawn = '', 0, 0
  while isHash and drawn < math.min(fields, ${MAX_DRAWN}) do
    local id = redis.call('HRANDFIELD', key)
    shown, bytes, drawn = string.sub(id, 1, ${SHOWN}), bytes + #id + redis.call('HSTRLEN', key, id), drawn + 1
    redis.call('HDEL', key, id)
  end
  redis.call('UNLINK', key)
  if fields ~= 0 then
    removed[#removed + 1] = shown
    removed[#removed + 1] = drawn == 0 and 0 or math.floor(bytes * fields / drawn)
  end
end
return removed
`);

export interface InboxAnswer {
  /** How many inputs have a job, of those that were drawn. */
  readonly known: number;
  /** Inputs that have none yet, of those that were drawn. */
  readonly ids: readonly string[];
  readonly removed: readonly Removal[];
}

/** Whether Redis refused to write because its memory is full. */
export const isRedisFull = (error: unknown): boolean => messageOf(error).startsWith('OOM');

export class InboxError extends Error {
  override readonly name = 'InboxError';
}

export class Inbox {
  readonly #redis: RedisClient;
  readonly #queue: number;
  readonly #prefix: string;
  readonly #key: string;

  constructor(redis: RedisClient, cluster: string, queue: number) {
    this.#redis = redis;
    this.#queue = queue;
    this.#prefix = `${queuePrefix(cluster, queue)}:${QUEUE_NAME}:`;
    this.#key = inboxKey(cluster, queue);
  }

  /** Looks for inputs without a job, while the queue has room for jobs; for any input if the jobs of the queue cannot be fetched. */
  async look(isRefused: boolean): Promise<InboxAnswer> {
    const keys = [this.#key, `${this.#prefix}wait`];
    const answer: unknown = await look(this.#redis, keys, this.#prefix, isRefused ? '1' : '0');
    const [known, ids, removed] = listOf(answer);
    return {
      known: Number(known),
      ids: listOf(ids).map(String),
      removed: this.#removalsIn(listOf(removed).map(String)),
    };
  }

  /** Null if it is not there, or became too long meanwhile. Throws {@link InboxError}. */
  async read(id: string): Promise<string | null> {
    const data: unknown = await read(this.#redis, [this.#key], id).catch(failed);
    return typeof data === 'string' ? data : null;
  }

  /** Throws {@link InboxError}. */
  async remove(id: string): Promise<void> {
    await this.#redis.hdel(this.#key, id).catch(failed);
  }

  #removalsIn(list: readonly string[]): Removal[] {
    const removed: Removal[] = [];
    for (let i = 0; i + 2 < list.length; i += 3) {
      const kind = REMOVAL_KINDS.find((each) => each === list[i]);
      invariant(kind, 'an inbox removes what is known');
      removed.push({ kind, queue: this.#queue, id: list[i + 1] ?? '', bytes: Number(list[i + 2]) });
    }
    return removed;
  }
}

/**
 * Removes the inboxes and signs of all queues from this number on, which the database does not have: an earlier one had them, or a stranger made them up.
 * Spools send again what an agent added there.
 */
export async function removeStrayInboxes(
  redis: RedisClient,
  cluster: string,
  queues: number,
): Promise<Removal[]> {
  const numbers = Array.from({ length: MAX_QUEUES - queues }, (_, i) => queues + i);
  const found = await Promise.all(
    numbers.map(async (queue) => {
      const keys = [inboxKey(cluster, queue), signsKey(cluster, queue)];
      return removalsIn('stray_inbox', queue, listOf(await removeStray(redis, keys)));
    }),
  );
  return found.flat();
}

/** `list`: how each id begins, and its bytes. */
export function removalsIn(kind: Removal['kind'], queue: number, list: readonly unknown[]): Removal[] {
  const removed: Removal[] = [];
  for (let i = 0; i + 1 < list.length; i += 2)
    removed.push({ kind, queue, id: String(list[i]), bytes: Number(list[i + 1]) });
  return removed;
}

function failed(error: unknown): never {
  throw new InboxError(`the inbox cannot be used: ${messageOf(error)}`, { cause: error });
}

export function listOf(answer: unknown): unknown[] {
  invariant(Array.isArray(answer), 'the script of an inbox answers lists');
  return answer;
}
