/*
 * Flow settings: how agents shall send, told to all of them in one key that expires.
 */
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import { ACCEPTED_VERSIONS } from '../../protocol/batch.ts';
import { FLOW_SETTINGS_TTL_S, type FlowSettings, flowSettingsKey } from '../../protocol/keys.ts';

/** What all agents of a cluster together may have unacknowledged in Redis, and at most which share of its memory. */
const BUDGET_BYTES = 128 * 1024 * 1024;
const BUDGET_SHARE = 0.5;
const MIN_WINDOW = 16 * 1024;
const MAX_WINDOW = 1024 * 1024;

/** The share of one agent; `memory` is what Redis may hold at most, null where that is not known. */
export function windowOf(nodes: number, memory: number | null): number {
  const budget = memory === null ? BUDGET_BYTES : Math.min(BUDGET_BYTES, memory * BUDGET_SHARE);
  return Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, Math.floor(budget / Math.max(1, nodes))));
}

export async function publishFlow(
  redis: RedisClient,
  cluster: string,
  lanes: number,
  nodes: number,
): Promise<void> {
  const window = windowOf(nodes, await memoryOf(redis));
  const flow: FlowSettings = { queues: lanes, window, accepts: [...ACCEPTED_VERSIONS] };
  await redis.set(flowSettingsKey(cluster), JSON.stringify(flow), 'EX', FLOW_SETTINGS_TTL_S);
}

/** Of a cluster one node is asked: its masters are alike. Null where there is no limit, or it is not told to us. */
async function memoryOf(redis: RedisClient): Promise<number | null> {
  const said = await redis.info('memory').catch((error: unknown) => {
    if (/^(NOPERM|ERR)/.test(messageOf(error))) return '';
    throw error;
  });
  const limit = Number(/^maxmemory:(\d+)/m.exec(said)?.[1] ?? 0);
  return limit === 0 ? null : limit;
}
