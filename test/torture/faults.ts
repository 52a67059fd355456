/*
 * Faults, done to a world. Each lasts for a time and is over when its promise is settled: what was broken is whole again,
 * what was killed runs again.
 */
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Queue } from 'bullmq';
import {
  freePort,
  type RunningProcess,
  startProcess,
  waitFor,
} from '../../devtools/localServices/process.ts';
import { variableOf } from '../../src/platform/settings.ts';
import { QUEUE_NAME, queuePrefix } from '../../src/protocol/keys.ts';
import { moveClock } from '../support/movedClock.ts';
import type { BreakableRoute } from './route.ts';
import type { Event, Fault, Part, RouteName } from './schedule.ts';
import { CLUSTER, LANES, type World } from './world.ts';

const WAITS_WITHIN_MS = 20_000;

/** What was seen of a fault that could not do what it was to do. */
class FaultError extends Error {
  override readonly name = 'FaultError';
}

/** Injects a fault when its part has its turn, and resolves when it is over. */
export function inject(world: World, { fault, forMs }: Event): Promise<void> {
  return world.inTurn(turnOf(fault), () => effect(world, fault, forMs));
}

/** What a fault is done to: one at a time. */
function turnOf(fault: Fault): string {
  switch (fault.kind) {
    case 'kill':
    case 'freeze':
      return fault.part;
    case 'cut':
    case 'silence':
      return fault.route;
    case 'copy':
    case 'restore':
      return fault.of;
    case 'full disk':
    case 'second agent':
      return `agent ${fault.node}`;
    case 'wipe':
    case 'repeat':
      return 'redis';
    case 'slow':
      return 'slow';
    case 'clone':
      return `clone ${fault.node}`;
    case 'clock':
      return `clock ${fault.node}`;
  }
}

async function effect(world: World, fault: Fault, forMs: number): Promise<void> {
  switch (fault.kind) {
    case 'kill':
      return kill(world, fault.part, forMs);
    case 'freeze':
      return freeze(world, fault.part, forMs);
    case 'wipe':
      await world.inRedis((redis) => redis.flushall());
      return;
    case 'cut':
      return troubled(routeOf(world, fault.route), forMs, (route) => route.cut());
    case 'silence':
      return troubled(routeOf(world, fault.route), forMs, (route) => route.silence());
    case 'slow':
      return slow(world, fault.delayMs, forMs);
    case 'copy':
      return fault.of === 'postgres' ? world.copyPostgres() : world.copyRedis();
    case 'restore':
      return fault.of === 'postgres' ? world.restorePostgres() : world.restoreRedis();
    case 'repeat':
      return repeat(world, forMs);
    case 'full disk':
      return fillDisk(world, fault.node, fault.kill, forMs);
    case 'clone':
      return clone(world, fault.node, forMs);
    case 'second agent':
      return secondAgent(world, fault.node, forMs);
    case 'clock':
      return step(world, fault.node, fault.byMs, forMs);
  }
}

async function kill(world: World, part: Part, forMs: number): Promise<void> {
  await world.service(part).kill('SIGKILL');
  if (part.startsWith('agent')) world.agentDied(Number(part.split(' ')[1]));
  await delay(forMs);
  await world.startAgain(part);
}

async function freeze(world: World, part: Part, forMs: number): Promise<void> {
  const { pid } = world.service(part);
  const all = [pid, ...childrenOf(pid)];
  signal(all, 'SIGSTOP');
  await delay(forMs);
  signal(all, 'SIGCONT');
}

function childrenOf(pid: number): number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8').split(' ').filter(Boolean).map(Number);
}

/** A child may have ended by itself. */
function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if (Reflect.get(Object(error), 'code') !== 'ESRCH') throw error;
    }
  }
}

function routeOf(world: World, name: RouteName): BreakableRoute {
  const [from, number, to] = name.split(' ');
  if (from === 'agent') return world.node(Number(number)).redis;
  const controller = world.controller(Number(number));
  return to === 'redis' ? controller.redis : controller.postgres;
}

async function troubled(
  route: BreakableRoute,
  forMs: number,
  trouble: (route: BreakableRoute) => Promise<void> | void,
): Promise<void> {
  await trouble(route);
  await delay(forMs);
  await route.heal();
}

async function slow(world: World, delayMs: number, forMs: number): Promise<void> {
  for (const { postgres } of world.controllers) postgres.slow(delayMs);
  await delay(forMs);
  for (const { postgres } of world.controllers) postgres.slow(0);
}

/** What waits in the lanes is there twice now, and a third time later, the last one first. */
async function repeat(world: World, forMs: number): Promise<void> {
  const taken: { lane: number; data: unknown }[] = [];
  const again = (name: string) =>
    inLanes(world, async (queue, lane) => {
      const mine = taken.filter((job) => job.lane === lane).reverse();
      for (const [i, { data }] of mine.entries())
        await queue.add('batch', data, {
          jobId: `${name}-${process.hrtime.bigint()}-${i}`,
          removeOnComplete: true,
        });
    });
  const pids = world.controllers.map(({ program }) => program.pid);
  // Nothing waits for long in front of controllers that run.
  const until = performance.now() + Math.min(forMs, 1_500);
  while (performance.now() < until) {
    await inLanes(world, async (queue, lane) => {
      for (const job of await queue.getJobs(['wait', 'active', 'delayed'])) {
        if (job?.data !== undefined && taken.length < 50 && !taken.some(({ data }) => same(data, job.data)))
          taken.push({ lane, data: job.data });
      }
    });
    await delay(5);
  }
  if (pids.length > 0) await again('twice');
  await delay(forMs);
  await again('late');
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

async function inLanes(world: World, work: (queue: Queue, lane: number) => Promise<void>): Promise<void> {
  await world.inRedis(async (redis) => {
    for (let lane = 0; lane < LANES; lane += 1) {
      const queue = new Queue(QUEUE_NAME, {
        connection: redis,
        prefix: queuePrefix(CLUSTER, lane),
        skipMetasUpdate: true,
        skipVersionCheck: true,
      });
      queue.on('error', () => undefined);
      await work(queue, lane);
    }
  });
}

async function fillDisk(world: World, i: number, alsoKill: boolean, forMs: number): Promise<void> {
  const { disk, agent } = world.node(i);
  if (disk === null) throw new FaultError('this node has no disk that could be full');
  disk.fill();
  await delay(forMs);
  if (alsoKill) {
    await agent.kill('SIGKILL');
    world.agentDied(i);
  }
  await disk.free();
  if (alsoKill) await world.startAgain(`agent ${i}`);
}

/** What happens to the agent meanwhile happens at another time of day. */
async function step(world: World, i: number, byMs: number, forMs: number): Promise<void> {
  const { clock } = world.node(i);
  moveClock(clock, byMs);
  await delay(forMs);
  moveClock(clock, 0);
}

/** A golden image: another node finds the spool of this one, and must not say a word in its name. */
async function clone(world: World, i: number, forMs: number): Promise<void> {
  const copy = join(world.dir, `clone-${i}`);
  rmSync(copy, { recursive: true, force: true });
  cpSync(world.node(i).spool, copy, { recursive: true, filter: (file) => !file.endsWith('/lock') });
  const settings = {
    ...world.agentSettings(i, copy),
    node: `clone-${i}`,
    auditFile: join(world.dir, `clone-${i}.audit`),
  };
  let agent = await startBeside(world, `clone-${i}`, settings);
  try {
    await waitFor('the clone moves the spool aside', WAITS_WITHIN_MS, async () => {
      // Where it finds nothing that speaks as Redis does it ends, and its keeper starts it again.
      if (!agent.running()) agent = await startBeside(world, `clone-${i}`, settings);
      return readFileSync(agent.logFile, 'utf8').includes('is quarantined');
    });
    await delay(forMs);
  } finally {
    await agent.stop();
  }
}

async function secondAgent(world: World, i: number, forMs: number): Promise<void> {
  const { agent, spool } = world.node(i);
  let second = await startBeside(world, `second-${i}`, world.agentSettings(i, spool));
  await waitFor('the second agent waits', WAITS_WITHIN_MS, async () => {
    // Where it finds nothing that speaks as Redis does it ends, and its keeper starts it again.
    if (!second.running()) second = await startBeside(world, `second-${i}`, world.agentSettings(i, spool));
    return readFileSync(second.logFile, 'utf8').includes('waiting for the spool lock');
  }).catch(async (error: unknown) => {
    await second.stop();
    throw error;
  });
  await agent.kill('SIGKILL');
  world.agentDied(i);
  await delay(forMs);
  second.kill('SIGKILL');
  await second.exited;
  world.agentDied(i);
  rmSync(second.logFile, { force: true });
  await world.startAgain(`agent ${i}`);
}

/** An agent that is not known to be ready: it may wait, or end. */
async function startBeside(
  world: World,
  name: string,
  settings: Readonly<Record<string, string>>,
): Promise<RunningProcess> {
  const all = { ...settings, httpAddress: `127.0.0.1:${await freePort()}` };
  const env = Object.fromEntries(Object.entries(all).map(([key, value]) => [variableOf(key), value]));
  return startProcess({
    name,
    command: process.execPath,
    args: [join(world.options.root, 'dist', 'cli.js'), 'agent'],
    env: { PATH: process.env['PATH'], ...env },
    logFile: join(world.dir, `${name}.log`),
  });
}
