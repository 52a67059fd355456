/*
 * containerd 2 sends every event to every subscriber and waits for the slowest: a frozen subscriber stops pods from starting
 * on the whole node. These tests freeze the agent's main process, its reader, both, or another subscriber.
 */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type CriTestClient, connectCri } from '../../devtools/simulator/criClient.ts';
import type { DrivenPod, PodDriver } from '../../devtools/simulator/podDriver.ts';
import { churnUntil } from '../support/churn.ts';
import { disordered, eventsOf, type Listener, listen, onlyOf } from '../support/listener.ts';
import { needs } from '../support/needs.ts';
import { startNeighbour } from '../support/neighbour.ts';
import { childrenOf, exists, freeze, thaw } from '../support/sigstop.ts';
import { answerOf, PATIENT } from '../support/system.ts';
import { RUNTIME_NEEDS, SystemBed } from '../support/systemBed.ts';
import { MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import { unconfirmedBy, type WatchedNode } from '../support/watchedNode.ts';

const TIMEOUT_MS = 600_000;
/** More events than fit between containerd and a subscriber that reads none (about 490 were measured). */
const MANY = 600;
/** Pods run after so many, or after a freeze. */
const FEW = 6;
/** Pods are held up if none announces anything while so many containers that announce nothing run, one after another. */
const UNANNOUNCED_RUNS = 5;

const bed = new SystemBed({ kube: false });
let containerd: LocalContainerd;
let pods: PodDriver;
let asker: CriTestClient;
let node: WatchedNode;
let other: Listener;
const frozen: number[] = [];
let nodes = 0;
let runs = 0;

needs(...RUNTIME_NEEDS, `containerd-${MAIN.containerd}`)('during a freeze,', () => {
  beforeAll(async () => {
    containerd = await bed.containerd();
    asker = connectCri(containerd.socket);
    bed.atEnd(() => asker.close());
  });
  beforeEach(async () => {
    nodes += 1;
    const { socket } = containerd;
    pods = bed.pods(containerd, { timeoutMs: TIMEOUT_MS });
    node = await bed.watch(`node-${nodes}`, socket, PATIENT);
    other = listen(socket);
    bed.atEnd(() => other.close());
    await node.armed(pods);
    await node.relisted();
  });
  afterEach(async () => {
    thaw(...frozen.splice(0));
    await node.agent.stop();
    expect(await bed.system.undeclaredGaps(node.name)).toEqual([]);
  });
  afterAll(() => bed.system.expectNoDifference());

  test('a frozen main process does not delay pods, is recorded as a gap, and no event is reported as missed', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await freezeUntilCleanUp(node.agent.pid);
    const stopped = Date.now();
    const before = other.received.length;
    const filling = await startFilling();
    await waitFor('many events', () => other.received.length >= before + MANY, TIMEOUT_MS);
    await filling.stop();
    const completed = await runPods();
    const resumed = Date.now();
    thaw(node.agent.pid);
    await node.settled();

    // On a busy machine the main process may stall at other times too.
    const stalls = (await node.gaps('stream')).filter(({ cause }) => cause === 'agent_stalled');
    const stall = stalls.find(({ to }) => to !== null && to >= resumed);
    expect(stall?.from).toBeLessThanOrEqual(stopped);
    const stored = await node.events();
    expect(onlyOf(completed, stored)).toEqual(eventsOf(completed));
    expect(stored).toEqual(expect.arrayContaining(other.received.slice(before)));
    await expectNothingButDisorder();
    expect(await node.sessions()).toMatchObject([{ code: null, closed: null }]);
  });

  test('a frozen main process does not answer /livez, so that the kubelet restarts the agent', {
    timeout: TIMEOUT_MS,
  }, async () => {
    expect((await answerOf(node.agent, '/livez'))?.status).toBe(200);
    await freezeUntilCleanUp(node.agent.pid);
    expect(await node.agent.ask('/livez')).toBeNull();
  });

  test('a frozen reader is killed and replaced by the main process', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const reader = await readerOf(node);
    await freezeUntilCleanUp(reader);
    await churnUntil(pods, 'the reader is killed', () => !exists(reader));
    await secondSession();
    await node.relisted();
    await runPods();
    await node.settled();
    expect(await node.sessions()).toMatchObject([{ code: 'READER_ENDED' }, { code: null, closed: null }]);
    await expectNothingButDisorder();
  });

  test('a frozen reader delays pods until the main process kills it', {
    timeout: TIMEOUT_MS,
  }, async () => {
    // A running main process would kill the reader long before enough events are queued to hold up pods.
    const reader = await readerOf(node);
    await freezeUntilCleanUp(node.agent.pid, reader);
    const filling = await heldUp();
    const held = startOne();
    await runUnannounced();
    expect(held.isSettled()).toBe(false);
    thaw(node.agent.pid);
    await held.settled;
    await filling.stop();
    // It was still frozen: only its end can have let the pod start.
    await waitFor('the reader has ended', () => !exists(reader));
    await secondSession();
    await node.settled();
    await expectNothingButDisorder();
  });

  test('a frozen agent delays pods until it is killed, and the runtime can still kill it', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const victim = await pods.runPod({ name: 'victim' });
    const reader = await readerOf(node);
    await freezeUntilCleanUp(node.agent.pid, reader);
    const filling = await heldUp();
    const held = startOne();
    // The kubelet kills the agent through the runtime that is held up.
    await pods.stopContainer(victim.containers['app'] ?? '');
    await runUnannounced();
    expect(held.isSettled()).toBe(false);
    process.kill(reader, 'SIGKILL');
    await node.agent.kill('SIGKILL');
    await held.settled;
    await filling.stop();
    await node.agent.restart();
    await secondSession();
    await node.settled();
    expect(await node.gaps('agent')).toMatchObject([{ cause: 'died' }]);
    await expectNothingButDisorder();
  });

  test('a stream is Starved while another subscriber is frozen, and Active again once that reads: what was missed meanwhile is resolved and carries a hint', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const neighbour = startNeighbour(containerd.socket);
    try {
      await churnUntil(pods, 'the neighbour is subscribed', neighbour.isSubscribed);
      const pod = await pods.runPod({ name: 'held', containers: [] });
      await freezeUntilCleanUp(neighbour.pid);
      const filling = await heldUp();
      // Each of them is listed, and then waits until its CREATED can be announced. How many it takes depends on what a stall of this
      // machine excuses.
      const held = [startOne()];
      await waitFor(
        'the stream is Starved',
        async () => {
          held.push(watched(pods.createContainer(pod, { name: `held-${held.length}` })));
          await node.relisted();
          return (await node.streamState()) === 'Starved';
        },
        TIMEOUT_MS,
      );
      const { stream } = await node.streamIs('Starved');
      expect(stream?.reason).toMatch(/^no event of any id since \S+Z while \d+ lists proved \d+ changes/);
      expect(held.some(({ isSettled }) => isSettled())).toBe(false);
      const lastEvent = await node.lastEvent();

      thaw(neighbour.pid);
      await Promise.all(held.map(({ settled }) => settled));
      await filling.stop();
      await node.streamIs('Active');
      await node.settled();
      const [starvation, ...more] = await node.starvations();
      expect(more).toEqual([]);
      expect(starvation?.from).toBe(lastEvent);
      expect(starvation?.to).toBe(await node.firstEventAfter(lastEvent));
      const missed = await node.missed();
      expect(missed.filter(({ hint }) => hint === 'stream_starved').length).toBeGreaterThan(0);
      expect(missed.filter(({ resolved }) => !resolved)).toEqual([]);
    } finally {
      await neighbour.stop();
    }
  });
});

async function freezeUntilCleanUp(...pids: readonly number[]): Promise<void> {
  frozen.push(...pids);
  await freeze(...pids);
}

async function readerOf({ agent }: WatchedNode): Promise<number> {
  return waitFor('there is a reader', () => childrenOf(agent.pid).at(0));
}

async function runPods(): Promise<DrivenPod[]> {
  const completed: DrivenPod[] = [];
  for (let i = 0; i < FEW; i += 1) completed.push(await pods.runToEnd());
  return completed;
}

/** Runs pods until another reader, or another agent, receives events. */
const secondSession = (): Promise<true> =>
  churnUntil(pods, 'there is a second session', async () => (await node.sessions()).at(1)?.armed);

interface Filling {
  /** Waits for its last call. */
  stop(): Promise<void>;
}

/** Creates containers in one sandbox, one after another, and removes them: two events each, without a process. */
async function startFilling(): Promise<Filling> {
  const pod = await pods.runPod({ name: 'filling', containers: [] });
  const image = containerd.importedImages.pause;
  let goesOn = true;
  const fill = async () => {
    for (let attempt = 0; goesOn; attempt += 1)
      await pods.removeContainer(await pods.createContainer(pod, { name: 'app', attempt, image }));
  };
  const filled = fill();
  // A test that fails before it stops the filling reports its own error.
  filled.catch(() => undefined);
  return bed.stopAtEnd({
    stop: async () => {
      goesOn = false;
      await filled;
    },
  });
}

/** Fills the stream, and waits until nothing is announced any more, although the runtime answers and other containers run. */
async function heldUp(): Promise<Filling> {
  const filling = await startFilling();
  let seen = 0;
  await waitFor(
    'pods no longer start',
    async () => {
      const before = other.received.length;
      const isStill = before === seen;
      seen = before;
      if (!isStill) return false;
      for (let i = 0; i < UNANNOUNCED_RUNS; i += 1) await runUnannounced();
      return other.received.length === before;
    },
    TIMEOUT_MS,
  );
  return filling;
}

/** Runs a container that is no pod's, and makes the calls of a kubelet's relist. */
async function runUnannounced(): Promise<void> {
  runs += 1;
  const runc = ['--runc-binary', where('runc'), '--runc-root', join(containerd.dir, 'runc')];
  const group = ['--cgroup', join(containerd.cgroupParent, 'unannounced')];
  const { busybox } = containerd.importedImages;
  await containerd.ctr([
    ...['run', '--rm', '--snapshotter', 'native', ...group, ...runc],
    ...[busybox, `unannounced-${runs}`, 'true'],
  ]);
  const deadline = Date.now() + TIMEOUT_MS;
  await asker.call('listPodSandbox', { filter: undefined }, { deadline });
  await asker.call('listContainers', { filter: undefined }, { deadline });
}

interface Start {
  readonly settled: Promise<unknown>;
  isSettled(): boolean;
}

/** Starts one sandbox. */
const startOne = (): Start => watched(pods.runPod({ name: 'held', containers: [] }));

function watched(start: Promise<unknown>): Start {
  let isSettled = false;
  const settled = start.finally(() => {
    isSettled = true;
  });
  return { settled, isSettled: () => isSettled };
}

/**
 * Containerd may announce a stop after the removal: it wakes the caller of a stop before it announces it. Nothing else is held against it. The store
 * has the events in the order in which another subscriber received them, and exactly those out of order are found.
 */
async function expectNothingButDisorder(): Promise<void> {
  const accusations = unconfirmedBy(other, await node.accusations());
  expect(accusations.filter(({ finding }) => !finding.startsWith('out_of_order '))).toEqual([]);
  const live = await node.liveEvents();
  const stored = new Set(live);
  await waitFor('the other has every event', () => {
    const received = new Set(other.received);
    return live.every((event) => received.has(event));
  });
  expect(live).toEqual(other.received.filter((event) => stored.has(event)));
  expect((await node.outOfOrderFindings()).sort()).toEqual(disordered(live).sort());
}
