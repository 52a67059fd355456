/*
 * A small Redis, 64 MiB that evicts nothing: agents stop at their windows before it is full, and wait if another client
 * has filled it. Records stay in the spools and arrive later. If what fills it is in the inboxes, it becomes empty again by itself.
 */
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { windowOf } from '../../src/controller/ingest/flow.ts';
import {
  flowSettingsKey,
  inboxKey,
  MAX_SIGN_BYTES,
  parseFlowSettings,
  QUEUE_NAME,
  queuePrefix,
  signsKey,
} from '../../src/protocol/redisKeys.ts';
import { BACK_WITHIN_MS, expectFewLines, Fleet, logged, unacknowledged } from '../support/fleet.ts';
import { needs } from '../support/needs.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { answerOf, CLUSTER, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const MIB = 1024 * 1024;
const MEMORY = 64 * MIB;
const QUEUES = 4;
const NODES = ['a', 'b'];
/** More than half of the jobs that may wait in a queue: its mover adds none then. */
const MANY_JOBS = 33;
const EVERY_MS = 20;
/** Nodes that make the window small enough to fill within seconds. */
const KNOWN_NODES = 1_000;
/** Room for probes: batches without records do not count. */
const PROBE_BYTES = 4 * 1024;
/** Each backoff starts with short waits. */
const FIRST_TRIES = 8 * (QUEUES + NODES.length);
const SOON: PlegwatchSettings = { intervalFlow: '1s' };

let system: System;
let controller: LocalPlegwatch;
let redis: Redis;
/** The bytes that an agent may have in the inboxes. */
let window: number;
let fleet: Fleet;

needs('redis-server', 'postgres')('a Redis of 64 MiB', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    redis = new Redis(system.redis.url);
    await redis.config('SET', 'maxmemory', `${MEMORY}`);
    controller = await system.controller(SOON);
    await system.sql(
      `INSERT INTO store.node (cluster_id, name, last_seen)
       SELECT cluster_id, 'other-' || n, now() FROM store.cluster, generate_series(1, ${KNOWN_NODES}) n`,
    );
    window = await waitFor('the window is that of a fleet', async () => {
      const flow = parseFlowSettings((await redis.get(flowSettingsKey(CLUSTER))) ?? '');
      return flow.ok && flow.value.window <= windowOf(KNOWN_NODES, MEMORY) ? flow.value.window : undefined;
    });
    fleet = await Fleet.start(system, NODES, {});
  });
  afterEach(() => fleet?.stopChurn());
  afterAll(async () => {
    await fleet?.stop();
    redis?.disconnect();
    await system?.stop();
  });

  test('is not filled while the controller is down: agents stop at their windows', async () => {
    // An agent without a reply would hold everything back.
    for (const agent of fleet.agents) {
      await waitFor('the first records are acknowledged', async () => (await unacknowledged(agent)) === 0);
    }
    await controller.kill();
    const memory = watchMemory();
    fleet.startChurn(EVERY_MS);
    await waitFor(
      'every agent has reached its window',
      async () => {
        const full = (await batchesOfAgents()).filter((sizes) => sum(sizes) >= window);
        return full.length === NODES.length;
      },
      BACK_WITHIN_MS,
    );
    const before = await Promise.all(fleet.agents.map(unacknowledged));
    await fleet.deliveredSinceNow(2_000);
    // The batch that reached the window is the last one built.
    for (const sizes of await batchesOfAgents())
      expect(sum(sizes.slice(0, -1))).toBeLessThan(window + PROBE_BYTES);
    for (const [i, agent] of fleet.agents.entries()) {
      await waitFor(
        'they are in the spool',
        async () => (await unacknowledged(agent)) > (before[i] ?? 0) + 1_000,
      );
      await waitFor('it is ready', async () => (await agent.ask('/readyz'))?.status === 200);
    }
    await controller.restart();
    await fleet.expectEverythingOnce();
    expect(memory.stop()).toBeLessThan(MEMORY / 4);
  });

  test('filled by another client holds agents back, sees no retry storm, and loses nothing', async () => {
    const [warned, failed] = [logged(controller, 'warn').length, logged(controller, 'error').length];
    const otherClient = await fillMemory();
    const began = performance.now();
    await redis.config('RESETSTAT');
    fleet.startChurn(100);
    for (const agent of fleet.agents) {
      await waitFor(
        'the agent logs it',
        async () => /^not ok redis: .*OOM/m.test((await agent.ask('/readyz'))?.body ?? ''),
        BACK_WITHIN_MS,
      );
    }
    await waitFor('the controller logs it', async () =>
      (await controller.ask('/readyz'))?.body.includes('not ok redis: Redis refuses to write to'),
    );
    await fleet.deliveredSinceNow(1_000);
    // A worker fetches once a second and searches for stalled jobs. Without backoff each agent alone would try four times a second.
    const perSecond = QUEUES * 1.5 + NODES.length;
    const refused = await refusedWrites();
    const seconds = () => (performance.now() - began) / 1000;
    expect(refused).toBeLessThan(FIRST_TRIES + perSecond * seconds());
    for (const agent of fleet.agents) {
      expect(await unacknowledged(agent)).toBeGreaterThan(0);
      expect((await answerOf(agent, '/livez'))?.status).toBe(200);
    }
    await otherClient.leave();
    await fleet.becomesReady();
    await fleet.expectEverythingOnce();
    await waitFor('the controller is ready', async () => (await controller.ask('/readyz'))?.status === 200);
    // Redis may be full again after a few writes succeeded.
    for (const agent of fleet.agents) {
      const unreachable = logged(agent, 'warn').filter(({ msg }) => msg.startsWith('Redis unreachable'));
      expect(unreachable.length).toBeLessThanOrEqual(3 + seconds() / 5);
    }
    expectFewLines(logged(controller, 'warn').slice(warned), performance.now() - began);
    expect(logged(controller, 'error').slice(failed)).toEqual([]);
  });

  test.each([
    [
      'inboxes while the queues have no jobs',
      inboxKey,
      () => freeze(controller.pid),
      () => goOnWithoutWait(),
    ],
    ['inboxes while the queues have many jobs', inboxKey, () => freezeWithJobs(), () => goOnWithoutWait()],
    [
      'inboxes while the queues have many jobs of a dead controller',
      inboxKey,
      () => freezeWithJobs(),
      () => restartController(),
    ],
    ['signs of life', signsKey, () => freeze(controller.pid), () => goOnWithoutWait()],
    [
      'signs of life while Postgres is down',
      signsKey,
      () => freezeWithoutPostgres(),
      () => emptiedWithoutPostgres(),
    ],
  ])(
    'filled through the %s becomes empty again by itself, and loses nothing',
    async (_, keyOf, stop, goOn) => {
      await stop();
      fleet.startChurn(100);
      await fillWith(keyOf);
      await fleet.deliveredSinceNow(200);
      // Redis itself may need more at any time.
      await redis.config('SET', 'maxmemory', `${MEMORY - 2 * MIB}`);
      await goOn();
      await emptied();
      await redis.config('SET', 'maxmemory', `${MEMORY}`);
      await fleet.becomesReady();
      await fleet.expectEverythingOnce();
    },
  );

  test('that a client goes on to fill through the inboxes is emptied meanwhile, and loses nothing', async () => {
    fleet.startChurn(100);
    await freeze(controller.pid);
    await fillWith(inboxKey);
    let isOver = false;
    const filling = keepFilling(() => isOver);
    thaw(controller.pid);
    const handled = async () => (await metric(controller, 'plegwatch_records_total{result="rejected"}')) ?? 0;
    const before = await handled();
    await waitFor('inputs are handled', async () => (await handled()) > before + 300);
    isOver = true;
    expect(await filling).toBeGreaterThan(0);
    await emptied();
    await fleet.becomesReady();
    await fleet.expectEverythingOnce();
  });
});

const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);

/** The bytes of the batches of each agent in the inboxes, in the order of their records. */
async function batchesOfAgents(): Promise<number[][]> {
  const agents = new Map<string, { first: number; bytes: number }[]>();
  for (let queue = 0; queue < QUEUES; queue += 1) {
    for (const [id, text] of Object.entries(await redis.hgetall(inboxKey(CLUSTER, queue)))) {
      const [agent = '', , first] = id.split('.');
      agents.set(agent, [...(agents.get(agent) ?? []), { first: Number(first), bytes: text.length }]);
    }
  }
  return [...agents.values()].map((batches) =>
    batches.sort((a, b) => a.first - b.first).map(({ bytes }) => bytes),
  );
}

/** Freezes the controller when more jobs wait in each queue than its mover adds to. */
async function freezeWithJobs(): Promise<void> {
  const holder = new Client({ connectionString: system.postgres.url });
  await holder.connect();
  try {
    await holder.query('BEGIN; LOCK TABLE store.rejected, store.epoch IN EXCLUSIVE MODE');
    for (let queue = 0; queue < QUEUES; queue += 1) {
      for (let n = 0; n < 3 * MANY_JOBS; n += 1)
        await redis.hsetnx(inboxKey(CLUSTER, queue), `early.${n}`, '{');
      const waiting = `${queuePrefix(CLUSTER, queue)}:${QUEUE_NAME}:wait`;
      await waitFor('jobs wait', async () => (await redis.llen(waiting)) >= MANY_JOBS);
    }
    await freeze(controller.pid);
  } finally {
    await holder.end();
  }
}

const SIZES = Array.from({ length: 17 }, (_, n) => (4 * MIB) / 2 ** n);
let added = 0;

async function goOnWithoutWait(): Promise<void> {
  thaw(controller.pid);
}

/** Stops Postgres, and freezes the controller when it knows. */
async function freezeWithoutPostgres(): Promise<void> {
  await system.postgres.kill();
  await waitFor('the controller knows', async () =>
    (await controller.ask('/readyz'))?.body.includes('not ok database'),
  );
  await freeze(controller.pid);
}

/** Signs that are too long are removed before Postgres is back. */
async function emptiedWithoutPostgres(): Promise<void> {
  thaw(controller.pid);
  await waitFor('Redis has room', async () => (await usedMemory()) < MEMORY / 2);
  await system.postgres.restart();
}

async function restartController(): Promise<void> {
  await controller.kill();
  await controller.restart();
}

type KeyOf = typeof inboxKey;

/** Adds so many fields of a size at once that Redis cannot have them all, but at most 1,000. Returns whether it refused one. */
async function flood(client: Redis, keyOf: KeyOf, size: number): Promise<boolean> {
  const adding = Array.from({ length: Math.min(1_000, MEMORY / size) }, () => {
    added += 1;
    const id = `flood${added % 1_000}.${added}`;
    const command = keyOf === inboxKey ? 'hsetnx' : 'hset';
    return client[command](keyOf(CLUSTER, added % QUEUES), id, 'x'.repeat(size)).then(
      () => false,
      (error: unknown) => {
        if (String(error).includes('OOM')) return true;
        throw error;
      },
    );
  });
  return (await Promise.all(adding)).includes(true);
}

/** Adds ever smaller fields until not even the smallest fits; no signs that would be read. */
async function fillWith(keyOf: KeyOf): Promise<void> {
  const client = new Redis(system.redis.urlOf('agent'));
  const sizes = keyOf === inboxKey ? SIZES : SIZES.filter((size) => size > MAX_SIGN_BYTES);
  for (const size of sizes) while (!(await flood(client, keyOf, size)));
  client.disconnect();
}

/** Adds inputs of all sizes until it is over. Returns how often Redis was full. */
async function keepFilling(isOver: () => boolean): Promise<number> {
  const client = new Redis(system.redis.urlOf('agent'));
  let full = 0;
  while (!isOver()) for (const size of SIZES) if (await flood(client, inboxKey, size)) full += 1;
  client.disconnect();
  return full;
}

/** Waits until nothing is left in the inboxes and signs, and forgets what was refused. */
async function emptied(): Promise<void> {
  const keys = Array.from({ length: QUEUES }, (_, n) => [inboxKey(CLUSTER, n), signsKey(CLUSTER, n)]).flat();
  const isLeft = async (key: string) => (await redis.hkeys(key)).some((id) => /^(flood|early)/.test(id));
  await waitFor('the inboxes are empty', async () => !(await Promise.all(keys.map(isLeft))).includes(true));
  await system.sql('DELETE FROM store.rejected');
}

async function usedMemory(): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}

function watchMemory(): { stop(): number } {
  let max = 0;
  const timer = setInterval(() => {
    usedMemory().then(
      (used) => {
        max = Math.max(max, used);
      },
      () => undefined,
    );
  }, 100);
  return {
    stop() {
      clearInterval(timer);
      return max;
    },
  };
}

/** Fills Redis with ever smaller values and keeps it full, because its own memory use varies. */
async function fillMemory(): Promise<{ leave(): Promise<void> }> {
  const client = new Redis(system.redis.url);
  let made = 0;
  const fill = async (size: number): Promise<void> => {
    let fits = true;
    while (fits) {
      made += 1;
      fits = await client.set(`other:${made}`, 'x'.repeat(size)).then(
        () => true,
        () => false,
      );
    }
  };
  for (let size = MIB; size > 1024; size /= 2) await fill(size);
  let filling = fill(1024);
  const timer = setInterval(() => {
    filling = filling.then(() => fill(1024));
  }, 20);
  await filling;
  return {
    async leave() {
      clearInterval(timer);
      await filling;
      await client.del(await client.keys('other:*'));
      client.disconnect();
    },
  };
}

/** Writes that Redis has refused, of agents and of workers. */
async function refusedWrites(): Promise<number> {
  const stats = await redis.info('commandstats');
  const counts = [
    /^cmdstat_evalsha:.*failed_calls=(\d+)/m.exec(stats),
    /^cmdstat_hsetnx:.*rejected_calls=(\d+)/m.exec(stats),
  ];
  return counts.reduce((sum, found) => sum + Number(found?.[1] ?? 0), 0);
}
