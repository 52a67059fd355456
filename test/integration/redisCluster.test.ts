/*
 * Redis as more than one server: a cluster whose masters share the queues, and a master with failover by Sentinel. A killed
 * server loses its data, and no record is lost.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import type { LocalRedis } from '../../devtools/localServices/redis.ts';
import {
  command,
  type LocalRedisCluster,
  startRedisCluster,
} from '../../devtools/localServices/redisCluster.ts';
import { type LocalRedisSentinel, startRedisSentinel } from '../../devtools/localServices/redisSentinel.ts';
import { windowOf } from '../../src/controller/ingest/flow.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { flowSettingsKey, inboxKey, parseFlowSettings, queueOf } from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis } from '../../src/redis/client.ts';
import {
  BACK_WITHIN_MS,
  complaints,
  expectEachOutageLoggedOnce,
  expectFewLines,
  Fleet,
  logged,
  outageLines,
  unacknowledged,
} from '../support/fleet.ts';
import { needs } from '../support/needs.ts';
import { CLUSTER, System } from '../support/system.ts';
import { passes, waitFor } from '../support/waitFor.ts';

const QUEUES = 4;
const NODES = ['a', 'b', 'c', 'd'];
const EVERY_MS = 60;
const MEMORY = 64 * 1024 * 1024;
/** Nodes that make the window small enough to fill within seconds. */
const KNOWN_NODES = 1_000;
/** Compressed bytes of a batch of such records. */
const MAX_BATCH_BYTES = 64 * 1024;
/** Short intervals: reconnect often and resend soon. */
const SOON: PlegwatchSettings = { intervalRedisRetry: '1s', intervalResend: '2s', intervalFlow: '1s' };

let system: System;
let controller: LocalPlegwatch;
let fleet: Fleet | undefined;
let generation = 0;

/** Starts new agents instead of those that run; none inherits a spool. */
async function watch(redisUrl: string, names: readonly string[] = NODES): Promise<Fleet> {
  await endWatch();
  generation += 1;
  fleet = await Fleet.start(
    system,
    names.map((name) => `${name}-${generation}`),
    { redisUrl, ...SOON },
  );
  return fleet;
}

async function endWatch(): Promise<void> {
  await fleet?.stop();
  fleet = undefined;
}

/** Says what the controller complained about, if not everything arrives. */
async function expectEverythingOnce(): Promise<void> {
  await watching()
    .expectEverythingOnce()
    .catch((error: unknown) => {
      throw new Error(`${messageOf(error)}; the controller: ${complaints(controller)}`, { cause: error });
    });
}

/** The agents that run. */
function watching(): Fleet {
  if (fleet === undefined) throw new Error('no agents were started');
  return fleet;
}

needs('redis-server', 'postgres')('Redis as more than one server:', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
  });
  afterEach(() => fleet?.stopChurn());
  afterAll(() => system?.stop());

  describe('a cluster', () => {
    let cluster: LocalRedisCluster;
    beforeAll(async () => {
      cluster = await startRedisCluster();
      controller = await system.controller({ redisUrl: cluster.urlOf('controller'), ...SOON });
      await watch(cluster.urlOf('agent'));
    });
    afterAll(async () => {
      await endWatch();
      await system.end(controller);
      await cluster?.stop();
    });

    /** The master of a key: the one that does not send us to another. */
    async function masterOf(key: string): Promise<LocalRedis> {
      for (const master of cluster.masters) {
        const there = await command(master, 'EXISTS', key).then(
          () => true,
          () => false,
        );
        if (there) return master;
      }
      throw new Error(`no master has the slot of ${key}`);
    }
    const inboxOf = (node: string) => inboxKey(CLUSTER, queueOf(node, QUEUES));
    /** A key of the master that has the inbox: gone when its data is. */
    const markOf = (node: string) => `${inboxOf(node)}-mark`;

    test('spreads the queues over several masters, and every record arrives once', async () => {
      const nodes = watching();
      nodes.startChurn(EVERY_MS);
      await nodes.deliveredSinceNow(150);
      const masters = new Set<number>();
      for (const { name } of nodes.nodes) {
        masters.add((await masterOf(inboxOf(name))).port);
      }
      expect(masters.size).toBeGreaterThan(1);
      await expectEverythingOnce();
    });

    test('loses nothing when a master with batches is killed and comes back empty', async () => {
      const nodes = watching();
      nodes.startChurn(EVERY_MS);
      await nodes.deliveredSinceNow(50);
      const [first] = nodes.nodes;
      if (first === undefined) throw new Error('a fleet without a node');
      const doomed = await masterOf(inboxOf(first.name));
      process.kill(controller.pid, 'SIGSTOP');
      try {
        await waitFor('batches wait on this master', async () => {
          return Number(await command(doomed, 'HLEN', inboxOf(first.name))) > 0;
        });
        await command(doomed, 'SET', markOf(first.name), '1');
        await doomed.kill();
        await waitFor(
          'the agent logs it',
          async () => (await first.agent.ask('/readyz'))?.body.includes('not ok redis'),
          BACK_WITHIN_MS,
        );
        await nodes.deliveredSinceNow(50);
        await doomed.restart();
        // Agents send again at once. The cluster answers once it knows that the master is back.
        await passes(async () => expect(await command(doomed, 'EXISTS', markOf(first.name))).toBe(0));
      } finally {
        process.kill(controller.pid, 'SIGCONT');
      }
      await nodes.becomesReady();
      await expectEverythingOnce();
    });

    test('loses nothing when all masters are killed and come back empty', async () => {
      const nodes = watching();
      nodes.startChurn(EVERY_MS);
      await nodes.deliveredSinceNow(50);
      const killed = performance.now();
      const warnedBefore = logged(controller, 'warn').length;
      const outagesBefore = nodes.agents.map((agent) => outageLines(agent).length);
      await Promise.all(cluster.masters.map((master) => master.kill()));
      // Longer than a worker waits for a job: each has noticed and tried to reconnect.
      await nodes.deliveredSinceNow(700);
      for (const agent of nodes.agents) {
        await waitFor(
          'the agent logs it',
          async () => (await agent.ask('/readyz'))?.body.includes('not ok redis'),
          BACK_WITHIN_MS,
        );
        expect(await unacknowledged(agent)).toBeGreaterThan(0);
      }
      const atFirst = nodes.agents.map(outageLines);
      await nodes.deliveredSinceNow(200);
      expect(nodes.agents.map(outageLines)).toEqual(atFirst);
      await Promise.all(cluster.masters.map((master) => master.restart()));
      await nodes.becomesReady();
      await expectEverythingOnce();
      expectFewLines(logged(controller, 'warn').slice(warnedBefore), performance.now() - killed);
      for (const [i, agent] of nodes.agents.entries()) expectEachOutageLoggedOnce(agent, 1, outagesBefore[i]);
    });

    test('a cluster of three times 64 MiB is not filled while the controller is down: agents stop at their windows', async () => {
      for (const master of cluster.masters) await command(master, 'CONFIG', 'SET', 'maxmemory', `${MEMORY}`);
      await system.sql(
        `INSERT INTO store.node (cluster_id, name, last_seen)
         SELECT cluster_id, 'other-' || n, now() FROM store.cluster, generate_series(1, ${KNOWN_NODES}) n`,
      );
      const flowMaster = await masterOf(flowSettingsKey(CLUSTER));
      const window = await waitFor('the window is that of a fleet', async () => {
        const flow = parseFlowSettings(String(await command(flowMaster, 'GET', flowSettingsKey(CLUSTER))));
        return flow.ok && flow.value.window <= windowOf(KNOWN_NODES, MEMORY) ? flow.value.window : undefined;
      });
      // An agent that starts has this window from the first batch on.
      const nodes = await watch(cluster.urlOf('agent'));
      for (const agent of nodes.agents) {
        await waitFor('the first records are acknowledged', async () => (await unacknowledged(agent)) === 0);
      }
      await controller.kill();
      nodes.startChurn(EVERY_MS / 3);
      await waitFor(
        'agents send nothing more',
        async () => {
          const before = await queuedBytes();
          await nodes.deliveredSinceNow(500);
          return before >= NODES.length * window && (await queuedBytes()) === before;
        },
        BACK_WITHIN_MS,
      );
      // The batch that reaches the window is the last one of an agent.
      expect(await queuedBytes()).toBeLessThan(NODES.length * (window + MAX_BATCH_BYTES));
      for (const agent of nodes.agents) expect(await unacknowledged(agent)).toBeGreaterThan(0);
      for (const master of cluster.masters) {
        const used = /^used_memory:(\d+)/m.exec(String(await command(master, 'INFO', 'memory')));
        expect(Number(used?.[1])).toBeLessThan(MEMORY / 4);
      }
      await controller.restart();
      await expectEverythingOnce();
    });

    test('commands that wait for a cluster end with the connection', async () => {
      const redis = connectRedis(
        { redisUrl: cluster.urlOf('controller') },
        { maxRetry: millis(1_000), onError: () => undefined, patient: true },
      );
      const [first, ...others] = Array.from({ length: QUEUES }, (_, queue) => inboxKey(CLUSTER, queue));
      const doomed = await masterOf(first ?? '');
      for (const inbox of [first ?? '', ...others]) await redis.hlen(inbox);
      await doomed.kill();
      // The others refuse every command without it.
      const alive = cluster.masters.filter((each) => each !== doomed);
      await waitFor('the cluster is down', async () => {
        const states = await Promise.all(alive.map((each) => command(each, 'CLUSTER', 'INFO')));
        return states.every((state) => String(state).includes('cluster_state:fail'));
      });
      const asked = others.map((inbox) => redis.hlen(inbox).catch(messageOf));
      await Promise.all(alive.map((each) => command(each, 'PING')));
      redis.disconnect();
      for (const answer of await Promise.all(asked)) expect(answer).not.toMatch(/timed out/);
      await doomed.restart();
    });

    /** The bytes of all batches in all inboxes. */
    async function queuedBytes(): Promise<number> {
      let bytes = 0;
      for (let queue = 0; queue < QUEUES; queue += 1) {
        const inbox = inboxKey(CLUSTER, queue);
        const texts = await command(await masterOf(inbox), 'HVALS', inbox);
        if (!Array.isArray(texts)) throw new Error(`${inbox} is no inbox`);
        bytes += texts.reduce((sum, text) => sum + String(text).length, 0);
      }
      return bytes;
    }
  });

  describe('a master and its replica', () => {
    let redis: LocalRedisSentinel;
    beforeAll(async () => {
      redis = await startRedisSentinel();
      controller = await system.controller({ redisUrl: redis.urlOf('controller'), ...SOON });
    });
    afterAll(async () => {
      await endWatch();
      await system.end(controller);
      await redis?.stop();
    });

    test('lose nothing over a requested failover and over the death of the master', async () => {
      const nodes = await watch(redis.urlOf('agent'), NODES.slice(0, 2));
      nodes.startChurn(EVERY_MS);
      await nodes.deliveredSinceNow(50);
      const former = await redis.master();
      await command(redis.sentinel, 'SENTINEL', 'FAILOVER', 'plegwatch');
      await waitFor('the other is master', async () => (await redis.master()) !== former);
      await nodes.deliveredSinceNow(50);
      // Whichever is master by now: on a busy machine the Sentinel may have failed over by itself.
      const doomed = await waitFor('one follows the other', async () => {
        const port = await redis.master();
        const follower = redis.servers.find((server) => server.port !== port);
        const replication = follower === undefined ? '' : await command(follower, 'INFO', 'replication');
        const follows = /role:slave.*master_link_status:up/s.test(String(replication));
        return follows ? redis.servers.find((server) => server.port === port) : undefined;
      });
      await doomed.kill();
      await waitFor('the other is master', async () => (await redis.master()) !== doomed.port);
      await nodes.deliveredSinceNow(50);
      await nodes.becomesReady();
      await expectEverythingOnce();
    });
  });
});
