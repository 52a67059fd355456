/*
 * The publications of controllers to agents, on a real Redis with the rights of a controller: replies and flow settings.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { publishFlow } from '../../src/controller/ingest/flow.ts';
import { publishReply } from '../../src/controller/ingest/replies.ts';
import { ACCEPTED_VERSIONS } from '../../src/protocol/batch.ts';
import {
  ackReplyKey,
  flowSettingsKey,
  parseAckReply,
  parseFlowSettings,
} from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { needs } from '../support/needs.ts';

needs('redis-server')('a controller that publishes', () => {
  let server: LocalRedis;
  let admin: RedisClient;
  let redis: RedisClient;

  beforeAll(async () => {
    server = await startRedis();
    const connection = { maxRetry: millis(100), onError: () => undefined, patient: true };
    admin = connectRedis({ redisUrl: server.url }, connection);
    redis = connectRedis({ redisUrl: server.urlOf('controller', CLUSTER) }, connection);
  });
  beforeEach(async () => {
    await admin.flushall();
    await admin.script('FLUSH');
    await admin.config('RESETSTAT');
  });
  afterAll(async () => {
    admin?.disconnect();
    redis?.disconnect();
    await server?.stop();
  });

  const callsOf = async (command: string): Promise<number> =>
    Number(
      new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(await admin.info('commandstats'))?.[1] ?? 0,
    );

  it('replies without the text of its script, unless Redis has forgotten that', async () => {
    const one = agentIncarnation('node-a');
    const reply = (ackedSeq: number) =>
      publishReply({ redis, cluster: CLUSTER, signKey: null }, one, {
        ...{ is: 'committed', stored: 0, duplicate: 0, unstorable: [], overQuota: 0 },
        ...{ ackGeneration: 1, ackedSeq, closed: [], unbelieved: [] },
      });
    for (const ackedSeq of [1, 2, 3]) await reply(ackedSeq);
    expect(await callsOf('eval')).toBe(1);
    await admin.script('FLUSH');
    for (const ackedSeq of [4, 5]) await reply(ackedSeq);
    expect(await callsOf('eval')).toBe(2);
    const kept = parseAckReply((await admin.hget(ackReplyKey(CLUSTER, one.node), one.epoch)) ?? '');
    expect(kept).toEqual({ ok: true, value: { ackGeneration: 1, ackedSeq: 5 } });
  });

  it('writes the flow settings without reading them, so that none brings back what another one wrote before', async () => {
    await publishFlow(redis, CLUSTER, { queues: 3, nodes: 1 });
    expect(await callsOf('get')).toBe(0);
    const flow = parseFlowSettings((await admin.get(flowSettingsKey(CLUSTER))) ?? '');
    expect(flow).toEqual({
      ok: true,
      value: { queues: 3, window: 1024 * 1024, accepts: [...ACCEPTED_VERSIONS] },
    });
  });
});
