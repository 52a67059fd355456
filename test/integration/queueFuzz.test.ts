/*
 * Random commands on the keys of the queues and on jobs between the batches of eight honest nodes. Every honest record arrives in the end, and
 * nothing else changes.
 *
 * PLEGWATCH_FUZZ_USER says who sends them: `agent`, the Redis user of agents, all of whose commands are allowed; or `stranger`, one that
 * may send many more. PLEGWATCH_OPERATIONS sets their number and PLEGWATCH_SEED selects them. The fuzzer knows the ids of honest jobs, which an
 * agent cannot.
 */
import { createHash } from 'node:crypto';
import { addStandardJob } from 'bullmq/dist/esm/scripts/addStandardJob-9.js';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../src/protocol/redisKeys.ts';
import { agentIncarnation, CLUSTER, createSender, type Sender } from '../support/batches.ts';
import { hostileJob } from '../support/hostileJobs.ts';
import { pick } from '../support/hostileValues.ts';
import { needs } from '../support/needs.ts';
import { QUEUE_KEYS } from '../support/queueKeys.ts';
import { events } from '../support/records.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_122);
const OPERATIONS = Number(process.env['PLEGWATCH_OPERATIONS'] ?? 4_000);
const QUEUES = 4;
const PER_BATCH = 10;
/** Operations between two batches of each honest node. */
const EVERY = 200;
const WITHIN_MS = 600_000;
const USER = process.env['PLEGWATCH_FUZZ_USER'] ?? 'stranger';
const BY_AGENT = USER === 'agent';
const COMMANDS =
  '+hello +auth +ping +info +eval +evalsha +incr +hget +hmget +hset +hmset +hexists +hgetall +exists +lpush +llen +zadd +xadd +get +mget';
const NAMES = [...QUEUE_KEYS, 'repeat:x', 'de:x', 'metrics:completed'];
const CHILDREN = [':lock', ':dependencies', ':processed', ':failed', ':unsuccessful', ':logs', ''];
const FIELDS = [
  ...[
    'data',
    'opts',
    'name',
    'timestamp',
    'ats',
    'atm',
    'stc',
    'delay',
    'priority',
    'parentKey',
    'parent',
    'rjk',
    'deid',
  ],
  ...[
    'defa',
    'paused',
    'concurrency',
    'max',
    'duration',
    'opts.maxLenEvents',
    'progress',
    'processedOn',
    'ic',
  ],
];

/** A batch that is on its way. An agent sends it again under the same id, until Redis refuses an add. */
interface Sent {
  readonly last: number;
  readonly add: (id: string) => Promise<void>;
  readonly id: string;
  refusals: number;
}

let system: System;
let controller: LocalPlegwatch;
let sender: Sender;
let stranger: Redis;
let pid: number;
const began = performance.now();
let sent = 0;
let operations = 0;
let refused = 0;

const honest = Array.from({ length: 8 }, (_, n) => ({
  incarnation: agentIncarnation(`honest-${n}`),
  unacked: [] as Sent[],
}));
const jobIds: string[] = ['h.0', 'h.1', 'h.2'];
const ADD_SCRIPT = createHash('sha1').update(addStandardJob.content).digest('hex');
/** The keys that the script gets, in its order. */
const ADD_KEYS = ['wait', 'paused', 'meta', 'id', 'completed', 'delayed', 'active', 'events', 'marker'];

const queueKey = (queue: number): string => `${queuePrefix(CLUSTER, queue)}:${QUEUE_NAME}`;

async function sendHonest(): Promise<void> {
  for (const { incarnation, unacked } of honest) {
    const batch = incarnation.batch(sent + 1, events(sent + 1, sent + PER_BATCH));
    const id = `${incarnation.node}.${sent + 1}`;
    jobIds.push(id);
    unacked.push({ last: batch.last, id, refusals: 0, add: (jobId) => sender.send(batch, jobId) });
  }
  sent += PER_BATCH;
  await resend();
}

/** Sends every batch again that is not acknowledged. */
async function resend(): Promise<void> {
  for (const { incarnation, unacked } of honest) {
    const acked = (await sender.reply(incarnation))?.ackedSeq ?? 0;
    unacked.splice(0, unacked.length, ...unacked.filter(({ last }) => last > acked));
    for (const batch of unacked) {
      await batch.add(`${batch.id}.${batch.refusals}`).catch(() => {
        batch.refusals += 1;
      });
    }
  }
}

function anyValue(random: Random): string {
  const texts = ['', 'x', '0', '-1', '9223372036854775807', '1e999', '{', '[]', '\0', '{}', 'wait', '0:1'];
  return random.chance(0.02)
    ? 'x'.repeat(100_000)
    : random.chance(0.3)
      ? pick(random, jobIds)
      : pick(random, texts);
}

function anyKey(random: Random): string {
  const queue = queueKey(Math.floor(random.between(0, QUEUES)));
  if (random.chance(0.6)) return `${queue}:${pick(random, NAMES)}`;
  const id = pick(random, jobIds);
  const at = id.startsWith('honest') ? queueKey(queueOf(id.split('.')[0] ?? '', QUEUES)) : queue;
  return `${at}:${id}${random.chance(0.3) ? '.0' : ''}${pick(random, CHILDREN)}`;
}

/** Values as MessagePack, in which the script gets its arguments. */
function packed(values: readonly (string | number | null)[]): Buffer {
  const parts = values.map((value) => {
    if (value === null) return Buffer.from([0xc0]);
    const bytes = Buffer.from(typeof value === 'string' ? value : '');
    const head = Buffer.alloc(typeof value === 'string' ? 5 : 9);
    head[0] = typeof value === 'string' ? 0xdb : 0xcb;
    if (typeof value === 'string') head.writeUInt32BE(bytes.length, 1);
    else head.writeDoubleBE(value, 1);
    return Buffer.concat([head, bytes]);
  });
  return Buffer.concat([Buffer.from([0x90 + values.length]), ...parts]);
}

/** One random command that the agents' user may send. */
function operationOfAgent(random: Random): Promise<unknown> {
  const queue = queueKey(Math.floor(random.between(0, QUEUES)));
  const id = pick(random, jobIds);
  const at = id.startsWith('honest') ? queueKey(queueOf(id.split('.')[0] ?? '', QUEUES)) : queue;
  const job = `${at}:${id}${id.startsWith('honest') && random.chance(0.5) ? '.0' : ''}`;
  const commands: readonly (() => Promise<unknown>)[] = [
    () => stranger.hmset(job, pick(random, FIELDS), anyValue(random), pick(random, FIELDS), anyValue(random)),
    () => stranger.exists(job),
    () =>
      stranger.lpush(
        `${queue}:wait`,
        ...Array.from({ length: random.chance(0.05) ? 500 : 1 }, () => anyValue(random)),
      ),
    () => stranger.zadd(`${queue}:marker`, pick(random, ['0', '-inf', 'inf', '1e308']), anyValue(random)),
    () =>
      stranger.xadd(
        `${queue}:events`,
        random.chance(0.1) ? '18446744073709551615-18446744073709551615' : '*',
        'x',
        anyValue(random),
      ),
    () => stranger.incr(`${queue}:id`),
    () =>
      stranger.evalsha(
        ADD_SCRIPT,
        ADD_KEYS.length,
        // In the script's order, or in any other.
        ...(random.chance(0.7) ? ADD_KEYS : random.shuffle(ADD_KEYS)).map((name) => `${at}:${name}`),
        packed([`${at}:`, id, 'batch', Date.now(), null, null, null, null, null]),
        anyValue(random),
        random.chance(0.8) ? Buffer.from([0x80]) : anyValue(random),
      ),
  ];
  return pick(random, commands)();
}

/** One random command; most are refused because the key has another type. */
function operation(random: Random): Promise<unknown> {
  if (BY_AGENT) return operationOfAgent(random);
  const key = anyKey(random);
  const score = pick(random, [
    '0',
    '-inf',
    'inf',
    '1',
    `${Date.now() * 4_096 * 3}`,
    `${Date.now() * 4_096 + 4_096_000}`,
  ]);
  const commands: readonly (() => Promise<unknown>)[] = [
    () => stranger.hset(key, pick(random, FIELDS), anyValue(random)),
    () => stranger.hmset(key, pick(random, FIELDS), anyValue(random), pick(random, FIELDS), anyValue(random)),
    () =>
      stranger.lpush(key, ...Array.from({ length: random.chance(0.05) ? 500 : 1 }, () => anyValue(random))),
    () => stranger.zadd(key, score, anyValue(random)),
    () =>
      stranger.xadd(
        key,
        random.chance(0.1) ? '18446744073709551615-18446744073709551615' : '*',
        'x',
        anyValue(random),
      ),
    () => stranger.incr(key),
    () => stranger.eval("return redis.call('LPUSH', KEYS[1], ARGV[1], ARGV[1])", 1, key, anyValue(random)),
  ];
  return pick(random, commands)();
}

/** A hostile job with any id, in any list. */
async function hostile(random: Random, n: number): Promise<void> {
  const queue = queueKey(n % QUEUES);
  const { key } = await hostileJob(random, honest[0]?.incarnation ?? agentIncarnation('honest-0'), n);
  const id = random.chance(0.1) ? pick(random, jobIds) : `h.${n}`;
  if (key.is === 'fields') await stranger.hmset(`${queue}:${id}`, { ...key.fields });
  await stranger.lpush(`${queue}:${BY_AGENT ? 'wait' : pick(random, ['wait', 'active'])}`, id);
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
  for (; operations < OPERATIONS; operations += 1) {
    if (operations % EVERY === 0) await sendHonest();
    const done = operations % 20 === 0 ? hostile(random, operations) : operation(random);
    await done.catch((error: unknown) => {
      if (String(error).includes('NOPERM')) throw error;
      refused += 1;
    });
  }
}

needs('redis-server', 'postgres')(
  `${OPERATIONS} operations of seed ${SEED} by the user ${USER} on the queues`,
  () => {
    beforeAll(async () => {
      system = await System.start({ kube: false });
      sender = createSender(system.redis.url, QUEUES);
      await sender.redis.call(
        ...(['ACL', 'SETUSER', USER, 'on', '>secret', '-@all', ...COMMANDS.split(' ')] as [
          string,
          ...string[],
        ]),
        `~${queuePrefix(CLUSTER, '*')}:*`,
        `%R~plegwatch-acks:{${CLUSTER}}:*`,
      );
      stranger = BY_AGENT
        ? new Redis(system.redis.urlOf('agent'))
        : new Redis(system.redis.port, { username: USER, password: 'secret' });
      controller = await system.controller({ intervalSweep: '2s', intervalJobLock: '2s' });
      pid = controller.pid;
    });
    afterAll(async () => {
      stranger?.disconnect();
      await sender?.close();
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
          node,
          acked_seq: sent,
          last_seq: sent,
          records_lost: 0,
        })),
      );
      expect(
        await system.sql(
          "SELECT node FROM plegwatch.nodes WHERE node NOT LIKE 'honest-%' AND node NOT LIKE 'poisoned-%'",
        ),
      ).toEqual([]);
      for (const { incarnation } of honest) await system.expectNoDifference(incarnation.node);
    });

    test('the controller never restarts, drains the queues, and counts what it repaired', async () => {
      await waitFor('the queues are empty', async () => (await sender.left()) === 0, WITHIN_MS);
      expect(controller.pid).toBe(pid);
      await waitFor('it lives', async () => (await controller.ask('/livez'))?.status === 200);
      const kind = BY_AGENT ? 'bad_entry' : 'wrong_type';
      expect(await metric(controller, `plegwatch_queue_repairs_total{kind="${kind}"}`)).toBeGreaterThan(0);
      const lines = controller.log().split('\n').length;
      process.stdout.write(
        `${operations} operations, ${refused} refused; ${sent * honest.length} records; ${lines} lines of log\n`,
      );
      // A message that repeats is printed a few times a minute.
      const minutes = (performance.now() - began) / 60_000;
      expect(lines).toBeLessThan(2_000 + 100 * minutes);
    });
  },
);
