/*
 * Flow settings: how agents are to send, published to all of them in one key that expires.
 */
import { messageOf } from '../../platform/errors.ts';
import { ACCEPTED_VERSIONS } from '../../protocol/batch.ts';
import { FLOW_SETTINGS_TTL_S, type FlowSettings, flowSettingsKey } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';

/** The bytes that all agents of a cluster together may have unacknowledged in Redis, but at most this share of its memory. */
const BUDGET_BYTES = 128 * 1024 * 1024;
const BUDGET_SHARE = 0.5;
const MIN_WINDOW = 16 * 1024;
const MAX_WINDOW = 1024 * 1024;

/** The share of one agent. `maxMemory`: what Redis may hold at most; null if that is unlimited or unknown. */
export function windowOf(nodes: number, maxMemory: number | null): number {
  const budget = maxMemory === null ? BUDGET_BYTES : Math.min(BUDGET_BYTES, maxMemory * BUDGET_SHARE);
  return Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, Math.floor(budget / Math.max(1, nodes))));
}

export async function publishFlow(
  redis: RedisClient,
  cluster: string,
  { queues, nodes }: { readonly queues: number; readonly nodes: number },
): Promise<void> {
  const window = windowOf(nodes, await readMaxMemory(redis));
  const flow: FlowSettings = { queues, window, accepts: [...ACCEPTED_VERSIONS] };
  await redis.set(flowSettingsKey(cluster), JSON.stringify(flow), 'EX', FLOW_SETTINGS_TTL_S);
}

/** In a Redis Cluster one node is asked, because its masters are alike. Null if there is no limit or we may not ask. */
async function readMaxMemory(redis: RedisClient): Promise<number | null> {
  const info = await redis.info('memory').catch((error: unknown) => {
    if (/^(NOPERM|ERR)/.test(messageOf(error))) return '';
    throw error;
  });
  const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0);
  return limit === 0 ? null : limit;
}
