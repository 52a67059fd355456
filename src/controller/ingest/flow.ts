/*
 * Flow settings: how agents are to send, published to all of them in one key that expires. Whoever publishes them also sees there
 * whether another controller does.
 */
import { randomUUID } from 'node:crypto';
import { messageOf } from '../../platform/errors.ts';
import { ACCEPTED_VERSIONS } from '../../protocol/batch.ts';
import { FLOW_SETTINGS_TTL_S, type FlowSettings, flowSettingsKey } from '../../protocol/redisKeys.ts';
import type { RedisClient } from '../../redis/client.ts';
import { redisScript } from '../../redis/scripts.ts';

/** What all agents of a cluster together may have unacknowledged in Redis, but at most this share of its memory. */
const BUDGET_BYTES = 128 * 1024 * 1024;
const BUDGET_SHARE = 0.5;
const MIN_WINDOW = 16 * 1024;
const MAX_WINDOW = 1024 * 1024;

/** The share of one agent. `maxMemory`: what Redis may hold at most; null if that is unlimited or unknown. */
export function windowOf(nodes: number, maxMemory: number | null): number {
  const budget = maxMemory === null ? BUDGET_BYTES : Math.min(BUDGET_BYTES, maxMemory * BUDGET_SHARE);
  return Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, Math.floor(budget / Math.max(1, nodes))));
}

/**
 * KEYS[1] the flow settings; ARGV these as JSON, the id of a controller that writes reports or '', 1 if it has published before, seconds to live.
 * Whose they are is kept from what is there by a controller that writes no reports. Returns 1 if another controller that writes them has published.
 */
const publishFlow = redisScript(`
local ok, there = pcall(cjson.decode, redis.call('GET', KEYS[1]) or '')
if not ok or type(there) ~= 'table' then there = {} end
local controller = type(there.controller) == 'string' and there.controller or nil
local flow, isContested = cjson.decode(ARGV[1]), false
if ARGV[2] == '' then
  flow.controller, flow.contested = controller, there.contested == true
else
  isContested = ARGV[3] == '1' and controller ~= nil and controller ~= ARGV[2]
  flow.controller, flow.contested = ARGV[2], isContested
end
redis.call('SET', KEYS[1], cjson.encode(flow), 'EX', ARGV[4])
return isContested and 1 or 0
`);

export interface FlowPublisherOptions {
  readonly redis: RedisClient;
  readonly cluster: string;
  /** Whether this controller writes reports at present: only one of a cluster may. */
  readonly writesReports: () => boolean;
}

export class FlowPublisher {
  readonly #options: FlowPublisherOptions;
  readonly #id = randomUUID();
  #hasPublished = false;

  constructor(options: FlowPublisherOptions) {
    this.#options = options;
  }

  /** Returns whether another controller that writes reports has published since this one last did. Before its first time, it was whoever ran before. */
  async publish(queues: number, nodes: number): Promise<boolean> {
    const { redis, cluster } = this.#options;
    const window = windowOf(nodes, await readMaxMemory(redis));
    const flow: FlowSettings = { queues, window, accepts: [...ACCEPTED_VERSIONS] };
    const writesReports = this.#options.writesReports();
    const who = [writesReports ? this.#id : '', this.#hasPublished ? 1 : 0];
    const values = [JSON.stringify(flow), ...who, FLOW_SETTINGS_TTL_S];
    const isContested = await publishFlow(redis, flowSettingsKey(cluster), ...values);
    this.#hasPublished = writesReports;
    return isContested === 1;
  }
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
