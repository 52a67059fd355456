/*
 * However an agent ends, a gap lasts from the last moment that was observed to the first that is observed again: no second is without
 * coverage or a gap. Verdicts that are open at its end are a gap too: an event that is lost, and whose consequence a list shows, has a finding, or lies
 * within a gap. A built agent watches a simulated runtime on which pods come and go all the time, and which loses events.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { drop } from '../../devtools/simulator/eventFaults.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { clockArgs, moveClock, suspendMachine } from '../support/movedClock.ts';
import { needs } from '../support/needs.ts';
import { childrenOf, exists, freeze, thaw } from '../support/sigstop.ts';
import { answerOf, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** How far apart two processes may date the same moment, in milliseconds. */
const BLUR = 30;
/** A process that is stopped for this long in the runtime's time has stalled. */
const STALL_MS = 4_000;

/** One that is asked to stop has all the time that it needs to deliver what it has. */
const HAND_OVER: PlegwatchSettings = { intervalHandOver: '4m' };

/** An agent is armed long before it ends, and nobody waits long for that. */
const EPOCH: PlegwatchSettings = { intervalEpoch: '15s' };

/** A third of the events gets lost. */
const DROPPED = 0.3;

let system: System;
let runtime: SimulatedRuntime;
let agents: LocalPlegwatch[] = [];
let frozen: number[] = [];
let nodes = 0;

needs('redis-server', 'postgres')('no second is without coverage or a gap when', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    await system.controller();
  });
  beforeEach(async () => {
    nodes += 1;
    runtime = await startSimulatedRuntime({
      socket: system.folder(`cri-${nodes}.sock`),
      seed: nodes,
      churn: { pods: 3, meanMs: 1_500, restarts: 1 },
      faults: [drop({ seed: nodes, probability: DROPPED })],
      keepTruth: true,
    });
  });
  afterEach(async () => {
    thaw(...frozen);
    frozen = [];
    for (const agent of agents) await agent.stop();
    agents = [];
    await runtime.stop();
  });
  afterAll(async () => {
    await system.expectNoDifference();
    await system.stop();
  });

  test('an agent is asked to stop and never comes back', async () => {
    const agent = await watching();
    await agent.kill('SIGTERM');
    await waitFor('it has ended', () => !agent.running() || undefined);
    const [gap] = await agentGaps(1);
    expect(gap).toMatchObject({ cause: 'stopped', to: null });
    await expectNothingUndeclared();
  });

  test('an agent is asked to stop and another one follows', async () => {
    const agent = await watching();
    await agent.kill('SIGTERM');
    await waitFor('it has ended', () => !agent.running() || undefined);
    const ended = Date.now();
    await comesBack(agent);
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'stopped' }]);
    expect(gaps[0]?.to).toBeGreaterThan(ended);
    await expectNothingUndeclared();
  });

  test.each([
    ['is killed or runs out of memory', 'SIGKILL'],
    ['crashes', 'SIGABRT'],
  ] as const)('an agent %s', async (_, signal) => {
    const agent = await watching();
    const died = await end(agent, signal);
    await comesBack(agent);
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'died' }]);
    expect(gaps[0]?.from).toBeGreaterThan((await lastEventOf(1)) - BLUR);
    expect(gaps[0]?.from).toBeLessThan(died + BLUR);
    expect(gaps[0]?.to).toBeGreaterThan(died);
    await expectNothingUndeclared();
  });

  test('the epoch of an agent is full, and the same process starts the next one', async () => {
    const agent = await watching(EPOCH);
    const { pid } = agent;
    const gaps = await waitFor('the next epoch is stored', async () => {
      const all = await agentGaps(1);
      return all.some(({ to }) => to !== null) ? all : undefined;
    });
    expect(gaps[0]).toMatchObject({ cause: 'stopped' });
    expect(agent).toMatchObject({ pid });
    expect(agent.running()).toBe(true);
    await agent.kill('SIGTERM');
    await waitFor('it has ended', () => !agent.running() || undefined);
    await expectNothingUndeclared();
  });

  test('the epoch of an agent is full while its runtime is away, and the same process starts the next one once it is back', async () => {
    const agent = await watching(EPOCH);
    const { pid } = agent;
    await noEpochCanStart(agent);
    await runtime.comeUp();
    await waitFor('the next epoch is stored', async () => (await agentGaps(1)).some(({ to }) => to !== null));
    expect(agent.running()).toBe(true);
    expect(agent.pid).toBe(pid);
    await agent.kill('SIGTERM');
    await waitFor('it has ended', () => !agent.running() || undefined);
    await expectNothingUndeclared();
  });

  test('an agent whose next epoch cannot start is alive, not ready, and goes on counting; a frozen one does not answer', async () => {
    const agent = await watching(EPOCH);
    const before = await eventsReceived(agent);
    await noEpochCanStart(agent);
    expect(await answerOf(agent, '/livez')).toEqual({ status: 200, body: 'ok epoch\n' });
    expect(await answerOf(agent, '/readyz')).toEqual({
      status: 503,
      body: expect.stringMatching(/^not ok epoch: no epoch can start: /),
    });
    expect(await metric(agent, 'plegwatch_stream_connected')).toBe(0);
    const between = await eventsReceived(agent);
    expect(between).toBeGreaterThanOrEqual(before);
    frozen = [agent.pid, ...childrenOf(agent.pid)];
    await freeze(...frozen);
    expect(await agent.ask('/livez')).toBeNull();
    thaw(...frozen);
    frozen = [];
    await runtime.comeUp();
    await armed(agent);
    expect(await eventsReceived(agent)).toBeGreaterThan(between);
    await agent.kill('SIGTERM');
    await waitFor('it has ended', () => !agent.running() || undefined);
    await expectNothingUndeclared();
  });

  test('an agent dies again and again', async () => {
    const agent = await watching();
    for (let deaths = 1; deaths < 5; deaths += 1) {
      await end(agent, 'SIGKILL');
      await agent.restart();
    }
    await end(agent, 'SIGKILL');
    await comesBack(agent);
    expect(new Set((await agentGaps(1)).map(({ cause }) => cause))).toEqual(new Set(['died']));
    await expectNothingUndeclared();
  });

  test('an agent dies, and so does the next one before its first record', async () => {
    const agent = await watching();
    const died = await end(agent, 'SIGKILL');
    const empty = diesBeforeItsFirstRecord();
    await comesBack(agent);
    await waitFor(
      'the store knows of all three',
      async () =>
        (await system.sql('SELECT FROM plegwatch.epochs WHERE epoch = $1', empty)).length > 0 || undefined,
    );
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'died' }]);
    expect(gaps[0]?.from).toBeLessThan(died + BLUR);
    expect(gaps[0]?.to).toBeGreaterThan(died);
    await expectNothingUndeclared();
  });

  test('a node is restarted', async () => {
    await system.redis.kill();
    const agent = await subscribed();
    await armed(agent);
    const died = await end(agent, 'SIGKILL');
    anotherBoot();
    await system.redis.restart();
    await comesBack(agent);
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'rebooted' }]);
    expect(gaps[0]?.from).toBeLessThan(died + BLUR);
    expect(gaps[0]?.to).toBeGreaterThan(died);
    const boots = await system.sql('SELECT DISTINCT boot_id FROM plegwatch.epochs WHERE node = $1', node());
    expect(boots).toHaveLength(2);
    await expectNothingUndeclared();
  });

  test('the spool is lost with the agent', async () => {
    const agent = await watching();
    const died = await end(agent, 'SIGKILL');
    rmSync(spool(), { recursive: true });
    await comesBack(agent);
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'silent' }]);
    expect(gaps[0]?.from).toBeLessThan(died + BLUR);
    expect(gaps[0]?.to).toBeGreaterThan(died);
    await expectNothingUndeclared();
  });

  test('an agent without a usable spool dies', async () => {
    writeFileSync(spool(), '');
    const agent = await watching({ spoolFallback: 'memory' });
    await end(agent, 'SIGKILL');
    await comesBack(agent);
    expect(await agentGaps(1)).toMatchObject([{ cause: 'silent' }]);
    await expectNothingUndeclared();
  });

  test('an agent dies and never comes back', async () => {
    const agent = await watching();
    const died = await end(agent, 'SIGKILL');
    expect(await agentGaps(0)).toEqual([]);
    // The effect of three minutes of silence.
    await system.sql(
      `UPDATE store.epoch e SET last_seen = now() - interval '4 minutes' FROM store.node n WHERE n.node_id = e.node_id AND n.name = $1`,
      node(),
    );
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'silent', to: null }]);
    expect(gaps[0]?.from).toBeLessThan(died + BLUR);
    await expectNothingUndeclared();
  });

  test('the machine is suspended for an hour', async () => {
    const hour = 3_600_000;
    const clock = system.folder(`clock-${node()}`);
    // Behind by as much before, so that it is right afterwards.
    moveClock(clock, -hour);
    const agent = await watching({}, clockArgs(clock));
    const earlier = await sessions();
    const before = Date.now() - hour;
    suspendMachine(clock, -hour, hour);
    const after = Date.now() - hour;
    await waitFor('another session is armed', async () => (await sessions()) > earlier || undefined);
    await settled(agent);
    const [gap] = await agentGaps(1);
    expect(gap?.cause).toBe('suspended');
    // It lasts from the last moment before until the next epoch starts.
    expect(gap?.from).toBeLessThan(after + BLUR);
    expect(gap?.to).toBeGreaterThan(before + hour - BLUR);
    expect(await system.undeclaredGaps(node())).toEqual([]);
  });

  test('an agent is frozen for a while', async () => {
    const agent = await watching();
    frozen = [agent.pid, ...childrenOf(agent.pid)];
    await freeze(...frozen);
    const from = Date.now();
    await happensUntil(from + STALL_MS);
    const to = Date.now();
    thaw(...frozen);
    await waitFor('the stall is stored', async () => {
      const stalls = (await gapsOf('stream')).filter(({ cause }) => /stalled|broken/.test(cause));
      return stalls.some((gap) => gap.from < from + BLUR && (gap.to ?? 0) > to - BLUR) || undefined;
    });
    await expectNothingUndeclared();
  });

  test('an agent is frozen and then killed', async () => {
    const agent = await watching();
    const pids = [agent.pid, ...childrenOf(agent.pid)];
    await freeze(...pids);
    const from = Date.now();
    await happensUntil(from + STALL_MS);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await agent.kill();
    await comesBack(agent);
    const gaps = await agentGaps(1);
    expect(gaps).toMatchObject([{ cause: 'died' }]);
    expect(gaps[0]?.from).toBeLessThan(from + BLUR);
    await expectNothingUndeclared();
  });

  test('a reader dies', async () => {
    const agent = await watching();
    const earlier = await sessions();
    const reader = await waitFor('there is a reader', () => childrenOf(agent.pid).find(exists));
    const killed = Date.now();
    process.kill(reader, 'SIGKILL');
    await waitFor('the reader is gone', () => !exists(reader) || undefined);
    const died = Date.now();
    await waitFor('another session is armed', async () => (await sessions()) > earlier || undefined);
    await settled(agent);
    const broken = (await gapsOf('stream')).filter(({ cause }) => cause === 'broken');
    expect(broken.find(({ to }) => (to ?? 0) > killed - BLUR)?.from).toBeLessThan(died + BLUR);
    await expectNothingUndeclared();
  });
});

const node = (): string => `node-${nodes}`;
const spool = (): string => system.folder(`spool-${node()}`);

async function subscribed(
  settings: PlegwatchSettings = {},
  nodeArgs: readonly string[] = [],
): Promise<LocalPlegwatch> {
  const agent = await system.agent(node(), runtime.socket, { ...HAND_OVER, ...settings }, nodeArgs);
  agents.push(agent);
  return agent;
}

/** An agent that observes events, all of which are stored. */
async function watching(
  settings: PlegwatchSettings = {},
  nodeArgs: readonly string[] = [],
): Promise<LocalPlegwatch> {
  const agent = await subscribed(settings, nodeArgs);
  await armed(agent);
  await waitFor('its session is stored', async () => (await sessions()) > 0 || undefined);
  await settled(agent);
  return agent;
}

/** The agent receives events and relists. */
async function armed(agent: LocalPlegwatch): Promise<void> {
  const before = await eventsReceived(agent);
  await waitFor('events arrive', async () => (await eventsReceived(agent)) > before + 5 || undefined);
}

async function eventsReceived(agent: LocalPlegwatch): Promise<number> {
  const body = (await answerOf(agent, '/metrics'))?.body ?? '';
  const counts = [...body.matchAll(/^plegwatch_events_received_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function settled(agent: LocalPlegwatch): Promise<void> {
  const unacked = () => metric(agent, 'plegwatch_unacked_records');
  await waitFor('everything is acknowledged', async () => (await unacked()) === 0 || undefined);
}

/** Ends the runtime, and waits until the agent has tried in vain to start the epoch after the one that it had. */
async function noEpochCanStart(agent: LocalPlegwatch): Promise<void> {
  const before = agent.log().length;
  await runtime.goDown();
  const tried = () => agent.log().slice(before).includes('epoch could not start');
  await waitFor('no epoch can start', () => tried() || undefined);
}

/** Ends the agent without giving it a chance to say so. Returns when, in milliseconds of the wall clock. */
async function end(agent: LocalPlegwatch, signal: NodeJS.Signals): Promise<number> {
  await agent.kill(signal);
  await waitFor('it has ended', () => !agent.running() || undefined);
  return Date.now();
}

/** Starts an agent again and waits until it observes. */
async function comesBack(agent: LocalPlegwatch): Promise<void> {
  const before = await sessions();
  await agent.restart();
  await waitFor('another session is armed', async () => (await sessions()) > before || undefined);
  await settled(agent);
}

/** Leaves what an agent leaves that is killed as soon as it has an epoch, which this returns. */
function diesBeforeItsFirstRecord(): string {
  const epochs = join(spool(), 'epochs');
  const [name = ''] = readdirSync(epochs);
  const before: Record<string, unknown> = JSON.parse(readFileSync(join(epochs, name, 'meta.json'), 'utf8'));
  const epoch = randomUUID();
  const incarnation = Number(before['incarnation']) + 1;
  const folder = join(epochs, `${String(incarnation).padStart(10, '0')}-${epoch}`);
  mkdirSync(folder);
  const clocks = {
    startedMono: Number(process.hrtime.bigint() / 1_000n),
    startedWall: Date.now() * 1_000,
  };
  const meta = { ...before, ...clocks, epoch, incarnation, prev: before['epoch'] };
  writeFileSync(join(folder, 'meta.json'), JSON.stringify(meta));
  return epoch;
}

/** The effect of a restart of the machine: another boot id, and a monotonic clock that began again. */
function anotherBoot(): void {
  const files = readdirSync(join(spool(), 'epochs')).map((name) =>
    join(spool(), 'epochs', name, 'meta.json'),
  );
  for (const file of [...files, join(spool(), 'heartbeat.json')]) {
    const content: Record<string, unknown> = JSON.parse(readFileSync(file, 'utf8'));
    const clock = 'mono' in content ? 'mono' : 'startedMono';
    writeFileSync(file, JSON.stringify({ ...content, bootId: 'boot-before', [clock]: 10 ** 14 }));
  }
}

async function happensUntil(at: number): Promise<void> {
  const later = () => runtime.truth.entries.some((entry) => entry.at / 1_000 > at);
  await waitFor('more happens', () => later() || undefined);
}

async function sessions(): Promise<number> {
  const rows = await system.sql(
    'SELECT FROM plegwatch.stream_sessions WHERE node = $1 AND armed_at IS NOT NULL',
    node(),
  );
  return rows.length;
}

interface StoredGap {
  readonly [column: string]: unknown;
  readonly cause: string;
  readonly from: number;
  readonly to: number | null;
}

function gapsOf(scope: string): Promise<StoredGap[]> {
  return system.sql<StoredGap>(
    `SELECT cause, extract(epoch FROM from_at)::float8 * 1000 AS from, extract(epoch FROM to_at)::float8 * 1000 AS to
       FROM plegwatch.gaps WHERE node = $1 AND scope = $2 ORDER BY from_at`,
    node(),
    scope,
  );
}

/** At least this many gaps of the agent, once they are stored. */
function agentGaps(count: number): Promise<StoredGap[]> {
  return waitFor('the end of the agent is stored', async () => {
    const gaps = await gapsOf('agent');
    return gaps.length >= count ? gaps : undefined;
  });
}

/** When the last event of an epoch was received. */
async function lastEventOf(epoch: number): Promise<number> {
  const [row] = await system.sql<{ at: number }>(
    `SELECT extract(epoch FROM max(received_at))::float8 * 1000 AS at FROM plegwatch.container_events
      WHERE node = $1 AND epoch = (SELECT epoch FROM plegwatch.epochs WHERE node = $1 ORDER BY incarnation OFFSET $2 LIMIT 1)`,
    node(),
    epoch - 1,
  );
  return row?.at ?? Number.NaN;
}

/** Neither the store nor the runtime knows of a moment that is neither covered nor within a gap. */
async function expectNothingUndeclared(): Promise<void> {
  const until = Date.now();
  expect(await system.undeclaredGaps(node())).toEqual([]);
  // The last events may be on their way.
  await waitFor('every transition is stored, or a finding or a gap says why not', async () => {
    const unseen = await unseenTransitions(until);
    if (unseen.length > 0) throw new Error(unseen.join(', '));
    return true;
  });
}

/** Transitions of which neither an event nor a finding is stored, and that no gap contains. */
async function unseenTransitions(until: number): Promise<string[]> {
  const rows = await system.sql<{ event: string }>(
    "SELECT container_id || ' ' || lower(event_type) AS event FROM plegwatch.container_events WHERE node = $1",
    node(),
  );
  const stored = new Set(rows.map(({ event }) => event));
  const found = await system.sql<{ event: string }>(
    `SELECT container_id || ' ' || lower(event_type) AS event FROM plegwatch.findings
      WHERE node = $1 AND event_type IS NOT NULL AND container_id IS NOT NULL`,
    node(),
  );
  const explained = new Set(found.map(({ event }) => event));
  const lists = await system.sql<{ from: number; to: number }>(
    `SELECT extract(epoch FROM least(sandboxes_from, containers_from))::float8 * 1000 AS from,
            extract(epoch FROM greatest(sandboxes_to, containers_to))::float8 * 1000 AS to
       FROM plegwatch.relists WHERE node = $1 AND NOT failed`,
    node(),
  );
  const gaps = [...(await gapsOf('agent')), ...(await gapsOf('stream')), ...(await gapsOf('findings'))];
  const [known] = await system.sql<{ from: number; to: number }>(
    `SELECT extract(epoch FROM min(started_at))::float8 * 1000 AS from,
            extract(epoch FROM max(complete_through))::float8 * 1000 AS to FROM plegwatch.epochs WHERE node = $1`,
    node(),
  );
  const transitions = runtime.truth.entries.filter((entry) => entry.what === 'transition');
  const momentOf = (id: string, transition: string): number | undefined => {
    const entry = transitions.find((each) => each.id === id && each.transition === transition);
    return entry === undefined ? undefined : entry.at / 1_000;
  };
  // Where the stream is silent, only a list shows what a container has become, while it is there.
  const isListed = (id: string, at: number): boolean => {
    const deleted = momentOf(id, 'deleted') ?? Number.POSITIVE_INFINITY;
    return lists.some(({ from, to }) => from > at && to < deleted);
  };
  return transitions.flatMap(({ id, transition, at: atUs, silent }) => {
    const at = atUs / 1_000;
    const isKnown = at > (known?.from ?? 0) && at < Math.min(known?.to ?? 0, until);
    const event = `${id} ${transition}`;
    if (silent === 'profile' || !isKnown || stored.has(event) || explained.has(event)) return [];
    if (!isListed(id, transition === 'deleted' ? (momentOf(id, 'created') ?? 0) : at)) return [];
    const isInGap = gaps.some(({ from, to }) => at > from - BLUR && at < (to ?? until) + BLUR);
    return isInGap ? [] : [`${event} at ${new Date(at).toISOString()}`];
  });
}
