/*
 * Signs of life: what agents show on which nothing happens. Each agent has one in the signs of its queue, which a controller takes and applies
 * together with others, without a job and without an answer.
 *
 *   taken ── the latest of each node ──► applied
 *     └ what cannot be applied now is dropped: the next one follows within a minute. While Postgres does not answer none is taken, and those that
 *       are too long are deleted all the same: they may fill Redis.
 *
 * A writer may write anything there, and as much of it as Redis holds. So signs are small and without evidence, few are drawn at a time
 * and by chance, and none keeps those of another queue waiting.
 */
import { doneOrAborted } from '../../platform/stopSignal.ts';
import { MAX_ID_BYTES, MAX_SIGN_BYTES, signsKey } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { redisScript } from '../../redis/scripts.ts';
import { listOf, type Removal, removalsIn, SHOWN } from './inbox.ts';
import type { ReadInput } from './inputHandler.ts';

/** How many are taken of a queue at a time, at most. */
const MAX_TAKEN = 64;
/** How often they are taken, in milliseconds: of all queues at the same time, so that they are committed together. */
const INTERVAL_MS = 1_000;
const untilNext = (): number => INTERVAL_MS - (performance.now() % INTERVAL_MS);

/** KEYS[1] the signs of a queue, ARGV[1] 1 if they may be taken. A sign that is too long is deleted unread. */
const take = redisScript(`
local signs, removed = {}, {}
for _ = 1, ${MAX_TAKEN} do
  local name = redis.call('HRANDFIELD', KEYS[1])
  if not name then break end
  local bytes = redis.call('HSTRLEN', KEYS[1], name)
  local isSign = #name <= ${MAX_ID_BYTES} and bytes <= ${MAX_SIGN_BYTES}
  if not isSign then
    removed[#removed + 1] = string.sub(name, 1, ${SHOWN})
    removed[#removed + 1] = #name + bytes
  elseif ARGV[1] == '1' then
    signs[#signs + 1] = { name, redis.call('HGET', KEYS[1], name) }
  end
  if not isSign or ARGV[1] == '1' then redis.call('HDEL', KEYS[1], name) end
end
return { signs, removed }
`);

export interface SignTakerOptions {
  readonly cluster: string;
  readonly queue: number;
  readonly redis: RedisClient;
  /** Reads a sign; null for what is none, which is dealt with then. */
  readonly read: (queue: number, id: string, sign: string) => Promise<ReadInput | null>;
  /** Applies what a sign says. Must not throw. */
  readonly apply: (sign: ReadInput) => Promise<void>;
  /** Whether Postgres answered lately. */
  readonly isStoreAvailable: () => boolean;
  readonly onRemoved: (removed: readonly Removal[]) => void;
}

/** Takes the signs of a queue and applies them. Returns how long to wait for more, in milliseconds. Throws if Redis is unavailable. */
export async function takeSigns(
  { cluster, queue, redis, read, apply, isStoreAvailable, onRemoved }: SignTakerOptions,
  signal: AbortSignal,
): Promise<number> {
  const [taken, refused] = listOf(
    await take(redis, [signsKey(cluster, queue)], isStoreAvailable() ? '1' : '0'),
  );
  const signs = listOf(taken).map((each) => listOf(each).map(String));
  const removed = removalsIn('bad_sign', queue, listOf(refused));
  onRemoved(removed);
  const work = Promise.all(signs.map(([id = '', sign = '']) => read(queue, id, sign))).then((found) =>
    Promise.all(latestOf(found).map(apply)),
  );
  await doneOrAborted(work, signal);
  return signs.length + removed.length === MAX_TAKEN ? 0 : untilNext();
}

/** A node has one agent: more than one sign is of an agent before it, or made up. */
function latestOf(signs: readonly (ReadInput | null)[]): ReadInput[] {
  const latest = new Map<string, ReadInput>();
  for (const sign of signs) {
    if (sign === null) continue;
    const { node, wall0 } = sign.envelope;
    const other = latest.get(node);
    if (other === undefined || other.envelope.wall0 < wall0) latest.set(node, sign);
  }
  return [...latest.values()];
}
