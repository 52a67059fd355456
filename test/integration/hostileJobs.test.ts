/*
 * Ten thousand hostile jobs in the lanes of a real Redis, between good batches, with a real controller on a real Postgres:
 * each ends where it must, nothing that was good is lost or stored twice, and the controller neither stops, nor grows, nor
 * fills its log.
 *
 * PLEGWATCH_JOBS sets how many, PLEGWATCH_SEED which ones: the ordinary run puts in the same ones every time, so that it
 * fails for a change and not by chance.
 */
import { readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { randomFor } from '../../devtools/simulator/random.ts';
import { MAX_REJECTED } from '../../src/controller/ingest/rejections.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../src/protocol/keys.ts';
import { createSender, events, life, type Sender } from '../support/batches.ts';
import { type Fate, type HostileJob, hostileJob, type Lying } from '../support/hostileJobs.ts';
import { needs } from '../support/needs.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);
const JOBS = Number(process.env['PLEGWATCH_JOBS'] ?? 10_000);
const LANES = 4;
/** After each so many hostile jobs, a good batch of each life. */
const EVERY = 100;
const PER_BATCH = 10;
const WITHIN_MS = 120_000;

let system: System;
let controller: LocalPlegwatch;
let sender: Sender;

/** What was put in. */
const good = ['node-a', 'node-b', 'node-c', 'node-d'].flatMap((node) => [
  life(node, 1),
  life(node, 2, 30_000),
]);
/** Of this one nothing comes after its first two batches: whatever moves its mark is somebody else. */
const quiet = life('node-quiet');
const fates: Fate[] = [];
let sent = 0;
/** The controller after a fifth of it. */
let warm = { rss: 0, logged: 0 };

const rssMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Puts a job into a lane as somebody would who may write to its keys and has no queue library. */
async function put(lane: number, id: string, lying: Lying): Promise<void> {
  const queue = `${queuePrefix('test', lane)}:${QUEUE_NAME}`;
  const multi = sender.redis.multi();
  if (lying.is === 'fields') multi.hset(`${queue}:${id}`, { ...lying.fields });
  if (lying.is === 'list') multi.lpush(`${queue}:${id}`, 'not a hash');
  await multi.lpush(`${queue}:wait`, id).zadd(`${queue}:marker`, 0, '0').exec();
}

const drained = () =>
  waitFor('the lanes are empty', async () => ((await sender.left()) === 0 ? true : undefined), WITHIN_MS);

/** Of each good life the next batch. */
async function sendGood(): Promise<void> {
  const last = sent + PER_BATCH;
  for (const one of good) {
    const lives = good.filter(({ node }) => node === one.node);
    const held = lives.map(({ epoch }, i) => ({ epoch, incarnation: i + 1, last }));
    await sender.send(one.batch(sent + 1, events(sent + 1, last), { held }));
  }
  sent = last;
}

/** Somebody who may write to the queue's settings puts all the brakes on. */
async function stopLanes(): Promise<void> {
  for (let lane = 0; lane < LANES; lane++) {
    const brakes = { paused: 1, concurrency: 0, max: 0, duration: 1e12 };
    await sender.redis.hset(`${queuePrefix('test', lane)}:${QUEUE_NAME}:meta`, brakes);
  }
}

async function flood(): Promise<void> {
  const random = randomFor(SEED, 'hostile jobs');
  await sender.send(quiet.batch(1, events(1, 5)));
  await sender.send(quiet.batch(7, events(7, 8)));
  for (let n = 0; n < JOBS; n++) {
    if (n % EVERY === 0) await sendGood();
    const job: HostileJob = await hostileJob(random, { life: quiet }, n);
    fates.push(job.fate);
    const node = job.fate.is === 'record' ? job.fate.life.node : quiet.node;
    await put(n % 3 === 0 ? queueOf(node, LANES) : n % LANES, `h${n}`, job.lying);
    if (n === Math.floor(JOBS / 5)) {
      await drained();
      warm = { rss: rssMiB(controller.pid), logged: statSync(controller.logFile).size };
    }
    if (n === Math.floor(JOBS / 2)) await stopLanes();
  }
  await sendGood();
}

/** What is stored of each epoch, and how far its mark is. */
const stored = () =>
  system.sql<{ epoch: string; n: number; seqs: number; last: number; mark: number }>(
    `SELECT c.epoch::text, count(*)::int AS n, count(DISTINCT e.seq)::int AS seqs, max(e.seq)::int AS last,
            (SELECT acked_seq FROM plegwatch.epochs WHERE epoch = c.epoch) AS mark
     FROM store.container_event e JOIN store.context c USING (context_id) GROUP BY c.epoch`,
  );

needs('redis-server', 'postgres')(`${JOBS} hostile jobs of seed ${SEED}`, () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    controller = await system.controller();
    sender = createSender(system.redis.url, LANES);
  });
  afterAll(async () => {
    await sender?.close();
    await system?.stop();
  });

  test('never stop a lane', { timeout: 2 * WITHIN_MS }, async () => {
    await flood();
    await drained();
    expect((await controller.ask('/livez'))?.status).toBe(200);
  });

  test('take nothing from what is good: all of it is stored once and acknowledged', async () => {
    const rows = await stored();
    for (const { epoch, node } of good) {
      const all = { n: sent, seqs: sent, last: sent, mark: sent };
      expect(
        rows.find((row) => row.epoch === epoch),
        node,
      ).toMatchObject(all);
    }
  });

  test('never move the mark of another node, nor make one', async () => {
    expect((await stored()).find(({ epoch }) => epoch === quiet.epoch)).toMatchObject({
      n: 7,
      last: 8,
      mark: 5,
    });
    expect(await sender.reply(quiet)).toEqual({ ackGeneration: 1, ackedSeq: 5 });
    const nodes = await system.sql<{ node: string }>(
      "SELECT node FROM plegwatch.nodes WHERE node NOT LIKE 'poisoned-%' ORDER BY node",
    );
    expect(nodes.map(({ node }) => node)).toEqual(['node-a', 'node-b', 'node-c', 'node-d', 'node-quiet']);
  });

  test('become a gap for each record that cannot be stored, beside those that can', async () => {
    const rows = await stored();
    const poisoned = fates.filter((fate) => fate.is === 'record');
    for (const fate of poisoned) {
      const { stored: n, last: mark } = fate;
      expect(rows.find(({ epoch }) => epoch === fate.life.epoch)).toMatchObject({ n, seqs: n, mark });
    }
    const gaps = await system.sql(
      "SELECT count(*)::int AS n FROM plegwatch.gaps WHERE scope = 'seq' AND node LIKE 'poisoned-%'",
    );
    expect(gaps).toEqual([{ n: poisoned.reduce((sum, fate) => sum + fate.last - fate.stored, 0) }]);
  });

  test('are counted as rejected or as of a newer version, each of them once, and few of them kept', async () => {
    const rejected = await system.sql<{ reason: string; kinds: number; times: number }>(
      'SELECT reason, count(*)::int AS kinds, sum(times)::int AS times FROM plegwatch.rejected GROUP BY reason',
    );
    const timesOf = (reason: string) => rejected.find((row) => row.reason === reason)?.times ?? 0;
    const due = fates.filter((fate) => fate.is === 'rejected');
    expect(rejected.reduce((sum, { times }) => sum + times, 0)).toBe(due.length);
    // One row for all that came over the cap, and one for each other lane that saw the last place free.
    const kept = rejected.reduce((sum, { kinds }) => sum + kinds, 0);
    expect(kept).toBeLessThanOrEqual(MAX_REJECTED + 1 + (LANES - 1));
    for (const { reason } of rejected.filter((row) => row.reason !== 'over_the_cap')) {
      expect(timesOf(reason), reason).toBeLessThanOrEqual(
        due.filter((fate) => fate.reason === reason).length,
      );
    }
    expect(await metric(controller, 'plegwatch_records_total{result="version"}')).toBe(
      fates.filter((fate) => fate.is === 'unacked').length,
    );
  });

  test('neither fill the log nor the memory of the controller', () => {
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
