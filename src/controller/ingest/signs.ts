/*
 * Signs of life: what agents show on which nothing happens. Each agent has one in the signs of its queue, which a controller takes and applies
 * together with others, without a job and without an answer.
 *
 *   taken ── applied
 *     │ └──► Postgres is unavailable: waits here, and no more are taken meanwhile
 *     └────► the node is locked, or what it says is refused: dropped, the next one follows within a minute
 *
 * A sign is deleted when it is taken. If the controller dies then, its agents look as if they had been silent for a minute longer.
 */
import { Backoff } from '../../platform/backoff.ts';
import { sleep } from '../../platform/sleep.ts';
import { MAX_ID_BYTES, MAX_SIGN_BYTES, signsKey } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { redisScript } from '../../redis/scripts.ts';
import { listOf } from './inbox.ts';

/** How many are taken of a queue at a time, at most. */
const MAX_TAKEN = 64;
/** How often they are taken. */
export const SIGNS_INTERVAL_MS = 1_000;
const BACKOFF = { firstMs: 250, maxMs: 4_000 };

/** KEYS[1] the signs of a queue. Whoever may write there may have written anything: what is too long is deleted unread. */
const take = redisScript(`
local signs, refused = {}, 0
for _ = 1, ${MAX_TAKEN} do
  local name = redis.call('HRANDFIELD', KEYS[1])
  if not name then break end
  if #name > ${MAX_ID_BYTES} or redis.call('HSTRLEN', KEYS[1], name) > ${MAX_SIGN_BYTES} then
    refused = refused + 1
  else
    signs[#signs + 1] = redis.call('HGET', KEYS[1], name)
  end
  redis.call('HDEL', KEYS[1], name)
end
return { signs, refused }
`);

export interface SignTakerOptions {
  readonly cluster: string;
  readonly queue: number;
  readonly redis: RedisClient;
  /** Applies what a sign says. Returns false if Postgres is unavailable. Must not throw. */
  readonly apply: (queue: number, sign: string) => Promise<boolean>;
  readonly onRefused: (queue: number, signs: number) => void;
  readonly signal: AbortSignal;
}

/** Takes the signs of a queue and applies them. Returns how long to wait for more, in milliseconds. Throws if Redis is unavailable. */
export async function takeSigns({
  cluster,
  queue,
  redis,
  apply,
  onRefused,
  signal,
}: SignTakerOptions): Promise<number> {
  const [taken, refused] = listOf(await take(redis, [signsKey(cluster, queue)]));
  const signs = listOf(taken).map(String);
  if (Number(refused) > 0) onRefused(queue, Number(refused));
  await Promise.all(signs.map((sign) => untilAvailable(signal, () => apply(queue, sign))));
  return signs.length + Number(refused) === MAX_TAKEN ? 0 : SIGNS_INTERVAL_MS;
}

async function untilAvailable(signal: AbortSignal, work: () => Promise<boolean>): Promise<void> {
  const backoff = new Backoff(BACKOFF);
  while (!(await work()) && !signal.aborted) await sleep(backoff.next(), signal);
}
