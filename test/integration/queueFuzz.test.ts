/*
 * Random commands that the agents' Redis user may send, between the batches of eight honest nodes: every honest record arrives in the end, and
 * nothing else changes. One of twenty commands is one that this user may not send, and Redis refuses it.
 *
 * PLEGWATCH_OPERATIONS sets their number and PLEGWATCH_SEED selects them. The fuzzer knows the ids of honest batches, which an agent cannot.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { REMOVAL_KINDS } from '../../src/controller/ingest/inbox.ts';
import { type Batch, batchId, MAX_INPUT_BYTES } from '../../src/protocol/batch.ts';
import {
  ackReplyKey,
  flowSettingsKey,
  inboxKey,
  MAX_QUEUES,
  QUEUE_NAME,
  queueOf,
  queuePrefix,
} from '../../src/protocol/redisKeys.ts';
import { agentIncarnation, CLUSTER, createSender, type Sender } from '../support/batches.ts';
import { hostileInput } from '../support/hostileInputs.ts';
import { pick } from '../support/hostileValues.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_122);
const OPERATIONS = Number(process.env['PLEGWATCH_OPERATIONS'] ?? 4_000);
const QUEUES = 4;
const PER_BATCH = 10;
/** Operations between two batches of each honest node. */
const EVERY = 200;
const FORBIDDEN_SHARE = 0.05;
const WITHIN_MS = 600_000;

let system: System;
let controller: LocalPlegwatch;
/** May do everything. */
let admin: Sender;
/** Sends as an honest agent, and as a stranger: both with the user of agents. */
let agent: Sender;
let stranger: Redis;
let pid: number;
const began = performance.now();
let sent = 0;
let refused = 0;

const honest = Array.from({ length: 8 }, (_, n) => ({
  incarnation: agentIncarnation(`honest-${n}`),
  unacked: [] as Batch[],
}));
const batchIds: string[] = ['node.1'];

async function sendHonest(): Promise<void> {
  for (const { incarnation, unacked } of honest)
    unacked.push(incarnation.batch(sent + 1, events(sent + 1, sent + PER_BATCH)));
  batchIds.push(...honest.flatMap(({ unacked }) => unacked.slice(-1).map(batchId)));
  sent += PER_BATCH;
  await resend();
}

/** Sends every batch again that is not acknowledged, under the same id. */
async function resend(): Promise<void> {
  for (const { incarnation, unacked } of honest) {
    const acked = (await admin.reply(incarnation))?.ackedSeq ?? 0;
    unacked.splice(0, unacked.length, ...unacked.filter(({ last }) => last > acked));
    for (const batch of unacked) await agent.send(batch);
  }
}

function anyId(random: Random): string | Buffer {
  if (random.chance(0.2)) return pick(random, batchIds.slice(-100));
  const n = Math.floor(random.between(0, 1e6));
  const odd = ['', '.', '0', 'wait', 'a:b.c', '\n.x', 'é.1', 'a.', '.a', '-1', 'x'.repeat(257)];
  if (random.chance(0.1)) return random.chance(0.2) ? Buffer.from([0xff, 0x2e, n & 0xff]) : pick(random, odd);
  return random.chance(0.5) ? `flood.${n}` : `s${n}.1`;
}

async function anyValue(random: Random, n: number): Promise<string | Buffer> {
  if (random.chance(0.01)) return Buffer.alloc(MAX_INPUT_BYTES + Math.floor(random.between(-2, 3)), 'x');
  if (random.chance(0.3)) return pick(random, ['', 'x', '{', '{}', '[]', 'null', '\0', '{"enrol":"x"}']);
  return (await hostileInput(random, honest[0]?.incarnation ?? agentIncarnation('honest-0'), n)).text;
}

/** One random command that the agents' user may send. */
async function allowed(random: Random, n: number): Promise<unknown> {
  const node = `honest-${Math.floor(random.between(0, 9))}`;
  if (random.chance(0.1)) {
    const commands: readonly (() => Promise<unknown>)[] = [
      () => stranger.hmget(ackReplyKey(CLUSTER, node), honest[0]?.incarnation.epoch ?? '', 'x'),
      () => stranger.hstrlen(ackReplyKey(CLUSTER, node), honest[0]?.incarnation.epoch ?? ''),
      () => stranger.getrange(flowSettingsKey(CLUSTER), 0, 9),
      () => stranger.call('MULTI').then(() => stranger.call('DISCARD')),
      () => stranger.info('commandstats'),
    ];
    return pick(random, commands)();
  }
  const queue = Math.floor(random.between(0, random.chance(0.05) ? MAX_QUEUES : QUEUES));
  const id = anyId(random);
  // A batch is awaited in its own inbox.
  const at = honest.find(({ unacked }) => unacked.some((batch) => batchId(batch) === id));
  const inbox = inboxKey(CLUSTER, at === undefined ? queue : queueOf(at.incarnation.node, QUEUES));
  return stranger.hsetnx(inbox, id, await anyValue(random, n));
}

/** One random command that it may not send. */
function forbidden(random: Random): Promise<unknown> {
  const queue = Math.floor(random.between(0, QUEUES));
  const inbox = inboxKey(CLUSTER, queue);
  const id = pick(random, batchIds);
  const job = `${queuePrefix(CLUSTER, queue)}:${QUEUE_NAME}:${pick(random, [id, 'wait', 'meta', 'active'])}`;
  const reply = ackReplyKey(CLUSTER, 'honest-0');
  const [name = '', ...args] = pick(random, [
    ...[
      ['HSET', inbox, id, '{}'],
      ['HDEL', inbox, id],
      ['HGET', inbox, id],
      ['HGETALL', inbox],
      ['DEL', inbox],
    ],
    ...[
      ['HSETNX', inboxKey(CLUSTER, MAX_QUEUES), id, '{}'],
      ['HSETNX', inboxKey('other', queue), id, '{}'],
    ],
    ...[
      ['HSETNX', job, id, '{}'],
      ['LPUSH', job, id],
      ['ZADD', job, '1', id],
      ['DEL', job],
      ['GET', job],
    ],
    ...[
      ['HSETNX', reply, id, '{}'],
      ['HSET', reply, id, '{}'],
      ['DEL', reply],
    ],
    ...[
      ['SET', flowSettingsKey(CLUSTER), '{}'],
      ['SELECT', '1'],
      ['FLUSHALL'],
      ['KEYS', '*'],
      ['CONFIG', 'GET', '*'],
    ],
    ...[
      ['EVAL', 'return 1', '0'],
      ['EVALSHA', 'a'.repeat(40), '1', inbox],
      ['SCRIPT', 'FLUSH'],
    ],
  ]);
  return stranger.call(name, ...args);
}

const arrived = () =>
  waitFor(
    'every batch is acknowledged',
    async () => {
      await resend();
      return honest.every(({ unacked }) => unacked.length === 0);
    },
    WITHIN_MS,
  );

async function fuzz(): Promise<void> {
  const random = randomFor(SEED, 'queue fuzz');
  // An epoch that the store does not know yet could be taken by whoever sends it first.
  await sendHonest();
  await arrived();
  for (let n = 0; n < OPERATIONS; n += 1) {
    if (n % EVERY === 0) await sendHonest();
    if (random.chance(FORBIDDEN_SHARE)) {
      await expect(forbidden(random)).rejects.toThrow('NOPERM');
      refused += 1;
    } else await allowed(random, n);
  }
}

needs('redis-server', 'postgres')(`${OPERATIONS} operations of seed ${SEED} by the user of agents`, () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    admin = createSender(system.redis.url, QUEUES);
    agent = createSender(system.redis.urlOf('agent'), QUEUES);
    stranger = new Redis(system.redis.urlOf('agent'));
    controller = await system.controller({ intervalSweep: '2s' });
    pid = controller.pid;
  });
  afterAll(async () => {
    stranger?.disconnect();
    await agent?.close();
    await admin?.close();
    await system?.stop();
  });

  test('every honest record arrives once', { timeout: 3 * WITHIN_MS }, async () => {
    await fuzz();
    await arrived();
    const rows = await system.sql<{ node: string; n: number; seqs: number }>(
      `SELECT node, count(*)::int AS n, count(DISTINCT container_id)::int AS seqs
       FROM plegwatch.container_events WHERE node LIKE 'honest-%' GROUP BY node ORDER BY node`,
    );
    expect(rows).toEqual(honest.map(({ incarnation: { node } }) => ({ node, n: sent, seqs: sent })));
  });

  test('no number of another node moves, and the stored evidence follows from the rest', async () => {
    const epochs = await system.sql(
      `SELECT node, acked_seq, last_seq, records_lost::int FROM plegwatch.epochs WHERE node LIKE 'honest-%' ORDER BY node`,
    );
    expect(epochs).toEqual(
      honest.map(({ incarnation: { node } }) => ({
        ...{ node, acked_seq: sent, last_seq: sent, records_lost: 0 },
      })),
    );
    expect(
      await system.sql(
        "SELECT node FROM plegwatch.nodes WHERE node NOT LIKE 'honest-%' AND node NOT LIKE 'poisoned-%'",
      ),
    ).toEqual([]);
    for (const { incarnation } of honest) await system.expectNoDifference(incarnation.node);
  });

  test('the controller never restarts, empties the inboxes, and counts what it removed unread', async () => {
    await waitFor('every input is handled', async () => (await admin.left()) === 0, WITHIN_MS);
    expect(controller.pid).toBe(pid);
    await waitFor('it lives', async () => (await controller.ask('/livez'))?.status === 200);
    for (const kind of REMOVAL_KINDS)
      expect(await metric(controller, `plegwatch_inbox_removals_total{kind="${kind}"}`)).toBeGreaterThan(0);
    const lines = controller.log().split('\n').length;
    process.stdout.write(
      `${OPERATIONS} operations, ${refused} refused; ${sent * honest.length} records; ${lines} lines of log\n`,
    );
    // A message that repeats is printed a few times a minute.
    const minutes = (performance.now() - began) / 60_000;
    expect(lines).toBeLessThan(2_000 + 100 * minutes);
  });
});
