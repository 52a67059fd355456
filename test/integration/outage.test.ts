/*
 * Outages of a running system: the runtime, Redis, Postgres and the agent, each killed or frozen during pod churn. At the end the
 * store holds exactly the events that the simulated runtime delivered, each once, every gap is reported, and no delivered event is
 * called missed. An outage of the API server is in apiServerOutage.test.ts.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LocalService } from '../../devtools/localServices/localService.ts';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { PROFILES } from '../../devtools/simulator/profiles.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { BLUR } from '../support/completeness.ts';
import { expectEachOutageLoggedOnce, outageLines } from '../support/fleet.ts';
import { needs } from '../support/needs.ts';
import { LASTING_READER, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** Pods that run at the same time, and how often one is replaced. */
const MAX_PODS = 6;
const EVERY_MS = 60;
/** Longer than any backoff, with room for a busy machine. */
const BACK_WITHIN_MS = 240_000;
const BLUR_US = BLUR * 1_000;

let system: System;
let controller: LocalPlegwatch;
let runtime: SimulatedRuntime;
let agents: LocalPlegwatch[] = [];
let frozen: number[] = [];
let stopChurn: () => Promise<void> = async () => undefined;
let nodes = 0;
/** Events delivered before the current agent started. */
let before = 0;

needs('redis-server', 'postgres')('an outage of a running system:', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    controller = await system.controller();
  });
  afterAll(async () => {
    try {
      expect(await system?.undeclaredGaps()).toEqual([]);
      await system?.expectNoDifference();
    } finally {
      await system?.stop();
    }
  });

  describe('with one agent over all of them,', () => {
    let agent: LocalPlegwatch;
    /** The lines that the agent has logged before the test, and those of them about outages. */
    let [lines, outages] = [0, 0];
    const linesOf = () => agent.log().split('\n').length;

    beforeAll(async () => {
      await addNode();
      agent = await watched();
    });
    beforeEach(async () => {
      await becomesReady(controller);
      await becomesReady(agent);
      [lines, outages] = [linesOf(), outageLines(agent).length];
    });
    afterEach(calm);
    afterAll(removeNode);

    test('a Redis that is killed and comes back empty, twice, loses nothing', async () => {
      startChurn();
      for (let crash = 0; crash < 2; crash += 1) {
        await deliveredSinceNow(100);
        await system.redis.kill();
        await becomesUnready(agent, 'redis');
        await deliveredSinceNow(100);
        await system.redis.restart();
        await becomesReady(agent);
      }
      await expectEverythingOnce(agent);
      expectEachOutageLoggedOnce(agent, 2, outages);
      await becomesReady(controller);
    });

    test('a Redis that is wiped while it runs loses nothing', async () => {
      startChurn();
      await freeze(controller);
      await deliveredSinceNow(200);
      await waitFor('something waits in Redis', async () => (await unacknowledged(agent)) > 0);
      await wipe();
      await deliveredSinceNow(100);
      await thaw();
      await expectEverythingOnce(agent);
    });

    test('a Redis that is frozen for a while loses nothing, and is not retried in a tight loop', async () => {
      const began = performance.now();
      startChurn();
      await freeze(system.redis);
      await becomesUnready(agent, 'redis');
      await deliveredSinceNow(300);
      await thaw();
      await becomesReady(agent);
      await expectEverythingOnce(agent);
      expectEachOutageLoggedOnce(agent, 1, outages);
      expect(linesOf() - lines).toBeLessThan(60 + (performance.now() - began) / 1_000);
    });

    test('a controller ends although Redis is down, and loses nothing', async () => {
      startChurn();
      await deliveredSinceNow(50);
      await system.redis.kill();
      await waitFor('the controller notices', async () =>
        (await controller.ask('/readyz'))?.body.includes('not ok redis'),
      );
      await controller.kill('SIGTERM');
      await waitFor('it has ended', () => !controller.running());
      await Promise.all([system.redis.restart(), controller.restart()]);
      await expectEverythingOnce(agent);
    });

    test('a full Redis is logged once, holds the agent back, and loses nothing', async () => {
      await redisCommand('CONFIG', 'SET', 'maxmemory', '1');
      startChurn();
      await becomesUnready(agent, 'redis');
      await waitFor('that is why', async () =>
        /^not ok redis: .*OOM/m.test((await agent.ask('/readyz'))?.body ?? ''),
      );
      const atFirst = outageLines(agent);
      await deliveredSinceNow(300);
      expect(outageLines(agent)).toEqual(atFirst);
      await redisCommand('CONFIG', 'SET', 'maxmemory', '0');
      await becomesReady(agent);
      await expectEverythingOnce(agent);
      expectEachOutageLoggedOnce(agent, 1, outages);
    });

    test('a Postgres that is killed and restarted loses nothing', async () => {
      startChurn();
      await deliveredSinceNow(100);
      await system.postgres.kill();
      await becomesUnready(controller, 'database');
      await deliveredSinceNow(200);
      await system.postgres.restart();
      await becomesReady(controller);
      await expectEverythingOnce(agent);
      await becomesReady(agent);
    });

    test('a Postgres that is frozen for a while loses nothing', async () => {
      startChurn();
      await freeze(system.postgres);
      await becomesUnready(controller, 'database');
      await deliveredSinceNow(100);
      await thaw();
      await becomesReady(controller);
      await expectEverythingOnce(agent);
    });

    test('a Postgres without a free connection for the controller loses nothing', async () => {
      startChurn();
      const clients = await takeAllConnections(system.postgres.url);
      try {
        await becomesUnready(controller, 'database');
        await deliveredSinceNow(200);
      } finally {
        await Promise.all(clients.map((client) => client.end()));
      }
      await becomesReady(controller);
      await expectEverythingOnce(agent);
    });

    test('a read-only Postgres, as in recovery, loses nothing', async () => {
      startChurn();
      await deliveredSinceNow(100);
      await mayWrite(false);
      try {
        await deliveredSinceNow(200);
        await waitFor('records wait', async () => (await unacknowledged(agent)) > 0);
      } finally {
        await mayWrite(true);
      }
      await expectEverythingOnce(agent);
      expect(await system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
    });
  });

  describe('with an agent of its own,', () => {
    beforeEach(addNode);
    afterEach(removeNode);

    test('a restart of the runtime is a gap with exact bounds, and no event is called missed', async () => {
      const agent = await watched();
      startChurn();
      await deliveredSinceNow(100);
      await stopChurn();
      await received(agent);
      const lastBefore = Math.max(...delivered().map(({ at }) => at));
      await runtime.goDown();
      const down = Date.now() * 1000;
      // The end of these pods is never delivered.
      for (const id of [...runtime.pods.sandboxes.keys()].slice(0, 3)) runtime.removePod(id);
      await becomesUnready(agent, 'relist');
      await runtime.comeUp();
      await becomesReady(agent);
      await resubscribes();
      startChurn();
      await deliveredSinceNow(100);
      await stopChurn();
      await expectEverythingOnce(agent);
      const gaps = await system.sql<{ cause: string; from_us: number; to_us: number }>(
        `SELECT cause, (extract(epoch FROM from_at) * 1e6)::float8 AS from_us, (extract(epoch FROM to_at) * 1e6)::float8 AS to_us
           FROM plegwatch.gaps WHERE node = $1 AND scope = 'stream' AND cause = 'broken' ORDER BY from_at`,
        node(),
      );
      expect(gaps).toHaveLength(1);
      const [gap] = gaps;
      // It begins when the stream was last known to be complete: the last event of the session proves that.
      expect(gap?.from_us).toBeGreaterThan(lastBefore - BLUR_US);
      expect(gap?.from_us).toBeLessThan(down + BLUR_US);
      // It ends when the first event after it was received.
      const [first] = await system.sql<{ us: number }>(
        `SELECT (extract(epoch FROM min(received_at)) * 1e6)::float8 AS us FROM plegwatch.container_events
          WHERE node = $1 AND received_at > to_timestamp($2::float8 / 1e6)`,
        node(),
        down,
      );
      expect(gap?.to_us).toBe(first?.us);
      const lists = await system.sql(
        "SELECT 1 FROM plegwatch.gaps WHERE node = $1 AND scope = 'list' AND to_at IS NOT NULL",
        node(),
      );
      expect(lists.length).toBeGreaterThan(0);
    });

    test('an agent that is killed with unsent records and restarted loses nothing, and its downtime is a gap', async () => {
      const agent = await watched();
      startChurn();
      await system.redis.kill();
      await becomesUnready(agent, 'redis');
      await deliveredSinceNow(200);
      await stopChurn();
      await received(agent);
      // Events that are not written yet die with the agent.
      await waitFor('every event is in the spool', () => eventsInSpool() === delivered().length);
      await agent.kill('SIGKILL');
      const killed = Date.now();
      // Without a subscriber the runtime keeps events for the next one.
      await waitFor('nobody is subscribed', () => runtime.subscribers === 0);
      startChurn();
      await waitFor('events are queued', () =>
        runtime.truth.entries.some((e) => e.what === 'event' && e.queued),
      );
      await restarted(agent);
      const back = Date.now();
      await system.redis.restart();
      await becomesReady(agent);
      await deliveredSinceNow(50);
      await expectEverythingOnce(agent);
      const downtimes = await system.sql<{ from_ms: number; to_ms: number }>(
        `SELECT extract(epoch FROM from_at)::float8 * 1000 AS from_ms, extract(epoch FROM to_at)::float8 * 1000 AS to_ms
           FROM plegwatch.gaps WHERE node = $1 AND scope = 'agent' AND cause = 'died'`,
        node(),
      );
      expect(downtimes).toHaveLength(1);
      expect(downtimes[0]?.from_ms).toBeLessThanOrEqual(killed);
      // It begins at the last event in the spool, or later.
      const [last] = await system.sql<{ ms: number }>(
        `SELECT extract(epoch FROM max(received_at))::float8 * 1000 AS ms FROM plegwatch.container_events
          WHERE node = $1 AND received_at < to_timestamp($2::float8 / 1000)`,
        node(),
        killed,
      );
      expect(downtimes[0]?.from_ms).toBeGreaterThan((last?.ms ?? Number.NaN) - BLUR_US / 1_000);
      expect(downtimes[0]?.to_ms).toBeGreaterThan(killed);
      expect(downtimes[0]?.to_ms).toBeLessThanOrEqual(back);
      const incarnations = await system.sql('SELECT 1 FROM plegwatch.epochs WHERE node = $1', node());
      expect(incarnations).toHaveLength(2);
    });

    test('events of an earlier incarnation keep its versions although they are stored later', async () => {
      await system.redis.kill();
      const agent = await subscribed();
      await becomesUnready(agent, 'redis');
      startChurn();
      await deliveredSinceNow(50);
      await stopChurn();
      await received(agent);
      await agent.kill('SIGKILL');
      await runtime.stop();
      const profile = { ...PROFILES['containerd-2.1'], runtimeVersion: '2.2.0' };
      runtime = await startSimulatedRuntime({ socket: runtime.socket, seed: nodes, profile });
      before = 0;
      await agent.restart();
      await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
      await system.redis.restart();
      await becomesReady(agent);
      startChurn();
      await deliveredSinceNow(50);
      await stopChurn();
      await received(agent);
      await waitFor(
        'everything is acknowledged',
        async () => (await unacknowledged(agent)) === 0,
        BACK_WITHIN_MS,
      );
      const seen = await system.sql<{ versions: string[] }>(
        `SELECT array_agg(DISTINCT runtime_version) AS versions FROM plegwatch.container_events
          WHERE node = $1 GROUP BY epoch ORDER BY min(received_at)`,
        node(),
      );
      expect(seen.map(({ versions }) => versions)).toEqual([['2.1.9+unknown'], ['2.2.0']]);
    });

    test('an agent ships its records before it exits, and loses nothing over a restart', async () => {
      const agent = await watched();
      startChurn();
      await deliveredSinceNow(100);
      await stopChurn();
      await received(agent);
      await restarted(agent);
      await resubscribes();
      startChurn();
      await deliveredSinceNow(100);
      await expectEverythingOnce(agent);
    });

    test('an agent exits although Redis is frozen', async () => {
      const agent = await watched();
      startChurn();
      await freeze(system.redis);
      await deliveredSinceNow(50);
      await stopChurn();
      await received(agent);
      await agent.kill('SIGTERM');
      // Redis is frozen until it has.
      await waitFor('it has ended', () => !agent.running());
      await thaw();
      await restarted(agent);
      await becomesReady(agent);
      await expectEverythingOnce(agent);
    });

    test('a second agent with the same spool waits until the first has exited', async () => {
      const first = await watched();
      const second = system.agent(node(), runtime.socket, LASTING_READER);
      startChurn();
      await deliveredSinceNow(100);
      await waitFor('the second asks for the lock', () => anyAgentLogged('waiting for the spool lock'));
      expect(runtime.subscribers).toBe(1);
      await stopChurn();
      await received(first);
      await first.stop();
      agents = [];
      before = delivered().length;
      const successor = await second;
      agents.push(successor);
      await becomesReady(successor);
      startChurn();
      await deliveredSinceNow(100);
      await expectEverythingOnce(successor);
    });
  });
});

const node = (): string => `node-${nodes}`;

async function addNode(): Promise<void> {
  nodes += 1;
  runtime = await startSimulatedRuntime({ socket: system.folder(`cri-${nodes}.sock`), seed: nodes });
}

async function removeNode(): Promise<void> {
  await calm();
  for (const agent of agents) await agent.stop();
  agents = [];
  await runtime.stop();
}

/** Ends what a failed test may have left. */
async function calm(): Promise<void> {
  await thaw();
  await stopChurn();
}

async function subscribed(): Promise<LocalPlegwatch> {
  before = 0;
  const agent = await system.agent(node(), runtime.socket, LASTING_READER);
  agents.push(agent);
  await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
  return agent;
}

/** Starts an agent that is subscribed and has listed; a first pod arms its stream. */
async function watched(): Promise<LocalPlegwatch> {
  const agent = await subscribed();
  runtime.runPod({ name: 'first', containers: ['app'] });
  await becomesReady(agent);
  return agent;
}

/** A subscription is retried after up to a minute, to spare the runtime. */
async function resubscribes(): Promise<void> {
  await waitFor('the agent is subscribed again', () => runtime.subscribers > 0, BACK_WITHIN_MS);
}

async function restarted(agent: LocalPlegwatch): Promise<void> {
  before = delivered().length;
  await agent.restart();
}

/** Creates and removes pods until `stopChurn`. */
function startChurn(): void {
  let made = 0;
  const timer = setInterval(() => {
    made += 1;
    runtime.runPod({ name: `pod-${made}`, namespace: 'shop', containers: ['app'] });
    const [oldest] = runtime.pods.sandboxes.keys();
    if (runtime.pods.sandboxes.size > MAX_PODS && oldest !== undefined) runtime.removePod(oldest);
  }, EVERY_MS);
  stopChurn = async () => clearInterval(timer);
}

/** The events that were delivered to a subscriber according to the ground truth. */
function delivered() {
  return runtime.truth.entries.flatMap((entry) => (entry.what === 'event' && entry.delivered ? [entry] : []));
}

async function deliveredSinceNow(count: number): Promise<void> {
  const wanted = delivered().length + count;
  await waitFor(`${count} more events`, () => delivered().length >= wanted, BACK_WITHIN_MS);
}

/** Waits until the agent has received every event delivered since it started. */
async function received(agent: LocalPlegwatch): Promise<void> {
  await waitFor('the agent has every event', async () => {
    const body = (await agent.ask('/metrics'))?.body ?? '';
    const counts = [...body.matchAll(/^plegwatch_events_received_total\{.*\} (\d+)$/gm)].map((m) =>
      Number(m[1]),
    );
    return counts.reduce((sum, n) => sum + n, 0) === delivered().length - before;
  });
}

/** How many events the segments of the spool hold. */
function eventsInSpool(): number {
  const epochs = join(system.folder(`spool-${node()}`), 'epochs');
  const segments = readdirSync(epochs, { encoding: 'utf8', recursive: true }).filter((name) =>
    name.endsWith('.seg'),
  );
  const text = segments.map((name) => readFileSync(join(epochs, name), 'utf8')).join('');
  return text.split('"type":"container_event"').length - 1;
}

const unacknowledged = async (agent: LocalPlegwatch) =>
  (await metric(agent, 'plegwatch_unacked_records')) ?? 0;

/** Whether any agent of these tests has logged this, even one that is not ready yet. */
function anyAgentLogged(message: string): boolean {
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(`plegwatch-agent-${process.pid}-`))
    .some((name) => readFileSync(join(tmpdir(), name, 'agent.log'), 'utf8').includes(message));
}

async function becomesUnready(program: LocalPlegwatch, check: string): Promise<void> {
  await waitFor(
    `not ok ${check}`,
    async () => {
      const answer = await program.ask('/readyz');
      return answer?.status === 503 && answer.body.includes(`not ok ${check}`);
    },
    BACK_WITHIN_MS,
  );
}

async function becomesReady(program: LocalPlegwatch): Promise<void> {
  await waitFor('ready', async () => (await program.ask('/readyz'))?.status === 200, BACK_WITHIN_MS);
}

const OTHER_CLIENT = 'another client';

/** Terminates the controller's connections and takes every free one. */
async function takeAllConnections(url: string): Promise<Client[]> {
  const clients: Client[] = [];
  const fill = async (): Promise<void> => {
    for (;;) {
      const client = new Client({ connectionString: url, application_name: OTHER_CLIENT });
      client.on('error', () => undefined);
      try {
        await client.connect();
      } catch (error) {
        if (Reflect.get(Object(error), 'code') === '53300') return;
        throw error;
      }
      clients.push(client);
    }
  };
  await fill();
  // The controller may reconnect first; a connection being established has no name yet.
  for (let its = 1; its > 0; ) {
    const ended = await clients[0]?.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1",
      [OTHER_CLIENT],
    );
    its = ended?.rowCount ?? 0;
    await fill();
  }
  return clients;
}

/** Makes Postgres refuse writes, as a server in recovery does, or accept them. */
async function mayWrite(may: boolean): Promise<void> {
  const client = new Client({
    connectionString: system.postgres.url,
    options: '-c default_transaction_read_only=off',
  });
  await client.connect();
  try {
    await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${may ? 'off' : 'on'}`);
    await client.query('SELECT pg_reload_conf()');
  } finally {
    await client.end();
  }
}

/** Freezes a program and its child processes; their sockets stay open. */
async function freeze(service: LocalService): Promise<void> {
  const pids = [service.pid, ...childrenOf(service.pid)];
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  frozen = pids;
}

async function thaw(): Promise<void> {
  for (const pid of frozen) process.kill(pid, 'SIGCONT');
  frozen = [];
}

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

async function redisCommand(command: string, ...args: readonly string[]): Promise<void> {
  const redis = new Redis(system.redis.url);
  try {
    await redis.call(command, ...args);
  } finally {
    redis.disconnect();
  }
}

const wipe = () => redisCommand('FLUSHALL');

/** Waits until nothing is in flight, then expects the store to equal the ground truth. */
async function expectEverythingOnce(agent: LocalPlegwatch): Promise<void> {
  await stopChurn();
  await received(agent);
  await waitFor('every pending event is judged', async () => {
    return (await metric(agent, 'plegwatch_pending_events')) === 0;
  });
  await waitFor(
    'everything is acknowledged',
    async () => (await unacknowledged(agent)) === 0,
    BACK_WITHIN_MS,
  );
  const rows = await system.sql<{ event: string }>(
    "SELECT container_id || ' ' || event_type AS event FROM plegwatch.container_events WHERE node = $1",
    node(),
  );
  const expected = delivered().map(({ id, type }) => `${id} ${type}`);
  expect(rows.map(({ event }) => event).sort()).toEqual(expected.sort());
  const missed = await system.sql(
    "SELECT event_type, pod_name, cause, proof FROM plegwatch.findings WHERE node = $1 AND kind = 'missed'",
    node(),
  );
  expect(missed).toEqual([]);
  const epochs = await system.sql<{ acked_seq: number; last_seq: number; records_lost: number }>(
    'SELECT acked_seq, last_seq, records_lost::int4 FROM plegwatch.epochs WHERE node = $1 ORDER BY incarnation',
    node(),
  );
  for (const { acked_seq, last_seq, records_lost } of epochs)
    expect([acked_seq, records_lost]).toEqual([last_seq, 0]);
  expect(epochs.length).toBeGreaterThan(0);
  expect(await system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
  expect(await system.undeclaredGaps(node())).toEqual([]);
}
