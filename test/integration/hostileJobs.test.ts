/*
 * Ten thousand hostile jobs in the queues of a real Redis, between good batches, with a real controller on a real Postgres:
 * each ends as expected, no good batch is lost or stored twice, and the controller neither stops, nor leaks memory, nor
 * fills its log.
 *
 * PLEGWATCH_JOBS sets their number and PLEGWATCH_SEED selects them. The defaults repeat the same jobs every time, so that a failure
 * comes from a change and not from chance.
 */
import { readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { randomFor } from '../../devtools/simulator/random.ts';
import { MAX_REJECTED } from '../../src/controller/ingest/rejections.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../src/protocol/redisKeys.ts';
import { agentIncarnation, createSender, type Sender } from '../support/batches.ts';
import { hostileJob, type JobKey, type JobOutcome } from '../support/hostileJobs.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';
import { answerOf, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);
const JOBS = Number(process.env['PLEGWATCH_JOBS'] ?? 10_000);
const QUEUES = 4;
/** Hostile jobs between two good batches of each incarnation. */
const EVERY = 100;
const PER_BATCH = 10;
const WITHIN_MS = 600_000;

let system: System;
let controller: LocalPlegwatch;
let sender: Sender;

const good = ['node-a', 'node-b', 'node-c', 'node-d'].flatMap((node) => [
  agentIncarnation(node, 1),
  agentIncarnation(node, 2, 30_000),
]);
/** It sends two batches and nothing more: whatever else moves its acked seq is a hostile job. */
const victim = agentIncarnation('node-victim');
const outcomes: JobOutcome[] = [];
let sent = 0;
/** The controller's figures after a fifth of the jobs. */
let warm = { rss: 0, logged: 0 };

const rssMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Adds a job as an attacker would who may write to the keys of a queue and does not use the queue library. */
async function put(queueNo: number, id: string, key: JobKey): Promise<void> {
  const queue = `${queuePrefix('test', queueNo)}:${QUEUE_NAME}`;
  const multi = sender.redis.multi();
  if (key.is === 'fields') multi.hset(`${queue}:${id}`, { ...key.fields });
  if (key.is === 'list') multi.lpush(`${queue}:${id}`, 'not a hash');
  await multi.lpush(`${queue}:wait`, id).zadd(`${queue}:marker`, 0, '0').exec();
}

const drained = () => waitFor('the queues are empty', async () => (await sender.left()) === 0, WITHIN_MS);

/** Sends the next batch of each good incarnation. */
async function sendGood(): Promise<void> {
  const last = sent + PER_BATCH;
  for (const one of good) {
    const incarnations = good.filter(({ node }) => node === one.node);
    const held = incarnations.map(({ epoch }, i) => ({ epoch, incarnation: i + 1, last }));
    await sender.send(one.batch(sent + 1, events(sent + 1, last), { held }));
  }
  sent = last;
}

/** Pauses and throttles every queue, as an attacker would who may write to the queue settings. */
async function pauseQueues(): Promise<void> {
  for (let queueNo = 0; queueNo < QUEUES; queueNo++) {
    const settings = { paused: 1, concurrency: 0, max: 0, duration: 1e12 };
    await sender.redis.hset(`${queuePrefix('test', queueNo)}:${QUEUE_NAME}:meta`, settings);
  }
}

async function flood(): Promise<void> {
  const random = randomFor(SEED, 'hostile jobs');
  await sender.send(victim.batch(1, events(1, 5)));
  await sender.send(victim.batch(7, events(7, 8)));
  for (let n = 0; n < JOBS; n++) {
    if (n % EVERY === 0) await sendGood();
    const { key, outcome } = await hostileJob(random, victim, n);
    outcomes.push(outcome);
    const node = outcome.is === 'partly_stored' ? outcome.incarnation.node : victim.node;
    await put(n % 3 === 0 ? queueOf(node, QUEUES) : n % QUEUES, `h${n}`, key);
    if (n === Math.floor(JOBS / 5)) {
      await drained();
      warm = { rss: rssMiB(controller.pid), logged: statSync(controller.logFile).size };
    }
    if (n === Math.floor(JOBS / 2)) await pauseQueues();
  }
  await sendGood();
}

/** The stored events and the acked seq of each epoch. */
const stored = () =>
  system.sql<{ node: string; epoch: string; n: number; seqs: number; last: number; acked: number }>(
    `SELECT n.name AS node, c.epoch::text, count(*)::int AS n, count(DISTINCT e.seq)::int AS seqs, max(e.seq)::int AS last,
            (SELECT acked_seq FROM plegwatch.epochs x WHERE x.epoch = c.epoch AND x.node = n.name) AS acked
     FROM store.container_event e JOIN store.context c USING (context_id) JOIN store.node n ON n.node_id = c.node_id
     GROUP BY n.name, c.epoch`,
  );

needs('redis-server', 'postgres')(`${JOBS} hostile jobs of seed ${SEED}`, () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    controller = await system.controller();
    sender = createSender(system.redis.url, QUEUES);
  });
  afterAll(async () => {
    await sender?.close();
    await system?.stop();
  });

  test('hostile jobs never stop a queue', { timeout: 2 * WITHIN_MS }, async () => {
    await flood();
    await drained();
    expect((await answerOf(controller, '/livez'))?.status).toBe(200);
  });

  test('every good batch between hostile jobs is stored once and acknowledged', async () => {
    const rows = await stored();
    for (const { epoch, node } of good) {
      const all = { n: sent, seqs: sent, last: sent, acked: sent };
      expect(
        rows.find((row) => row.epoch === epoch && row.node === node),
        node,
      ).toMatchObject(all);
    }
  });

  test('hostile jobs never move the acked seq of another node, nor create a node', async () => {
    expect(
      (await stored()).find(({ epoch, node }) => epoch === victim.epoch && node === victim.node),
    ).toMatchObject({
      n: 7,
      last: 8,
      acked: 5,
    });
    expect(await sender.reply(victim)).toEqual({ ackGeneration: 1, ackedSeq: 5 });
    const nodes = await system.sql<{ node: string }>(
      "SELECT node FROM plegwatch.nodes WHERE node NOT LIKE 'poisoned-%' ORDER BY node",
    );
    expect(nodes.map(({ node }) => node)).toEqual(['node-a', 'node-b', 'node-c', 'node-d', 'node-victim']);
  });

  test('each record that cannot be stored becomes a gap, and the others of its batch are stored', async () => {
    const rows = await stored();
    const poisoned = outcomes.filter((outcome) => outcome.is === 'partly_stored');
    for (const { incarnation, stored: n, last: acked } of poisoned) {
      const own = rows.find(({ epoch, node }) => epoch === incarnation.epoch && node === incarnation.node);
      expect(own).toMatchObject({ n, seqs: n, acked });
    }
    const gaps = await system.sql(
      "SELECT count(*)::int AS n FROM plegwatch.gaps WHERE scope = 'seq' AND node LIKE 'poisoned-%'",
    );
    expect(gaps).toEqual([{ n: poisoned.reduce((sum, { last, stored }) => sum + last - stored, 0) }]);
  });

  test('each hostile job is counted once as rejected or of a newer version, and the number of kept ones is capped', async () => {
    const rejected = await system.sql<{ reason: string; kinds: number; times: number }>(
      'SELECT reason, count(*)::int AS kinds, sum(times)::int AS times FROM plegwatch.rejected GROUP BY reason',
    );
    const timesOf = (reason: string) => rejected.find((row) => row.reason === reason)?.times ?? 0;
    const due = outcomes.filter((outcome) => outcome.is === 'rejected');
    expect(rejected.reduce((sum, { times }) => sum + times, 0)).toBe(due.length);
    // One row counts all that exceed the cap, and each other queue may have seen the last place free.
    const kept = rejected.reduce((sum, { kinds }) => sum + kinds, 0);
    expect(kept).toBeLessThanOrEqual(MAX_REJECTED + 1 + (QUEUES - 1));
    for (const { reason } of rejected.filter((row) => row.reason !== 'over_the_cap')) {
      expect(timesOf(reason), reason).toBeLessThanOrEqual(
        due.filter((outcome) => outcome.reason === reason).length,
      );
    }
    expect(await metric(controller, 'plegwatch_records_total{result="version"}')).toBe(
      outcomes.filter((outcome) => outcome.is === 'unacked').length,
    );
  });

  test('hostile jobs fill neither the log nor the memory of the controller', () => {
    const lines = controller.log().split('\n').length;
    const rss = rssMiB(controller.pid);
    process.stdout.write(
      `RSS ${warm.rss.toFixed(0)} MiB after a fifth, ${rss.toFixed(0)} MiB at the end; ${lines} lines of log, ` +
        `${statSync(controller.logFile).size - warm.logged} bytes of it since\n`,
    );
    expect(lines).toBeLessThan(1_000);
    expect(rss / warm.rss).toBeLessThan(1.6);
  });
});
