/*
 * What controllers publish to agents, on a real Redis with the rights of a controller: replies and flow settings.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { FlowPublisher } from '../../src/controller/ingest/flow.ts';
import { publishReply } from '../../src/controller/ingest/replies.ts';
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

needs('redis-server')('what a controller publishes', () => {
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
        ...{ kind: 'committed', stored: 0, duplicate: 0, unstorable: [], overQuota: 0 },
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

  /** Which run wrote the flow settings, and whether it was contested. */
  async function published(): Promise<{ controller: string | undefined; contested: boolean | undefined }> {
    const flow = parseFlowSettings((await admin.get(flowSettingsKey(CLUSTER))) ?? '');
    if (!flow.ok) throw new Error(flow.error);
    const { controller, contested } = flow.value;
    return { controller, contested };
  }

  it('a follower that publishes at the same time as a new leader does not bring back the old one', async () => {
    const publisher = (writesReports: boolean) =>
      new FlowPublisher({ redis, cluster: CLUSTER, writesReports: () => writesReports });
    const [old, leader, follower] = [publisher(true), publisher(true), publisher(false)];
    await old.publish(2, 1);
    const before = await published();
    // On one connection each command of the first goes before that of the second.
    await Promise.all([leader.publish(2, 1), follower.publish(2, 1)]);
    const after = await published();
    expect(after.controller).not.toBe(before.controller);
    await follower.publish(2, 1);
    expect(await published()).toEqual(after);
    await leader.publish(2, 1);
    expect(await published()).toEqual(after);
  });

  it('two leaders that publish at the same time both learn of each other', async () => {
    const [one, other] = [1, 2].map(
      () => new FlowPublisher({ redis, cluster: CLUSTER, writesReports: () => true }),
    );
    await one?.publish(2, 1);
    await other?.publish(2, 1);
    expect(await Promise.all([one?.publish(2, 1), other?.publish(2, 1)])).toEqual([true, true]);
    expect((await published()).contested).toBe(true);
  });
});
