/*
 * Which acknowledgements an agent believes, and how it waits for them: a shipper on a real Redis, into which the test writes what a controller
 * would write, and what none would.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { AckReader } from '../../src/agent/ship/ackReader.ts';
import { ControllerKeyFile } from '../../src/agent/ship/controllerKeyFile.ts';
import { Inbox } from '../../src/agent/ship/inbox.ts';
import { Shipper, type ShipperOptions } from '../../src/agent/ship/shipper.ts';
import type { Epoch } from '../../src/agent/spool/epoch.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import { newControllerKeys, publicKeysOf } from '../../src/controller/keys/controllerKeys.ts';
import { createLogger } from '../../src/platform/log.ts';
import { ACCEPTED_VERSIONS } from '../../src/protocol/batch.ts';
import { ENROLMENT_FIELD } from '../../src/protocol/enrolment.ts';
import { ackReplyKey, flowSettingsKey, inboxKey } from '../../src/protocol/redisKeys.ts';
import { ackStatement, newSigningKey, signatureOf } from '../../src/protocol/signature.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { needs } from '../support/needs.ts';
import { SpoolBed, write } from '../support/spoolBed.ts';
import { waitFor } from '../support/waitFor.ts';

const CLUSTER = 'prod';
const NODE = 'node-1';
const INBOX = inboxKey(CLUSTER, 0);
const PATIENT = { maxRetry: millis(100), onError: () => undefined, patient: true };
const MIB = 1024 * 1024;
const HUGE = 16 * MIB;
const FORGED = 2_147_483_646;

let redis: LocalRedis;
let client: RedisClient;
let shipper: Shipper | null = null;

needs('redis-server')('an agent', () => {
  const bed = new SpoolBed(() => ({ sweepInterval: millis(20) }));

  beforeAll(async () => {
    redis = await startRedis({ clusters: [CLUSTER] });
    client = connectRedis({ redisUrl: redis.url }, PATIENT);
  });
  afterEach(async () => {
    await shipper?.stop(0);
    shipper = null;
    await client.flushall();
  });
  afterAll(async () => {
    client?.disconnect();
    await redis?.stop();
  });

  test('refuses an acknowledgement of records that it never wrote, keeps them all, and believes the next plausible one', async () => {
    const spool = await bed.open();
    await write(spool, 1, 20);
    await publishFlow();
    shipper = await ship(spool);
    await reply(spool.current, { ackGeneration: await askedGeneration(spool.current), ackedSeq: FORGED });
    const refusing = await waitFor('the refusal', () => shipper?.ackError ?? undefined);
    expect(refusing).toBe(
      `an acknowledgement up to seq ${FORGED} of epoch ${spool.current.meta.epoch} is not believed: 20 are written`,
    );
    expect(shipper.refusedAcks).toBe(1);
    expect(shipper.unacknowledged).toBe(20);
    expect(await seqsIn(spool)).toBe(20);

    // It has asked again in a newer generation, which the forged reply does not answer.
    await write(spool, 21, 30);
    await reply(spool.current, { ackGeneration: await askedGeneration(spool.current, 2), ackedSeq: 20 });
    await waitFor('the batches after it', async () => (await inputs('.21.30')).length > 0);
    expect(shipper.ackError).toBeNull();
    expect(shipper.unacknowledged).toBe(10);
    expect(shipper.refusedAcks).toBe(1);
  });

  test('believes that the store has more of an earlier epoch than a power cut left on the disk, but not more than can have been lost', async () => {
    const before = await bed.open();
    await write(before, 1, 20);
    await bed.close(before);
    const spool = await bed.open();
    await write(spool, 1, 5);
    const [earlier] = spool.epochs;
    if (earlier === undefined || earlier === spool.current) throw new Error('there is no earlier epoch');
    await publishFlow();
    shipper = await ship(spool);
    await reply(earlier, { ackGeneration: await askedGeneration(earlier), ackedSeq: FORGED });
    await waitFor('the refusal', () => shipper?.refusedAcks === 1);
    expect(earlier.ackedSeq).toBe(0);
    const more = earlier.lastSeq + 7;
    await reply(earlier, { ackGeneration: await askedGeneration(earlier, 2), ackedSeq: more });
    await waitFor('the acknowledgement', () => earlier.isAcknowledged);
    expect(shipper.ackError).toBeNull();
  });

  test('that awaits a reply does nothing but ask for it, while it writes records that it may not send before', async () => {
    const spool = await bed.open();
    await write(spool, 1, 1);
    const passes = vi.spyOn(AckReader.prototype, 'pollFlowSettings');
    shipper = await ship(spool);
    await askedGeneration(spool.current);
    const [done, asked] = [passes.mock.calls.length, await repliesRead()];
    await waitFor('it has asked four times more', async () => {
      await write(spool, spool.current.lastSeq + 1, spool.current.lastSeq + 1);
      return (await repliesRead()) >= asked + 4;
    });
    const made = passes.mock.calls.length - done;
    passes.mockRestore();
    expect(made).toBeLessThanOrEqual((await repliesRead()) - asked + 1);
  });

  test('reads no flow settings of 16 MiB, and follows those that a controller puts in their place', async () => {
    const spool = await bed.open();
    await write(spool, 1, 20);
    await client.setrange(flowSettingsKey(CLUSTER), HUGE - 1, 'x');
    const before = await sentBytes();
    shipper = startShipper(spool);
    await waitFor('it has asked for them', () => shipper?.error?.includes('flow settings'));
    await publishFlow();
    expect(await askedGeneration(spool.current)).toBeGreaterThan(0);
    expect((await sentBytes()) - before).toBeLessThan(MIB);
  });

  test('reads no reply of 16 MiB, neither to its epoch nor beside it, and believes the one that a controller puts in its place', async () => {
    const spool = await bed.open();
    await write(spool, 1, 20);
    const { epoch } = spool.current.meta;
    for (const field of [epoch, 'another', ENROLMENT_FIELD]) await hugeReply(field);
    const before = await sentBytes();
    shipper = await ship(spool);
    const ackGeneration = await askedGeneration(spool.current);
    // It asks for replies until it has one.
    const asked = await repliesRead();
    await waitFor('it asks again', async () => (await repliesRead()) > asked);
    expect(shipper.unacknowledged).toBe(20);
    await reply(spool.current, { ackGeneration, ackedSeq: 20 });
    await waitFor('the acknowledgement', () => shipper?.unacknowledged === 0);
    expect((await sentBytes()) - before).toBeLessThan(MIB);
  });

  test('that has the keys of the controller believes only what it signed for this node, this epoch and this seq', async () => {
    const spool = await bed.open();
    await write(spool, 1, 20);
    const { sign, seal } = newControllerKeys();
    const file = join(bed.dir, 'keys.json');
    writeFileSync(file, JSON.stringify(publicKeysOf({ sign, seal })));
    shipper = await ship(spool, {
      controllerKeys: new ControllerKeyFile(file, createLogger('fatal', 'test')),
    });
    const ackGeneration = await askedGeneration(spool.current);
    const { epoch } = spool.current.meta;
    const us = { cluster: CLUSTER, node: NODE };
    const all = { ackGeneration, ackedSeq: 20 };
    const notSigned = [
      undefined,
      '',
      signatureOf(newSigningKey(), ackStatement(us, epoch, all)),
      signatureOf(sign, ackStatement({ ...us, node: 'node-2' }, epoch, all)),
      signatureOf(sign, ackStatement({ ...us, cluster: 'other' }, epoch, all)),
      signatureOf(sign, ackStatement(us, randomUUID(), all)),
      signatureOf(sign, ackStatement(us, epoch, { ...all, ackedSeq: 19 })),
      signatureOf(sign, ackStatement(us, epoch, { ...all, ackGeneration: ackGeneration + 1 })),
    ];
    for (const [i, sig] of notSigned.entries()) {
      await reply(spool.current, { ...all, sig });
      await waitFor(`refusal ${i}`, () => shipper?.refusedAcks === i + 1);
    }
    expect(shipper.unacknowledged).toBe(20);
    expect(shipper.ackError).toBe('an acknowledgement is not believed: the controller has not signed it');
    await reply(spool.current, { ...all, sig: signatureOf(sign, ackStatement(us, epoch, all)) });
    await waitFor('the acknowledgement', () => shipper?.unacknowledged === 0);
    expect(shipper.ackError).toBeNull();
  });

  test('that lacks the keys of the controller ships on, deletes nothing, and believes what was signed once it has them', async () => {
    const spool = await bed.open();
    await write(spool, 1, 20);
    const keys = newControllerKeys();
    const file = join(bed.dir, 'keys.json');
    // Its window is full after the first batch.
    shipper = await ship(
      spool,
      { controllerKeys: new ControllerKeyFile(file, createLogger('fatal', 'test')) },
      1,
    );
    const { epoch } = spool.current.meta;
    const ackGeneration = await askedGeneration(spool.current);
    const signed = (ackedSeq: number) => {
      const statement = ackStatement({ cluster: CLUSTER, node: NODE }, epoch, { ackGeneration, ackedSeq });
      return { ackGeneration, ackedSeq, sig: signatureOf(keys.sign, statement) };
    };
    await reply(spool.current, signed(0));
    await waitFor('the first batch', async () => (await inputs('.1.20')).length > 0);
    await write(spool, 21, 30);
    await reply(spool.current, signed(20));
    await waitFor('the second batch', async () => (await inputs('.21.30')).length > 0);
    // A stranger's: nothing is deleted for it.
    await reply(spool.current, { ackGeneration, ackedSeq: 30 });
    await write(spool, 31, 40);
    await waitFor('the third batch', async () => (await inputs('.31.40')).length > 0);
    expect(shipper.unacknowledged).toBe(40);
    expect(await seqsIn(spool)).toBe(40);
    // The store has only 20 of them: the others are sent again.
    await client.hdel(INBOX, ...(await inputs('.21.30')));
    await reply(spool.current, signed(20));
    writeFileSync(file, JSON.stringify(publicKeysOf(keys)));
    await waitFor('the acknowledgement', () => shipper?.unacknowledged === 20);
    await waitFor('the second batch again', async () => (await inputs('.21.40')).length > 0);
    await reply(spool.current, signed(40));
    await waitFor('all acknowledgements', () => shipper?.unacknowledged === 0);
    expect(shipper.refusedAcks).toBe(0);
  });
});

needs('redis-server')('an inbox', () => {
  test('has an enrolment once that an agent sends again while the controller is away', async () => {
    const server = await startRedis({ clusters: [CLUSTER] });
    const admin = connectRedis({ redisUrl: server.url }, PATIENT);
    const agent = connectRedis({ redisUrl: server.urlOf('agent', CLUSTER) }, PATIENT);
    try {
      const inbox = new Inbox(agent, CLUSTER, NODE);
      inbox.select(1);
      await inbox.addEnrolment('sealed');
      await inbox.addEnrolment('sealed');
      expect(await admin.hlen(INBOX)).toBe(1);
    } finally {
      agent.disconnect();
      admin.disconnect();
      await server.stop();
    }
  });
});

async function publishFlow(window = MIB): Promise<void> {
  const flow = { queues: 1, window, accepts: ACCEPTED_VERSIONS };
  await client.set(flowSettingsKey(CLUSTER), JSON.stringify(flow));
}

async function ship(spool: Spool, more: Partial<ShipperOptions> = {}, window = MIB): Promise<Shipper> {
  await publishFlow(window);
  return startShipper(spool, more);
}

function startShipper(spool: Spool, more: Partial<ShipperOptions> = {}): Shipper {
  return new Shipper({
    redis: { redisUrl: redis.urlOf('agent', CLUSTER) },
    cluster: CLUSTER,
    node: NODE,
    spool,
    intervals: {
      intervalAckGeneration: millis(300_000),
      intervalRetiredEpochs: millis(3_600_000),
      intervalResend: millis(10_000),
      intervalIdle: millis(15_000),
      intervalRedisRetry: millis(100),
    },
    log: createLogger('fatal', 'test'),
    ...more,
  });
}

/** Made by Redis itself. */
async function hugeReply(field: string): Promise<void> {
  const script = "return redis.call('hset', KEYS[1], ARGV[1], string.rep('x', ARGV[2]))";
  await client.eval(script, 1, ackReplyKey(CLUSTER, NODE), field, HUGE);
}

/** How many bytes Redis has sent to all its clients. */
async function sentBytes(): Promise<number> {
  return Number(/total_net_output_bytes:(\d+)/.exec(await client.info('stats'))?.[1]);
}

/** How often anybody has read from a hash. */
async function repliesRead(): Promise<number> {
  const calls = (await client.info('commandstats')).matchAll(
    /cmdstat_(?:hgetall|hmget|hstrlen):calls=(\d+)/g,
  );
  return [...calls].reduce((sum, [, each]) => sum + Number(each), 0);
}

async function reply(epoch: Epoch, value: object): Promise<void> {
  await client.hset(ackReplyKey(CLUSTER, NODE), epoch.meta.epoch, JSON.stringify(value));
}

/** The ack generation that the agent's probes of an epoch ask in, once it is at least this one. */
function askedGeneration({ meta }: Epoch, atLeast = 1): Promise<number> {
  return waitFor('a probe', async () => {
    const ids = await inputs(meta.epoch);
    const generations = ids.flatMap((id) => /\.r(\d+)\./.exec(id)?.[1] ?? []).map(Number);
    return generations.find((generation) => generation >= atLeast);
  });
}

/** The ids of the inputs that are sent. */
async function inputs(part: string): Promise<string[]> {
  return (await client.hkeys(INBOX)).filter((id) => id.includes(part));
}

async function seqsIn({ current }: Spool): Promise<number> {
  return (await current.read(1, 500, 1024 * 1024)).length;
}
