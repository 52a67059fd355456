/*
 * The time in which an agent may hand over its records at the end.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { Shipper } from '../../src/agent/ship/shipper.ts';
import type { Epoch } from '../../src/agent/spool/epoch.ts';
import { createLogger } from '../../src/platform/log.ts';
import { ACCEPTED_VERSIONS } from '../../src/protocol/batch.ts';
import { ackReplyKey, flowSettingsKey, inboxKey } from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { needs } from '../support/needs.ts';
import { SpoolBed, write } from '../support/spoolBed.ts';
import { waitFor } from '../support/waitFor.ts';

const CLUSTER = 'prod';
const NODE = 'node-1';

let redis: LocalRedis;
let client: RedisClient;

needs('redis-server')('an agent that ends', () => {
  const bed = new SpoolBed();

  beforeAll(async () => {
    redis = await startRedis({ clusters: [CLUSTER] });
    client = connectRedis(
      { redisUrl: redis.url },
      { maxRetry: millis(100), onError: () => undefined, patient: true },
    );
  });
  afterAll(async () => {
    client?.disconnect();
    await redis?.stop();
  });

  test('delivers its records to a Redis that comes back within its hand-over time', async () => {
    const spool = await bed.open();
    await write(spool, 1, 3);
    await publishFlow();
    const shipper = ship();
    await waitFor('it ships', () => shipper.error === null);
    await redis.kill();
    await waitFor('Redis is away', () => shipper.error !== null);
    const stopped = shipper.stop(240_000);
    await redis.restart();
    await publishFlow();
    await waitFor('the acknowledgement', async () => {
      await acknowledge(spool.current);
      return spool.current.isAcknowledged;
    });
    await stopped;
    expect(shipper.unacknowledged).toBe(0);

    function ship(): Shipper {
      return new Shipper({
        redis: { redisUrl: redis.urlOf('agent', CLUSTER) },
        cluster: CLUSTER,
        node: NODE,
        spool,
        intervals: {
          intervalAckGeneration: millis(3_600_000),
          intervalRetiredEpochs: millis(3_600_000),
          intervalResend: millis(10_000),
          intervalIdle: millis(15_000),
          intervalRedisRetry: millis(100),
        },
        log: createLogger('fatal', 'test'),
      });
    }
  });
});

async function publishFlow(): Promise<void> {
  const flow = { queues: 1, window: 1024 * 1024, accepts: ACCEPTED_VERSIONS };
  await client.set(flowSettingsKey(CLUSTER), JSON.stringify(flow));
}

/** Answers the latest probe of an epoch, if there is one. */
async function acknowledge({ meta, lastSeq }: Epoch): Promise<void> {
  const ids = (await client.hkeys(inboxKey(CLUSTER, 0))).filter((id) => id.includes(meta.epoch));
  const asked = ids.flatMap((id) => /\.r(\d+)\./.exec(id)?.[1] ?? []).map(Number);
  const reply = { ackGeneration: Math.max(0, ...asked), ackedSeq: lastSeq };
  await client.hset(ackReplyKey(CLUSTER, NODE), meta.epoch, JSON.stringify(reply));
}
