/*
 * Flow settings: how agents shall send, told to all of them in one key that expires.
 */
import { ACCEPTED_VERSIONS } from '../../evidence/batch.ts';
import { FLOW_TTL_S, type Flow, flowKey } from '../../evidence/exchange.ts';
import { millis } from '../../evidence/units.ts';
import { interval } from '../../interval.ts';
import type { RedisClient } from '../../redis.ts';

/** How often the settings are written again; a third of the time they live would do. */
export const FLOW_INTERVAL_MS = interval('FLOW', millis(10_000)) / 1000;

/** What all agents of a cluster together may have unacknowledged in Redis. */
const BUDGET_BYTES = 128 * 1024 * 1024;
const MIN_WINDOW = 16 * 1024;
const MAX_WINDOW = 1024 * 1024;

/** The share of one agent. */
export function windowOf(nodes: number): number {
  return Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, Math.floor(BUDGET_BYTES / Math.max(1, nodes))));
}

export async function publishFlow(
  redis: RedisClient,
  cluster: string,
  lanes: number,
  nodes: number,
): Promise<void> {
  const flow: Flow = { lanes, window: windowOf(nodes), accepts: [...ACCEPTED_VERSIONS] };
  await redis.set(flowKey(cluster), JSON.stringify(flow), 'EX', FLOW_TTL_S);
}
