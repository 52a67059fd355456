/*
 * A stranger with the password of the agents' Redis user: whatever is added to the inboxes, evidence of honest nodes arrives, the controller runs on,
 * and says what it found. The limits of that user are in redisUsers.test.ts.
 *
 * PLEGWATCH_INPUTS sets the number of random inputs and PLEGWATCH_SEED selects them. The defaults repeat the same ones every time.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { randomFor } from '../../devtools/simulator/random.ts';
import { MAX_REJECTED } from '../../src/controller/ingest/rejections.ts';
import { ACCEPTED_VERSIONS, batchId, MAX_INPUT_BYTES } from '../../src/protocol/batch.ts';
import { flowSettingsKey, inboxKey, MAX_QUEUES, queueOf, signsKey } from '../../src/protocol/redisKeys.ts';
import {
  agentIncarnation,
  type BatchIncarnation,
  CLUSTER,
  createSender,
  type Sender,
} from '../support/batches.ts';
import { Fleet } from '../support/fleet.ts';
import { hostileInput, type InputOutcome } from '../support/hostileInputs.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { answerOf, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);
const INPUTS = Number(process.env['PLEGWATCH_INPUTS'] ?? 2_000);
const QUEUES = 4;
const FLOOD = 50_000;
/** Hostile inputs between two good batches of each incarnation. */
const EVERY = 100;
const PER_BATCH = 10;
const MIB = 1024 * 1024;
/** Half of the chart's memory limit of a controller. */
const LIMIT_MIB = 512;
const WITHIN_MS = 600_000;

let system: System;
let controller: LocalPlegwatch;
let pid: number;
/** May do everything. */
let admin: Sender;
/** Sends as an honest agent, and as a stranger: both with the user of agents. */
let honest: Sender;
let stranger: Redis;
let rounds = 0;

const removals = async (kind: string): Promise<number> =>
  (await metric(controller, `plegwatch_inbox_removals_total{kind="${kind}"}`)) ?? 0;
const rejections = (reason: string) =>
  system.sql<{ times: number }>('SELECT times::int FROM plegwatch.rejected WHERE reason = $1', reason);
const drained = () => waitFor('every input is handled', async () => (await admin.left()) === 0, WITHIN_MS);
/** The most memory that the controller had, since its start or since `forgetPeak`. */
const peakMiB = (): number =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${controller.pid}/status`, 'utf8'))?.[1]) / 1024;
const forgetPeak = (): void => writeFileSync(`/proc/${controller.pid}/clear_refs`, '5');

/** Sends a batch as an agent does, again and again until it is acknowledged. */
async function arrives(one: BatchIncarnation): Promise<void> {
  const batch = one.batch(1, events(1, 5));
  await waitFor(`the batch of ${one.node} is acknowledged`, async () => {
    await honest.send(batch);
    return (await admin.reply(one))?.ackedSeq === 5;
  });
}

/** Batches of eight honest nodes are stored once and acknowledged. */
async function everythingArrives(): Promise<void> {
  rounds += 1;
  const nodes = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => agentIncarnation(`${name}-${rounds}`));
  await Promise.all(nodes.map(arrives));
  await drained();
  const names = nodes.map(({ node }) => node);
  const stored = await system.sql(
    `SELECT node, count(*)::int AS n, count(DISTINCT seq)::int AS seqs FROM plegwatch.container_events
     WHERE node = ANY($1) GROUP BY node ORDER BY node`,
    names,
  );
  expect(stored).toEqual(names.map((node) => ({ node, n: 5, seqs: 5 })));
  expect(controller.pid).toBe(pid);
}

/** Sends what no agent sends, and good batches between. Returns both. */
async function sendHostileInputs() {
  const good = ['node-a', 'node-b', 'node-c', 'node-d'].flatMap((node) => [
    agentIncarnation(node, 1),
    agentIncarnation(node, 2, 30_000),
  ]);
  /** It sends two batches and nothing more: whatever else moves its acked seq is a hostile input. */
  const victim = agentIncarnation('node-victim');
  const outcomes: InputOutcome[] = [];
  const random = randomFor(SEED, 'hostile jobs');
  let sent = 0;
  async function sendGood(): Promise<void> {
    const last = sent + PER_BATCH;
    for (const one of good) {
      const incarnations = good.filter(({ node }) => node === one.node);
      const held = incarnations.map(({ epoch }, i) => ({ epoch, incarnation: i + 1, last }));
      await honest.send(one.batch(sent + 1, events(sent + 1, last), { held }));
    }
    sent = last;
  }
  await honest.send(victim.batch(1, events(1, 5)));
  await drained();
  await honest.send(victim.batch(7, events(7, 8)));
  await drained();
  for (let n = 0; n < INPUTS; n += 1) {
    if (n % EVERY === 0) await sendGood();
    const { text, outcome } = await hostileInput(random, victim, n);
    outcomes.push(outcome);
    const node = outcome.is === 'partly_stored' ? outcome.incarnation.node : victim.node;
    await stranger.hsetnx(inboxKey(CLUSTER, queueOf(node, QUEUES)), `h.${n}`, text);
  }
  await sendGood();
  await drained();
  return { good, victim, outcomes, sent };
}

needs('redis-server', 'postgres')('in an inbox', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    controller = await system.controller({ intervalSweep: '1s', intervalFlow: '1s' });
    pid = controller.pid;
    admin = createSender(system.redis.url, QUEUES);
    honest = createSender(system.redis.urlOf('agent'), QUEUES);
    stranger = new Redis(system.redis.urlOf('agent'));
  });
  beforeEach(async () => {
    await system.sql('DELETE FROM store.rejected');
  });
  afterAll(async () => {
    stranger?.disconnect();
    await honest?.close();
    await admin?.close();
    await system?.stop();
  });

  test(
    'every input that no agent sends ends as expected, and good batches between them are stored once',
    async () => {
      const { good, victim, outcomes, sent } = await sendHostileInputs();
      const rows = await system.sql<{ node: string; epoch: string; n: number; last: number; acked: number }>(
        `SELECT node, epoch, count(*)::int AS n, count(DISTINCT seq)::int AS seqs, max(seq)::int AS last,
              (SELECT acked_seq FROM plegwatch.epochs x WHERE x.epoch = e.epoch AND x.node = e.node) AS acked
       FROM plegwatch.container_events e GROUP BY node, epoch`,
      );
      const ofIncarnation = ({ node, epoch }: BatchIncarnation) =>
        rows.find((row) => row.epoch === epoch && row.node === node);
      for (const one of good)
        expect(ofIncarnation(one), one.node).toMatchObject({ n: sent, seqs: sent, last: sent, acked: sent });
      expect(ofIncarnation(victim)).toMatchObject({ n: 7, last: 8, acked: 5 });
      expect(await admin.reply(victim)).toEqual({ ackGeneration: 1, ackedSeq: 5 });
      const nodes = await system.sql<{ node: string }>(
        "SELECT node FROM plegwatch.nodes WHERE node NOT LIKE 'poisoned-%' ORDER BY node",
      );
      expect(nodes.map(({ node }) => node)).toEqual(['node-a', 'node-b', 'node-c', 'node-d', 'node-victim']);

      const poisoned = outcomes.filter((outcome) => outcome.is === 'partly_stored');
      for (const { incarnation, stored: n, last: acked } of poisoned)
        expect(ofIncarnation(incarnation)).toMatchObject({ n, seqs: n, acked });
      const gaps = await system.sql(
        "SELECT count(*)::int AS n FROM plegwatch.gaps WHERE scope = 'seq' AND node LIKE 'poisoned-%'",
      );
      expect(gaps).toEqual([{ n: poisoned.reduce((sum, { last, stored }) => sum + last - stored, 0) }]);

      const rejected = await system.sql<{ reason: string; kinds: number; times: number }>(
        'SELECT reason, count(*)::int AS kinds, sum(times)::int AS times FROM plegwatch.rejected GROUP BY reason',
      );
      const due = outcomes.filter((outcome) => outcome.is === 'rejected');
      expect(rejected.reduce((sum, { times }) => sum + times, 0)).toBe(due.length);
      // One row counts all that exceed the cap, and each other queue may have seen the last place free.
      const kept = rejected.reduce((sum, { kinds }) => sum + kinds, 0);
      expect(kept).toBeLessThanOrEqual(MAX_REJECTED + 1 + (QUEUES - 1));
      for (const { reason, times } of rejected.filter((row) => row.reason !== 'over_the_cap'))
        expect(times, reason).toBeLessThanOrEqual(due.filter((outcome) => outcome.reason === reason).length);
      expect(await metric(controller, 'plegwatch_records_total{result="version"}')).toBe(
        outcomes.filter((outcome) => outcome.is === 'unacked').length,
      );

      const lines = controller.log().split('\n').length;
      process.stdout.write(`at most ${peakMiB().toFixed(0)} MiB, ${lines} lines of log\n`);
      expect(lines).toBeLessThan(1_000);
      expect(peakMiB()).toBeLessThan(LIMIT_MIB);
    },
    2 * WITHIN_MS,
  );

  test.each([
    ['of 300 bytes', Buffer.from(`node.${'1'.repeat(295)}`)],
    ['of 100 MiB', Buffer.alloc(100 * MIB, 'node.1')],
    ['that is not UTF-8', Buffer.from([0x61, 0x2e, 0xff, 0x00, 0x0a])],
    ['of nothing', Buffer.alloc(0)],
    ['without a dot', Buffer.from('node')],
    ['that is an integer', Buffer.from('42')],
    ['that is a key of BullMQ', Buffer.from('wait')],
    ['that is a key of one of its jobs', Buffer.from('node.1:lock')],
    ['with a line break', Buffer.from('node.1\n2')],
  ])('an id %s is removed with its input, which nobody reads', async (_, id) => {
    const before = await removals('bad_id');
    await stranger.hsetnx(inboxKey(CLUSTER, 0), id, '{');
    await everythingArrives();
    expect(await removals('bad_id')).toBe(before + 1);
    expect(await rejections('not_json')).toEqual([]);
  });

  test.each([MAX_INPUT_BYTES + 1, 480 * MIB])(
    'an input of %d bytes is removed, and never leaves Redis',
    async (bytes) => {
      const sentBytes = async () =>
        Number(/total_net_output_bytes:(\d+)/.exec(await admin.redis.info('stats'))?.[1]);
      const [removed, sent] = [await removals('oversized'), await sentBytes()];
      await stranger.hsetnx(inboxKey(CLUSTER, 0), 'node.1', Buffer.alloc(bytes, 'x'));
      await everythingArrives();
      expect(await removals('oversized')).toBe(removed + 1);
      expect((await sentBytes()) - sent).toBeLessThan(MAX_INPUT_BYTES);
    },
  );

  test('an input of 2 MiB is read and rejected', async () => {
    const before = await removals('oversized');
    await stranger.hsetnx(inboxKey(CLUSTER, 0), 'node.1', Buffer.alloc(MAX_INPUT_BYTES, 'x'));
    await everythingArrives();
    expect(await rejections('not_json')).toEqual([{ times: 1 }]);
    expect(await removals('oversized')).toBe(before);
  });

  test('an input that a stranger adds under the id of a batch is rejected, and the batch arrives when it is sent again', async () => {
    const one = agentIncarnation('foreseen');
    await freeze(controller.pid);
    try {
      const [inbox, id] = [inboxKey(CLUSTER, queueOf(one.node, QUEUES)), batchId(one.batch(1, events(1, 5)))];
      expect(await stranger.hsetnx(inbox, id, '{"z":"garbage"}')).toBe(1);
      await honest.send(one.batch(1, events(1, 5)));
      expect(await admin.redis.hget(inbox, id)).toBe('{"z":"garbage"}');
    } finally {
      thaw(controller.pid);
    }
    await arrives(one);
    expect(await rejections('not_a_batch')).toEqual([{ times: 1 }]);
    await everythingArrives();
  });

  test.each([
    ['one sender', (n: number) => `flood.${n}`],
    [`${FLOOD} senders`, (n: number) => `flood${n}.1`],
  ])(
    `${FLOOD} inputs of %s do not keep a batch waiting until they are handled, nor do they take the controller's memory`,
    async (_, idOf) => {
      const one = agentIncarnation(`beside-${idOf(0)}`);
      const inbox = inboxKey(CLUSTER, queueOf(one.node, QUEUES));
      forgetPeak();
      await freeze(controller.pid);
      try {
        for (let n = 0; n < FLOOD; n += 1_000) {
          const adding = stranger.pipeline();
          for (let i = n; i < n + 1_000; i += 1) adding.hsetnx(inbox, idOf(i), `{"z":"${i}"}`);
          await adding.exec();
        }
        await honest.send(one.batch(1, events(1, 5)));
      } finally {
        thaw(controller.pid);
      }
      const isStored = async () => (await admin.reply(one))?.ackedSeq === 5;
      await waitFor('the batch is stored', isStored, WITHIN_MS);
      expect(await admin.redis.hlen(inbox)).toBeGreaterThan(0);
      await admin.redis.unlink(inbox);
      await everythingArrives();
      process.stdout.write(`at most ${peakMiB().toFixed(0)} MiB\n`);
      expect(peakMiB()).toBeLessThan(LIMIT_MIB);
    },
    2 * WITHIN_MS,
  );

  test('an inbox that belongs to no queue is removed', async () => {
    const before = await removals('stray_inbox');
    const strays = [QUEUES, MAX_QUEUES - 1].map((queue) => inboxKey(CLUSTER, queue));
    for (const stray of strays) await stranger.hsetnx(stray, 'node.1', '{');
    const signs = Array.from({ length: 300 }, (_, n) => [`node.${100 + n}`, '{']);
    await stranger.hset(signsKey(CLUSTER, QUEUES), Object.fromEntries(signs));
    await waitFor('they are removed', async () => (await admin.redis.exists(...strays)) === 0);
    await waitFor('that is counted', async () => (await removals('stray_inbox')) === before + 3);
    await everythingArrives();
  });

  test('an agent that still sends to an inbox of an earlier database, which had more queues, sends again to the right one', async () => {
    const before = await removals('stray_inbox');
    const node = 'of-an-earlier-database';
    const stray = inboxKey(CLUSTER, queueOf(node, MAX_QUEUES));
    expect(queueOf(node, MAX_QUEUES)).toBeGreaterThanOrEqual(QUEUES);
    await freeze(controller.pid);
    const flow = { queues: MAX_QUEUES, window: MIB, accepts: ACCEPTED_VERSIONS };
    await admin.redis.set(flowSettingsKey(CLUSTER), JSON.stringify(flow));
    const starting = Fleet.start(system, [node], { intervalResend: '1s' });
    try {
      await waitFor('it has sent a batch there', async () => (await admin.redis.hlen(stray)) > 0);
    } finally {
      thaw(controller.pid);
    }
    const fleet = await starting;
    try {
      await fleet.expectEverythingOnce();
      expect(await admin.redis.exists(stray)).toBe(0);
      await waitFor('that is counted', async () => (await removals('stray_inbox')) > before);
    } finally {
      await fleet.stop();
    }
  });

  test('each removal and each rejection is in the log, with its queue, its reason, its bytes, and how the id begins', async () => {
    const lines = (message: string) =>
      controller
        .log()
        .split('\n')
        .filter((line) => line.includes(`"msg":"${message}"`));
    const removed = lines('removed from an inbox unread').join('\n');
    expect(removed).toMatch(/"queue":0,"reason":"bad_id","id":"node.1{59}","bytes":301,/);
    expect(removed).toMatch(/"queue":999,"reason":"stray_inbox","id":"node.1","bytes":7,/);
    expect(removed).toMatch(/"queue":4,"reason":"stray_inbox","id":"node.\d+","bytes":2700,/);
    const rejected = lines('input rejected');
    expect(rejected.length).toBeGreaterThan(0);
    for (const line of rejected) expect(line).toMatch(/"id":"[^"]+","bytes":\d+/);
    expect((await answerOf(controller, '/livez'))?.status).toBe(200);
  });
});
