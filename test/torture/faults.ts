/*
 * Injects faults into a world. Each lasts for a time; when its promise settles, what was broken is repaired and what was killed
 * runs again.
 */

import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { Redis } from 'ioredis';
import type { PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import {
  freePort,
  type RunningProcess,
  startProcess,
  waitFor,
} from '../../devtools/localServices/process.ts';
import { variableOf } from '../../src/platform/settings.ts';
import { ackReplyKey, inboxKey } from '../../src/protocol/redisKeys.ts';
import { CLUSTER } from '../support/batches.ts';
import { type DiskFailures, diskFailures, failDisk, SECTOR_BYTES } from '../support/failingDisk.ts';
import { moveClock } from '../support/movedClock.ts';
import { FORGED_SEQ } from './ackWatch.ts';
import type { BreakableRoute } from './route.ts';
import type { Event, Fault, Part, RouteName } from './schedule.ts';
import { QUEUES, REFUSED_ACK, type World } from './world.ts';

const WAITS_WITHIN_MS = 240_000;

/** A kubelet is late after two seconds. Until an agent says so, a list shows the change, the kubelet answers, and the answer settles. */
const UNNOTICED_MS = 15_000;
/** A container that runs this long is in lists and in the kubelet's status. */
const RUNS_MS = 2_500;

/** An agent that does not run for this long has stalled. */
const STALL_MS = 2_000;

/** An agent asks for replies every four seconds, and then reads one soon. */
const READS_REPLY_MS = 20_000;

/** An agent deletes files of its spool once a second, not always. */
const MAX_READS = 200;

/** A fault that could not be injected. */
class FaultError extends Error {
  override readonly name = 'FaultError';
}

/** Injects a fault when its part is free, and resolves when it has ended. */
export function inject(world: World, { fault, forMs }: Event, onBegin: () => void): Promise<void> {
  return world.inTurn(turnsOf(fault), () => {
    onBegin();
    return effect(world, fault, forMs);
  });
}

/** The target of a fault: one fault at a time on each. */
function turnsOf(fault: Fault): readonly string[] {
  switch (fault.kind) {
    case 'kill':
    case 'freeze':
      return [fault.part];
    case 'cut':
    case 'silence':
      return [fault.route];
    case 'swizzle':
      return fault.cut;
    case 'copy':
    case 'restore':
      return [fault.of];
    case 'full disk':
    case 'second agent':
    case 'bad sector':
    case 'flipped bit':
    case 'misread block':
    case 'failed fsync':
      return [`agent ${fault.node}`];
    case 'wipe':
    case 'full redis':
    case 'repeat':
    case 'new password':
      return ['redis'];
    case 'slow':
      return ['slow'];
    case 'forged ack':
      return [`replies ${fault.node}`];
    case 'clone':
      return [`clone ${fault.node}`];
    case 'clock':
      return [`clock ${fault.node}`];
    case 'slow disk':
      return [`agent ${fault.node}`, `clock ${fault.node}`];
    case 'held kubelet':
    case 'overlooked container':
    case 'dropped watch':
    case 'restarted kubelet':
      return [`kubelet ${fault.node}`];
  }
}

async function effect(world: World, fault: Fault, forMs: number): Promise<void> {
  switch (fault.kind) {
    case 'kill':
      return kill(world, fault.part, forMs);
    case 'freeze':
      return freeze(world, fault.part, fault.part.startsWith('agent') ? forMs + STALL_MS : forMs);
    case 'wipe':
      await world.inRedis((redis) => redis.flushall());
      return;
    case 'cut':
      return withBrokenRoute(routeOf(world, fault.route), forMs, (route) => route.cut());
    case 'silence':
      return withBrokenRoute(routeOf(world, fault.route), forMs, (route) => route.silence());
    case 'swizzle':
      return swizzle(world, fault.cut, fault.heal, forMs);
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
    case 'bad sector':
      return breakSector(world, fault.node);
    case 'flipped bit':
      return flipBit(world, fault.node, fault.bit, forMs);
    case 'misread block':
      return misreadBlock(world, fault.node, fault, forMs);
    case 'full redis':
      return fillRedis(world, forMs);
    case 'failed fsync':
      return withDisk(world, fault.node, { failsToSync: true }, () => delay(forMs));
    case 'slow disk':
      return withDisk(world, fault.node, { delayMs: fault.delayMs }, async () => {
        await delay(forMs / 2);
        await step(world, fault.node, fault.byMs, forMs / 2);
      });
    case 'forged ack':
      return forgeAcks(world, fault.node, forMs);
    case 'new password':
      return world.changePassword(fault.user, forMs);
    case 'clock':
      return step(world, fault.node, fault.byMs, forMs);
    case 'held kubelet':
      world.kubelet(fault.node).kubelet.holdUp(UNNOTICED_MS + forMs);
      await delay(UNNOTICED_MS + forMs);
      return;
    case 'overlooked container':
      return overlook(world, fault.node, fault.stage, forMs);
    case 'dropped watch':
      world.kubelet(fault.node).kubelet.endWatches(status.RESOURCE_EXHAUSTED);
      return;
    case 'restarted kubelet': {
      const server = world.kubelet(fault.node);
      await server.goDown();
      await delay(forMs);
      await server.comeUp(forMs);
      await delay(forMs);
    }
  }
}

/** Runs a pod of which the kubelet notices that it starts, or that it stops, only when that is long over. */
async function overlook(world: World, i: number, stage: 'start' | 'stop', forMs: number): Promise<void> {
  const { runtime } = world.node(i);
  const { kubelet } = world.kubelet(i);
  const name = `overlooked-${performance.now()}`;
  const { sandbox, containers } = runtime.runPod({ name, containers: ['app'] });
  const id = containers[0]?.id ?? '';
  if (stage === 'start') kubelet.overlook(id);
  else {
    await delay(RUNS_MS);
    kubelet.overlook(id);
    runtime.pods.exitContainer(id);
  }
  await delay(UNNOTICED_MS + forMs);
  kubelet.notice(id);
  await delay(RUNS_MS);
  runtime.removePod(sandbox.id);
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

/** A child may have exited meanwhile. */
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

async function withBrokenRoute(
  route: BreakableRoute,
  forMs: number,
  breakRoute: (route: BreakableRoute) => Promise<void> | void,
): Promise<void> {
  await breakRoute(route);
  await delay(forMs);
  await route.heal();
}

async function swizzle(
  world: World,
  cut: readonly RouteName[],
  heal: readonly RouteName[],
  forMs: number,
): Promise<void> {
  const turnMs = forMs / cut.length;
  for (const name of cut) {
    await routeOf(world, name).cut();
    await delay(turnMs);
  }
  for (const name of heal) {
    await routeOf(world, name).heal();
    await delay(turnMs);
  }
}

async function slow(world: World, delayMs: number, forMs: number): Promise<void> {
  for (const { postgres } of world.controllers) postgres.slow(delayMs);
  await delay(forMs);
  for (const { postgres } of world.controllers) postgres.slow(0);
}

/** Adds every input a second time now, and a third time later in reverse order. */
async function repeat(world: World, forMs: number): Promise<void> {
  /** By their texts. */
  const taken = new Map<string, string>();
  const again = (name: string) =>
    inInboxes(world, async (redis, inbox) => {
      const mine = [...taken].filter(([, from]) => from === inbox).reverse();
      for (const [i, [text]] of mine.entries())
        await redis.hsetnx(inbox, `${name}.${process.hrtime.bigint()}-${i}`, text);
    });
  const pids = world.controllers.map(({ program }) => program.pid);
  // Running controllers soon handle every input.
  const until = performance.now() + Math.min(forMs, 1_500);
  while (performance.now() < until) {
    await inInboxes(world, async (redis, inbox) => {
      for (const text of await redis.hvals(inbox)) if (taken.size < 50) taken.set(text, inbox);
    });
    await delay(5);
  }
  if (pids.length > 0) await again('twice');
  await delay(forMs);
  await again('late');
}

async function fillRedis(world: World, forMs: number): Promise<void> {
  const limit = (bytes: number) => world.inRedis((redis) => redis.config('SET', 'maxmemory', bytes));
  await limit(1);
  await delay(forMs);
  await limit(0);
}

async function inInboxes(world: World, work: (redis: Redis, inbox: string) => Promise<void>): Promise<void> {
  await world.inRedis(async (redis) => {
    for (let queue = 0; queue < QUEUES; queue += 1) await work(redis, inboxKey(CLUSTER, queue));
  });
}

async function fillDisk(world: World, i: number, alsoKill: boolean, forMs: number): Promise<void> {
  const { disk, agent } = world.node(i);
  if (disk === null) throw new FaultError('this node has no disk to fill');
  disk.fill();
  await delay(forMs);
  if (alsoKill) {
    await agent.kill('SIGKILL');
    world.agentDied(i);
  }
  await disk.free();
  if (alsoKill) await world.startAgain(`agent ${i}`);
}

/** Moves the wall clock of an agent, and later back. */
async function step(world: World, i: number, byMs: number, forMs: number): Promise<void> {
  const { clock } = world.node(i);
  moveClock(clock, byMs);
  await delay(forMs);
  moveClock(clock, 0);
}

/** The sectors of segments, but none of the last ones: nobody can say how many records were in these. The newest are last. */
function sectorsOf(world: World, i: number): Promise<{ readonly path: string; readonly sector: number }[]> {
  const epochs = join(world.node(i).spool, 'epochs');
  return unlessChanged(() =>
    readdirSync(epochs).flatMap((epoch) =>
      readdirSync(join(epochs, epoch))
        .filter((name) => name.endsWith('.seg'))
        .flatMap((name) => {
          const path = join(epochs, epoch, name);
          const count = Math.floor(statSync(path).size / SECTOR_BYTES) - 2;
          return Array.from({ length: Math.max(0, count) }, (_, sector) => ({ path, sector }));
        }),
    ),
  );
}

/** The newest records are those that the store does not have yet. */
async function breakSector(world: World, i: number): Promise<void> {
  const { diskFailures: as } = world.node(i);
  const broken = (await sectorsOf(world, i)).at(-1);
  if (broken === undefined) return;
  const failures = diskFailures(as);
  failDisk(as, { ...failures, unreadable: [...failures.unreadable, broken] });
}

async function misreadBlock(
  world: World,
  i: number,
  { block, by }: { readonly block: number; readonly by: number },
  forMs: number,
): Promise<void> {
  const { agent, diskFailures: as } = world.node(i);
  await agent.kill('SIGKILL');
  world.agentDied(i);
  const sectors = await sectorsOf(world, i);
  const misread = sectors.at(-1 - block);
  const others = sectors.filter(({ path, sector }) => path === misread?.path && sector !== misread.sector);
  const other = others[by % others.length];
  if (misread !== undefined && other !== undefined) {
    const failures = diskFailures(as);
    failDisk(as, { ...failures, misread: [...failures.misread, { ...misread, other: other.sector }] });
  }
  await delay(forMs);
  await world.startAgain(`agent ${i}`);
}

async function flipBit(world: World, i: number, bit: number, forMs: number): Promise<void> {
  const { agent, spool } = world.node(i);
  await agent.kill('SIGKILL');
  world.agentDied(i);
  const newest = readdirSync(join(spool, 'epochs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.seg'))
    .sort()
    .at(-1);
  if (newest !== undefined) {
    const path = join(spool, 'epochs', newest);
    const bytes = readFileSync(path);
    const at = Math.max(0, bytes.length - 1 - Math.floor(bit / 8));
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit % 8));
    writeFileSync(path, bytes);
  }
  await delay(forMs);
  await world.startAgain(`agent ${i}`);
}

/** Reads a spool, again if its agent deletes a file meanwhile. */
async function unlessChanged<T>(read: () => T): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return read();
    } catch (error) {
      if (Reflect.get(Object(error), 'code') !== 'ENOENT' || tries === MAX_READS) throw error;
      await delay(20);
    }
  }
}

/** The disk of a node fails like that while `work` lasts. */
async function withDisk(
  world: World,
  i: number,
  how: Partial<DiskFailures>,
  work: () => Promise<void>,
): Promise<void> {
  const { diskFailures: as } = world.node(i);
  failDisk(as, { ...diskFailures(as), ...how });
  await work();
  failDisk(as, { ...diskFailures(as), failsToSync: false, delayMs: 0 });
}

/** Writes again and again over the replies of a node, as long as asked for and until its agent has read one. */
async function forgeAcks(world: World, i: number, forMs: number): Promise<void> {
  const { name, agent } = world.node(i);
  const key = ackReplyKey(CLUSTER, name);
  const refusals = () => agent.log().split(REFUSED_ACK).length;
  const before = refusals();
  const began = performance.now();
  const isOver = () => {
    const ms = performance.now() - began;
    return ms > forMs && (ms > READS_REPLY_MS || refusals() > before);
  };
  while (!isOver()) {
    await world
      .inRedis(async (redis) => {
        for (const [epoch, json] of Object.entries(await redis.hgetall(key))) {
          const reply: Record<string, unknown> = JSON.parse(json);
          await redis.hset(key, epoch, JSON.stringify({ ...reply, ackedSeq: FORGED_SEQ }));
        }
      })
      // Redis may be down, which is another fault.
      .catch(() => undefined);
    await delay(20);
  }
}

/** A golden image: another node finds the spool of this one, and must not send anything in its name. */
async function clone(world: World, i: number, forMs: number): Promise<void> {
  const copy = join(world.dir, `clone-${i}`);
  await unlessChanged(() => {
    rmSync(copy, { recursive: true, force: true });
    cpSync(world.node(i).spool, copy, { recursive: true, filter: (file) => !file.endsWith('/lock') });
  });
  const settings = {
    ...world.agentSettings(i, copy),
    node: `clone-${i}`,
    auditFile: join(world.dir, `clone-${i}.audit`),
    // Whose watch it is must be known.
    podsApi: 'off',
  };
  let agent = await startBeside(world, `clone-${i}`, settings);
  try {
    await waitFor('the clone moves the spool aside', WAITS_WITHIN_MS, async () => {
      // Without a Redis to connect to the agent exits, and a supervisor would restart it.
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
    // Without a Redis to connect to the agent exits, and a supervisor would restart it.
    if (!second.running()) second = await startBeside(world, `second-${i}`, world.agentSettings(i, spool));
    return readFileSync(second.logFile, 'utf8').includes('waiting for the spool lock');
  }).catch(async (error: unknown) => {
    await second.stop();
    throw error;
  });
  // Until it is known how far the first one came, the second must not add an epoch of its own.
  signal([second.pid], 'SIGSTOP');
  await agent.kill('SIGKILL');
  world.agentDied(i);
  signal([second.pid], 'SIGCONT');
  await delay(forMs);
  second.kill('SIGKILL');
  await second.exited;
  world.agentDied(i);
  rmSync(second.logFile, { force: true });
  await world.startAgain(`agent ${i}`);
}

/** Starts an agent without waiting for it to be ready: it may block, or exit. */
async function startBeside(world: World, name: string, settings: PlegwatchSettings): Promise<RunningProcess> {
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
