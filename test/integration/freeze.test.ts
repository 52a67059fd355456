/*
 * A containerd 2 gives every event to every subscriber, and waits for the slowest: one that stands still stops pods from
 * starting on the whole node. What becomes of the node when the agent, or a part of it, stands still.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { type CriTestClient, connectCri } from '../../devtools/simulator/criClient.ts';
import { createPodDriver, type PodDriver } from '../../devtools/simulator/podDriver.ts';
import { type Churn, churn } from '../support/churn.ts';
import { leftovers } from '../support/leftovers.ts';
import { about, eventsOf, type Listener, listen } from '../support/listener.ts';
import { needs } from '../support/needs.ts';
import { childrenOf, exists, freeze, thaw } from '../support/sigstop.ts';
import { System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';
import { accusing, WatchedNode, WITHIN_MS } from '../support/watchedNode.ts';

const TIMEOUT_MS = 400_000;
/** More than fit between containerd and a subscriber that takes none (about 490 were seen). */
const MANY = 600;
/** A runtime that answers so many relists, and announces nothing meanwhile although pods are to start, is held up. */
const QUIET_ROUNDS = 60;
/** The budget: pods start again within 15 s of a freeze. What is measured here is a part of that. */
const BUDGET_MS = 15_000;

let system: System;
let containerd: LocalContainerd;
let pods: PodDriver;
let asker: CriTestClient;
let node: WatchedNode;
let other: Listener;
let traffic: Churn;
let frozen: number[] = [];
let nodes = 0;

needs(
  'root',
  'containerd-2.1',
  'runc',
  'redis-server',
  'postgres',
)('when it stands still,', () => {
  beforeAll(async () => {
    [system, containerd] = await Promise.all([
      System.start({ kube: false }),
      startContainerd({ version: '2.1' }),
    ]);
    asker = connectCri(containerd.socket);
    await system.controller();
  });
  beforeEach(async () => {
    nodes += 1;
    const { socket, cgroupParent } = containerd;
    pods = createPodDriver({ socket, cgroupParent, timeoutMs: TIMEOUT_MS });
    node = new WatchedNode(system, `node-${nodes}`, await system.agent(`node-${nodes}`, socket));
    other = listen(socket);
    traffic = churn(pods, socket);
    await node.streamIs('Active');
    await node.relisted();
  });
  afterEach(async () => {
    thaw(...frozen);
    frozen = [];
    await traffic.stop();
    other.close();
    await node.agent.stop();
    await pods.close();
  });
  afterAll(async () => {
    asker?.close();
    await containerd?.stop();
    await system?.stop();
    expect(leftovers()).toEqual([]);
  });

  test('a main process holds nobody up, and the hole is told and nobody accused', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await standStill(node.agent.pid);
    const stopped = Date.now();
    const livedBefore = traffic.lived.length;
    await announced(MANY);
    expect(traffic.lived.length).toBeGreaterThan(livedBefore + MANY / 8 - 10);
    const resumed = Date.now();
    thaw(node.agent.pid);
    await traffic.stop();
    await node.settled();

    // A busy machine may make it stand still at other times too.
    const holes = (await node.gaps('stream')).filter(({ cause }) => cause === 'agent_stalled');
    const hole = holes.find(({ to }) => to !== null && to >= resumed);
    expect(hole?.from).toBeLessThanOrEqual(stopped);
    const lived = traffic.lived.slice(livedBefore);
    expect(about(lived, await node.events())).toEqual(eventsOf(lived));
    expect(accusing(await node.findings())).toEqual([]);
    expect(await node.sessions()).toMatchObject([{ code: null, closed: null }]);
  });

  test('a main process does not answer /livez, so that the kubelet ends the agent', {
    timeout: TIMEOUT_MS,
  }, async () => {
    expect((await node.agent.ask('/livez'))?.status).toBe(200);
    await standStill(node.agent.pid);
    expect(await node.agent.ask('/livez')).toBeNull();
  });

  test('a reader is killed by its parent, and another one takes its place', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const reader = await readerOf(node);
    await standStill(reader);
    await waitFor('it is killed', () => !exists(reader) || undefined, WITHIN_MS);
    await waitFor('there is another', async () => (await node.sessions()).at(1)?.armed, WITHIN_MS);
    await node.relisted();
    const livedBefore = traffic.lived.length;
    await waitFor('pods go on', () => traffic.lived.length > livedBefore + 10 || undefined, WITHIN_MS);
    await traffic.stop();
    await node.settled();
    expect(await node.sessions()).toMatchObject([{ code: 'READER_ENDED' }, { code: null, closed: null }]);
    expect(accusing(await node.findings())).toEqual([]);
  });

  test('a reader that holds pods up does so until its parent has killed it', {
    timeout: TIMEOUT_MS,
  }, async () => {
    // A parent that runs kills it long before there are events enough to hold anything up.
    await standStill(node.agent.pid, await readerOf(node));
    const room = await heldUp();
    const held = startOne();
    for (let i = 0; i < QUIET_ROUNDS; i += 1) await list();
    expect(held.isOver()).toBe(false);
    const released = performance.now();
    thaw(node.agent.pid);
    await held.over;
    const took = performance.now() - released;
    console.log(
      `held up after ${room} events; a pod starts ${Math.round(took)} ms after the parent runs again`,
    );
    expect(took).toBeLessThan(BUDGET_MS + 10 * (await podStartMs()));
    await waitFor('there is another reader', async () => (await node.sessions()).at(1)?.armed, WITHIN_MS);
    await traffic.stop();
    await node.settled();
    expect(accusing(await node.findings())).toEqual([]);
  });

  test('a whole agent holds pods up until it is killed, and can be killed', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const victim = await pods.runPod({ name: 'victim' });
    const reader = await readerOf(node);
    await standStill(node.agent.pid, reader);
    const room = await heldUp();
    const held = startOne();
    // The kubelet has the agent killed by the very runtime that is held up.
    await pods.stopContainer(victim.containers['app'] ?? '');
    expect(held.isOver()).toBe(false);
    const released = performance.now();
    process.kill(reader, 'SIGKILL');
    await node.agent.kill('SIGKILL');
    await held.over;
    const took = performance.now() - released;
    console.log(
      `held up after ${room} events; a pod starts ${Math.round(took)} ms after the agent is killed`,
    );
    expect(took).toBeLessThan(BUDGET_MS + 10 * (await podStartMs()));
    await node.agent.restart();
    await waitFor('it listens again', async () => (await node.sessions()).at(1)?.armed, WITHIN_MS);
    await traffic.stop();
    await node.settled();
    expect(await node.gaps('agent')).toMatchObject([{ cause: 'down' }]);
    expect(accusing(await node.findings())).toEqual([]);
  });
});

async function standStill(...pids: readonly number[]): Promise<void> {
  frozen.push(...pids);
  await freeze(...pids);
}

async function readerOf({ agent }: WatchedNode): Promise<number> {
  return waitFor('there is a reader', () => childrenOf(agent.pid).at(0));
}

async function announced(count: number): Promise<void> {
  const wanted = other.received.length + count;
  await waitFor(`${count} more events`, () => other.received.length >= wanted || undefined, TIMEOUT_MS);
}

/** Returns when the runtime is held up, with how many events it announced before. */
async function heldUp(): Promise<number> {
  const before = other.received.length;
  let last = before;
  let quiet = 0;
  await waitFor(
    'pods no longer start',
    async () => {
      await list();
      quiet = other.received.length === last ? quiet + 1 : 0;
      last = other.received.length;
      return quiet >= QUIET_ROUNDS || undefined;
    },
    TIMEOUT_MS,
  );
  return last - before;
}

/** Asks what a kubelet's relist asks; it fails where there is no answer. */
async function list(): Promise<void> {
  const deadline = Date.now() + WITHIN_MS;
  await asker.call('listPodSandbox', { filter: undefined }, { deadline });
  await asker.call('listContainers', { filter: undefined }, { deadline });
}

/** How long an unhindered pod takes to start at this load of the machine. */
async function podStartMs(): Promise<number> {
  const began = performance.now();
  await pods.runPod({ name: 'unhindered', containers: [] });
  return performance.now() - began;
}

/** Starts one sandbox. */
function startOne(): { readonly over: Promise<unknown>; isOver(): boolean } {
  let is = false;
  const over = pods.runPod({ name: 'held', containers: [] }).finally(() => {
    is = true;
  });
  return { over, isOver: () => is };
}
