/*
 * What goes away later: the runtime, Redis, Postgres, the API server, the agent, each killed or frozen while pods live and
 * die. At the end the store has exactly what the simulated runtime's truth says was delivered, each event once, every gap
 * is told, and nothing is accused that was announced.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LocalService } from '../../devtools/localServices/localService.ts';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { PROFILES } from '../../devtools/simulator/profiles.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { needs } from '../support/needs.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** Pods that live at the same time, and how often one is replaced. */
const LIVING = 6;
const EVERY_MS = 60;
/** Long enough for any backoff to have passed, at a busy machine. */
const BACK_WITHIN_MS = 90_000;

let system: System;
let controller: LocalPlegwatch;
let runtime: SimulatedRuntime;
let agents: LocalPlegwatch[] = [];
let frozen: number[] = [];
let stopTraffic: () => Promise<void> = async () => undefined;
let nodes = 0;
/** What had been delivered when the present life of the agent began. */
let before = 0;

needs(
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('when it goes away later,', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    controller = await system.controller();
  });
  beforeEach(async () => {
    nodes += 1;
    await system.addNode(node());
    runtime = await startSimulatedRuntime({ socket: system.folder(`cri-${nodes}.sock`), seed: nodes });
  });
  afterEach(async () => {
    for (const pid of frozen) process.kill(pid, 'SIGCONT');
    frozen = [];
    await stopTraffic();
    for (const agent of agents) await agent.stop();
    agents = [];
    await runtime.stop();
  });
  afterAll(() => system?.stop());

  test('a Redis that is killed and comes back empty, twice, loses nothing', async () => {
    const agent = await watched();
    live();
    for (let crash = 0; crash < 2; crash += 1) {
      await deliveredSinceNow(100);
      await system.redis.kill();
      await saysNotReady(agent, 'redis');
      await deliveredSinceNow(100);
      await system.redis.restart();
      await becomesReady(agent);
    }
    await expectEverythingOnce(agent);
    expect(logged(agent, 'Redis unreachable, records stay in the spool').length).toBeLessThanOrEqual(4);
    expect(logged(agent, 'Redis reachable, records are shipped').length).toBeGreaterThanOrEqual(2);
    await becomesReady(controller);
  });

  test('a Redis that is wiped while it runs loses nothing', async () => {
    const agent = await watched();
    live();
    await freeze(controller);
    await deliveredSinceNow(200);
    await waitFor('something waits in Redis', async () => (await unacknowledged(agent)) > 0 || undefined);
    await wipe();
    await deliveredSinceNow(100);
    await thaw();
    await expectEverythingOnce(agent);
  });

  test('a Redis that is frozen for a while loses nothing, and is not asked in a tight loop', async () => {
    const agent = await watched();
    live();
    await freeze(system.redis);
    await saysNotReady(agent, 'redis');
    await deliveredSinceNow(300);
    await thaw();
    await becomesReady(agent);
    await expectEverythingOnce(agent);
    expect(logged(agent, 'Redis unreachable, records stay in the spool')).toHaveLength(1);
    expect(agent.log().split('\n').length).toBeLessThan(60);
  });

  test('a Redis that is full is told once, holds the agent back, and loses nothing', async () => {
    const agent = await watched();
    await redisCommand('CONFIG', 'SET', 'maxmemory', '1');
    live();
    await saysNotReady(agent, 'redis');
    await deliveredSinceNow(300);
    expect((await agent.ask('/readyz'))?.body).toMatch(/^not ok redis: .*OOM/m);
    await redisCommand('CONFIG', 'SET', 'maxmemory', '0');
    await becomesReady(agent);
    await expectEverythingOnce(agent);
    expect(logged(agent, 'Redis unreachable, records stay in the spool')).toHaveLength(1);
  });

  test('a Postgres that is killed and started again loses nothing', async () => {
    const agent = await watched();
    live();
    await deliveredSinceNow(100);
    await system.postgres.kill();
    await saysNotReady(controller, 'database');
    await deliveredSinceNow(200);
    await system.postgres.restart();
    await becomesReady(controller);
    await expectEverythingOnce(agent);
    expect((await agent.ask('/readyz'))?.status).toBe(200);
  });

  test('a Postgres that is frozen for a while loses nothing', async () => {
    const agent = await watched();
    live();
    await freeze(system.postgres);
    await saysNotReady(controller, 'database');
    await deliveredSinceNow(100);
    await thaw();
    await becomesReady(controller);
    await expectEverythingOnce(agent);
  });

  test('a Postgres that has no connection left for the controller loses nothing', async () => {
    const agent = await watched();
    live();
    const strangers = await takeAllConnections(system.postgres.url);
    try {
      await saysNotReady(controller, 'database');
      await deliveredSinceNow(200);
    } finally {
      await Promise.all(strangers.map((stranger) => stranger.end()));
    }
    await becomesReady(controller);
    await expectEverythingOnce(agent);
  });

  test('a Postgres that takes no writes, as one in recovery, loses nothing', async () => {
    const agent = await watched();
    live();
    await deliveredSinceNow(100);
    await mayWrite(false);
    try {
      await deliveredSinceNow(200);
      await waitFor('records wait', async () => (await unacknowledged(agent)) > 0 || undefined);
    } finally {
      await mayWrite(true);
    }
    await expectEverythingOnce(agent);
    expect(await system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
  });

  test('an API server that is killed and started again gets the reports that were due', async () => {
    const agent = await watched();
    await system.api.kill();
    live();
    await saysNotReady(controller, 'reports');
    await deliveredSinceNow(100);
    await system.api.restart();
    await becomesReady(controller);
    await waitFor(
      'the report is there',
      async () => {
        const table = await system.kubectl('get', 'plegreports', '--no-headers');
        return table.includes(`${node()} `) || undefined;
      },
      BACK_WITHIN_MS,
    );
    await expectEverythingOnce(agent);
  });

  test('a runtime that goes down and comes up again is a gap with exact bounds, and accuses nobody', async () => {
    const agent = await watched();
    live();
    await deliveredSinceNow(100);
    await stopTraffic();
    await received(agent);
    const lastBefore = Math.max(...delivered().map(({ at }) => at));
    const down = Date.now() * 1000;
    await runtime.goDown();
    // Whoever ends now is never announced.
    for (const id of [...runtime.pods.sandboxes.keys()].slice(0, 3)) runtime.removePod(id);
    await saysNotReady(agent, 'relist');
    await runtime.comeUp();
    await becomesReady(agent);
    await listensAgain();
    live();
    await deliveredSinceNow(100);
    await stopTraffic();
    const firstAfter = Math.min(...delivered().flatMap(({ at }) => (at > down ? [at] : [])));
    await expectEverythingOnce(agent);
    const gaps = await system.sql<{ cause: string; from_us: number; to_us: number }>(
      `SELECT cause, (extract(epoch FROM from_at) * 1e6)::float8 AS from_us, (extract(epoch FROM to_at) * 1e6)::float8 AS to_us
         FROM plegwatch.gaps WHERE node = $1 AND scope = 'stream' AND cause = 'broken' ORDER BY from_at`,
      node(),
    );
    expect(gaps).toHaveLength(1);
    const [gap] = gaps;
    // It begins at the reader's last sign that it had drained everything, which it gives every 0.9 s.
    // Twice that, and one relist: a busy machine may skip a word, and not more than one.
    expect(gap?.from_us).toBeGreaterThan(lastBefore - 2_000_000);
    expect(gap?.from_us).toBeGreaterThan(down - 2_500_000);
    expect(gap?.from_us).toBeLessThan(down + 100_000);
    // It ends when the reader takes the first event, which is soon after that was handed to it.
    expect(gap?.to_us).toBeGreaterThan(firstAfter - 100_000);
    expect(gap?.to_us).toBeLessThan(firstAfter + 2_000_000);
    const lists = await system.sql(
      "SELECT 1 FROM plegwatch.gaps WHERE node = $1 AND scope = 'list' AND to_at IS NOT NULL",
      node(),
    );
    expect(lists.length).toBeGreaterThan(0);
  });

  test('an agent that is killed with a full spool and started again loses nothing, and its absence is a gap', async () => {
    const agent = await watched();
    live();
    await system.redis.kill();
    await saysNotReady(agent, 'redis');
    await deliveredSinceNow(200);
    await stopTraffic();
    await received(agent);
    await agent.kill('SIGKILL');
    const killed = Date.now();
    // Nobody listens: the runtime keeps what happens now for the next subscriber.
    await waitFor('nobody is subscribed', () => runtime.subscribers === 0 || undefined);
    live();
    await waitFor(
      'pods live on',
      () => runtime.truth.entries.some((e) => e.what === 'event' && e.queued) || undefined,
    );
    await restarted(agent);
    const back = Date.now();
    await system.redis.restart();
    await becomesReady(agent);
    await deliveredSinceNow(50);
    await expectEverythingOnce(agent);
    const absences = await system.sql<{ from_ms: number; to_ms: number }>(
      `SELECT extract(epoch FROM from_at)::float8 * 1000 AS from_ms, extract(epoch FROM to_at)::float8 * 1000 AS to_ms
         FROM plegwatch.gaps WHERE node = $1 AND scope = 'agent' AND cause = 'down'`,
      node(),
    );
    expect(absences).toHaveLength(1);
    expect(absences[0]?.from_ms).toBeLessThanOrEqual(killed);
    expect(absences[0]?.from_ms).toBeGreaterThan(killed - 11_000);
    expect(absences[0]?.to_ms).toBeGreaterThan(killed);
    expect(absences[0]?.to_ms).toBeLessThanOrEqual(back);
    const incarnations = await system.sql('SELECT 1 FROM plegwatch.epochs WHERE node = $1', node());
    expect(incarnations).toHaveLength(2);
  });

  test('what an earlier life saw keeps the versions that it saw, although the store hears of that life later', async () => {
    await system.redis.kill();
    const agent = await listening();
    await saysNotReady(agent, 'redis');
    live();
    await deliveredSinceNow(50);
    await stopTraffic();
    await received(agent);
    await agent.kill('SIGKILL');
    await runtime.stop();
    const profile = { ...PROFILES['containerd-2.1'], runtimeVersion: '2.2.0' };
    runtime = await startSimulatedRuntime({ socket: runtime.socket, seed: nodes, profile });
    before = 0;
    await agent.restart();
    await waitFor('the agent listens', () => runtime.subscribers > 0 || undefined);
    await system.redis.restart();
    await becomesReady(agent);
    live();
    await deliveredSinceNow(50);
    await stopTraffic();
    await received(agent);
    await waitFor(
      'everything is acknowledged',
      async () => (await unacknowledged(agent)) === 0 || undefined,
      BACK_WITHIN_MS,
    );
    const seen = await system.sql<{ versions: string[] }>(
      `SELECT array_agg(DISTINCT runtime_version) AS versions FROM plegwatch.container_events
        WHERE node = $1 GROUP BY epoch ORDER BY min(received_at)`,
      node(),
    );
    expect(seen.map(({ versions }) => versions)).toEqual([['2.1.9+unknown'], ['2.2.0']]);
  });

  test('an agent that is asked to end hands over what it has, and goes on where it was', async () => {
    const agent = await watched();
    live();
    await deliveredSinceNow(100);
    await stopTraffic();
    await received(agent);
    await restarted(agent);
    await listensAgain();
    live();
    await deliveredSinceNow(100);
    await expectEverythingOnce(agent);
  });

  test('an agent ends although Redis is frozen', async () => {
    const agent = await watched();
    live();
    await freeze(system.redis);
    await deliveredSinceNow(50);
    await stopTraffic();
    await received(agent);
    await agent.kill('SIGTERM');
    await waitFor('it has ended', () => !agent.running() || undefined);
    await thaw();
    await restarted(agent);
    await becomesReady(agent);
    await expectEverythingOnce(agent);
  });

  test('a second agent with the same spool waits until the first has ended', async () => {
    const first = await watched();
    const second = system.agent(node(), runtime.socket, { spoolDir: system.folder(`spool-${node()}`) });
    live();
    await deliveredSinceNow(100);
    await waitFor(
      'the second asks for the lock',
      () => saysAnyAgent('waiting for the spool lock') || undefined,
    );
    expect(runtime.subscribers).toBe(1);
    await stopTraffic();
    await received(first);
    await first.stop();
    agents = [];
    before = delivered().length;
    const successor = await second;
    agents.push(successor);
    await becomesReady(successor);
    live();
    await deliveredSinceNow(100);
    await expectEverythingOnce(successor);
  });
});

const node = (): string => `node-${nodes}`;

async function listening(): Promise<LocalPlegwatch> {
  before = 0;
  const agent = await system.agent(node(), runtime.socket);
  agents.push(agent);
  await waitFor('the agent listens', () => runtime.subscribers > 0 || undefined);
  return agent;
}

/** An agent that listens and has listed; its stream is armed by a first pod. */
async function watched(): Promise<LocalPlegwatch> {
  const agent = await listening();
  runtime.runPod({ name: 'first', containers: ['app'] });
  await becomesReady(agent);
  return agent;
}

/** The stream is tried again after up to a minute: every subscription costs some runtime something. */
async function listensAgain(): Promise<void> {
  await waitFor('the agent listens again', () => runtime.subscribers > 0 || undefined, BACK_WITHIN_MS);
}

async function restarted(agent: LocalPlegwatch): Promise<void> {
  before = delivered().length;
  await agent.restart();
}

/** Lets pods come and go until `stopTraffic`. */
function live(): void {
  let made = 0;
  const timer = setInterval(() => {
    made += 1;
    runtime.runPod({ name: `pod-${made}`, namespace: 'shop', containers: ['app'] });
    const [oldest] = runtime.pods.sandboxes.keys();
    if (runtime.pods.sandboxes.size > LIVING && oldest !== undefined) runtime.removePod(oldest);
  }, EVERY_MS);
  stopTraffic = async () => clearInterval(timer);
}

/** The events that the truth says were given to a subscriber. */
function delivered() {
  return runtime.truth.entries.flatMap((entry) => (entry.what === 'event' && entry.delivered ? [entry] : []));
}

async function deliveredSinceNow(count: number): Promise<void> {
  const wanted = delivered().length + count;
  await waitFor(`${count} more events`, () => delivered().length >= wanted || undefined, BACK_WITHIN_MS);
}

/** The agent has taken everything that was delivered in its present life. */
async function received(agent: LocalPlegwatch): Promise<void> {
  await waitFor('the agent has every event', async () => {
    const body = (await agent.ask('/metrics'))?.body ?? '';
    const counts = [...body.matchAll(/^plegwatch_events_received_total\{.*\} (\d+)$/gm)].map((m) =>
      Number(m[1]),
    );
    return counts.reduce((sum, n) => sum + n, 0) === delivered().length - before || undefined;
  });
}

const unacknowledged = async (agent: LocalPlegwatch) =>
  (await metric(agent, 'plegwatch_unacked_records')) ?? 0;

function logged(program: LocalPlegwatch, message: string): string[] {
  return program
    .log()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`));
}

/** Whether any agent of these tests has logged this; one that has not started yet too. */
function saysAnyAgent(message: string): boolean {
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(`plegwatch-agent-${process.pid}-`))
    .some((name) => readFileSync(join(tmpdir(), name, 'agent.log'), 'utf8').includes(message));
}

async function saysNotReady(program: LocalPlegwatch, check: string): Promise<void> {
  await waitFor(
    `not ok ${check}`,
    async () => {
      const answer = await program.ask('/readyz');
      return (answer?.status === 503 && answer.body.includes(`not ok ${check}`)) || undefined;
    },
    BACK_WITHIN_MS,
  );
}

async function becomesReady(program: LocalPlegwatch): Promise<void> {
  await waitFor(
    'ready',
    async () => (await program.ask('/readyz'))?.status === 200 || undefined,
    BACK_WITHIN_MS,
  );
}

const STRANGER = 'a stranger';

/** Ends the controller's connections, and opens so many that it gets no other. */
async function takeAllConnections(url: string): Promise<Client[]> {
  const strangers: Client[] = [];
  const fill = async (): Promise<void> => {
    for (;;) {
      const stranger = new Client({ connectionString: url, application_name: STRANGER });
      stranger.on('error', () => undefined);
      try {
        await stranger.connect();
      } catch (error) {
        if (Reflect.get(Object(error), 'code') === '53300') return;
        throw error;
      }
      strangers.push(stranger);
    }
  };
  await fill();
  // It may have been faster; a connection that is only just being made has no name yet.
  for (let its = 1; its > 0; ) {
    const ended = await strangers[0]?.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1",
      [STRANGER],
    );
    its = ended?.rowCount ?? 0;
    await fill();
  }
  return strangers;
}

/** What a server in recovery says to each write. */
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

/** Stops a program and what it has started from running at all; its sockets stay open. */
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

/** Nothing is under way any more, and the store has exactly what the truth has. */
async function expectEverythingOnce(agent: LocalPlegwatch): Promise<void> {
  await stopTraffic();
  await received(agent);
  await waitFor('every event that is due has its verdict', async () => {
    return (await metric(agent, 'plegwatch_pending_events')) === 0 || undefined;
  });
  await waitFor(
    'everything is acknowledged',
    async () => (await unacknowledged(agent)) === 0 || undefined,
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
}
