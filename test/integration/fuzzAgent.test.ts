/*
 * A complete agent at a hostile socket: first a gRPC server that sends mutated messages, then a server that violates HTTP/2,
 * then a correct runtime again. The agent keeps running, uses bounded memory, counts what it refused, reports nothing as
 * missed, and records what happens afterwards.
 *
 * PLEGWATCH_SEED selects the messages: see fuzzDecoders.test.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { randomFor } from '../../devtools/simulator/random.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { CriClient, statusName } from '../../src/cri/client.ts';
import { readEvent } from '../../src/cri/items.ts';
import { MalformedMessage } from '../../src/cri/malformed.ts';
import { Container, ContainerState } from '../../src/cri/runtime.ts';
import { mono } from '../../src/protocol/units.ts';
import { HostileRuntime, listenViolating, VIOLATIONS } from '../support/hostile.ts';
import { eventKey } from '../support/listener.ts';
import { randomMessage } from '../support/messages.ts';
import { needs } from '../support/needs.ts';
import { runsOf } from '../support/runs.ts';
import { childrenOf, freeze, thaw } from '../support/sigstop.ts';
import { LASTING_READER, PATIENT, System } from '../support/system.ts';
import { WITHIN_MS, waitFor } from '../support/waitFor.ts';
import { WatchedNode } from '../support/watchedNode.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);
/** The events are sent in parts, each with at least one list: an agent requests slow lists rarely. */
const PARTS = runsOf(3);
const EVENTS_PER_PART = 5_000;
/** Fewer events than the reader buffers while the main process does not run. */
const EVENTS_PER_STEP = 500;
/** More unreadable events than the reader buffers. */
const FLOOD = 10_000;
const CALLS = ['ListPodSandbox', 'ListContainers', 'Version', 'GetContainerEvents'];
/** The limit of memory relative to the start. A heap that has grown stays large for a while. */
const MAX_GROWTH = 3;
/** The agent reconnects less and less often, so the test does not wait for all violations. */
const VIOLATIONS_FOR_AN_AGENT = 4;

let system: System;
let runtime: SimulatedRuntime;
let node: WatchedNode;
let podsRun = 0;

needs('redis-server', 'postgres')('an agent at a hostile socket', () => {
  beforeAll(async () => {
    system = await System.start({ kube: false });
    await system.controller();
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: SEED, keepTruth: true });
    const agent = await system.agent('node', runtime.socket, { ...PATIENT, ...LASTING_READER });
    node = new WatchedNode(system, 'node', agent);
  });
  afterAll(async () => {
    await runtime?.stop();
    await system?.stop();
  });

  test('keeps running within bounded memory, counts and logs what it refuses, and reports no event as missed', {
    timeout: 900_000,
  }, async () => {
    const { pid } = node.agent;
    await runPodsUntilActive();
    await node.settled();
    const before = residentMiB();
    await runtime.goDown();

    const { refused: refusedEvents, dropped, resident: during } = await sendMutations();
    await violateProtocol();

    await runtime.comeUp();
    const armed = await runPodsUntilActive();
    const received = await runPods(20);
    await node.settled();
    const after = residentMiB();
    console.info(
      `${PARTS * EVENTS_PER_PART} events of seed ${SEED}, ${refusedEvents} of them refused; of ${FLOOD} in a flood ${dropped} dropped; MiB of the agent and its reader: ${before} before, ${during} during, ${after} after; armed again after ${armed} pods; refused`,
      await refusedByCall(),
    );

    expect(node.agent.pid).toBe(pid);
    expect(node.agent.running()).toBe(true);
    expect(node.agent.log()).not.toContain('the reader ended with');
    expect(node.agent.log()).not.toContain('fell silent');
    expect(during).toBeLessThan(MAX_GROWTH * before);
    expect(after).toBeLessThan(MAX_GROWTH * before);

    const refused = await refusedByCall();
    for (const call of CALLS) {
      expect({ call, refused: refused.get(call) ?? 0 }).not.toEqual({ call, refused: 0 });
      expect(node.agent.log()).toContain(`"call":"${call}"`);
    }

    for (const lost of ['malformed_event', 'reader_overflow']) {
      const gaps = (await node.gaps('stream')).filter(({ cause }) => cause === lost);
      expect(gaps).not.toEqual([]);
      for (const [i, { to }] of gaps.entries()) expect(to).toBeLessThanOrEqual(gaps[i + 1]?.from ?? Infinity);
    }

    const stored = new Set(await node.events());
    expect(received.filter((key) => !stored.has(key))).toEqual([]);
    expect((await node.findings()).filter((finding) => finding.startsWith('missed'))).toEqual([]);
    for (const id of new Set(received.map((key) => key.split(' ')[0]))) {
      expect(await node.accusations(id)).toEqual([]);
    }
    expect(await system.sql('SELECT * FROM plegwatch.rejected')).toEqual([]);
  });

  test('counts and logs a status that it cannot decode, and still reports the event as missed because lists prove it', async () => {
    const socket = system.folder('hostile.sock');
    const hostile = await HostileRuntime.listen(socket, SEED);
    try {
      hostile.pod = { sandboxes: [], containers: [] };
      const agent = await system.agent('undecodable', socket, LASTING_READER);
      const watched = new WatchedNode(system, 'undecodable', agent);
      await waitFor('the agent has subscribed', () => hostile.subscribed, WITHIN_MS);
      hostile.send(randomMessage('event', randomFor(SEED), 0n));
      await watched.streamIs('Active');
      await watched.relisted();

      hostile.pod = { sandboxes: [], containers: [RUNNING] };
      const findings = await waitFor('the events are judged', async () => {
        const all = await watched.findings(RUNNING.id);
        return all.length === 2 ? all : undefined;
      });
      expect(findings).toEqual(['missed CREATED unannounced_by_list', 'missed STARTED unannounced_by_list']);
      expect((await refusedByCall(watched)).get('ContainerStatus')).toBe(1);
      expect(watched.agent.log()).toContain('"call":"ContainerStatus"');
    } finally {
      await hostile.stop();
    }
  });
});

const RUNNING = Container.fromPartial({
  id: 'c0'.repeat(32),
  podSandboxId: '5a'.repeat(32),
  metadata: { name: 'app' },
  state: ContainerState.CONTAINER_RUNNING,
  createdAt: 1n,
  labels: {
    'io.kubernetes.pod.name': 'web-0',
    'io.kubernetes.pod.namespace': 'shop',
    'io.kubernetes.pod.uid': 'web-0',
  },
});

test.each(VIOLATIONS)(
  'a call of the CRI client that is answered with %s ends with an error code',
  async (violation) => {
    const place = temporaryFolder('hostile', undefined);
    const socket = join(place.dir, 'cri.sock');
    const server = await listenViolating(socket, [violation]);
    const client = new CriClient(socket);
    try {
      // A call of each kind, and again on the next connection.
      for (let i = 0; i < 2; i += 1) {
        await expect(client.version(2_000)).rejects.toMatchObject(CODED);
        await expect(client.listContainers({ timeoutMs: 2_000 })).rejects.toMatchObject(CODED);
        await expect(endOf(client.events())).resolves.toMatch(/^[A-Z_]+$/);
      }
    } finally {
      client.close();
      await server.stop();
      place.remove();
    }
  },
);

const CODED = { name: 'CriError', code: expect.stringMatching(/^[A-Z_]+$/) };

/** The status that a stream ends with. */
function endOf(stream: ReturnType<CriClient['events']>): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  stream.on('data', () => undefined);
  stream.on('error', (error: ServiceError) => resolve(statusName(error.code)));
  stream.on('end', () => resolve('OK'));
  return promise;
}

interface MutationResult {
  /** Events that cannot be decoded or have no container. */
  readonly refused: number;
  /** Events of the flood that exceeded the reader's buffer. */
  readonly dropped: number;
  /** MiB in use. */
  readonly resident: number;
}

/** Sends mutated messages of all kinds, then more than the reader can buffer while the main process is frozen. */
async function sendMutations(): Promise<MutationResult> {
  const hostile = await HostileRuntime.listen(runtime.socket, SEED);
  try {
    hostile.unreadableVersion = true;
    await waitFor(
      'Version is refused',
      async () => ((await refusedByCall()).get('Version') ?? 0) > 0,
      WITHIN_MS,
    );
    hostile.unreadableVersion = false;
    await waitFor('the agent has subscribed', () => hostile.subscribed, WITHIN_MS);
    const refused = await sendEvents(hostile);
    const resident = residentMiB();
    const dropped = await sendFlood(hostile);
    hostile.send(Buffer.alloc(17 * 1024 * 1024));
    await waitFor('the agent has closed the stream', () => !hostile.subscribed, WITHIN_MS);
    await waitFor(
      'the agent counts the message as too large',
      async () => (await scrape()).includes('plegwatch_stream_errors_total{code="OVER_OUR_LIMIT"} 1'),
      WITHIN_MS,
    );
    return { refused, dropped, resident };
  } finally {
    await hostile.stop();
  }
}

/** Each malformed event is counted exactly once. */
async function sendEvents(hostile: HostileRuntime): Promise<number> {
  let refused = 0;
  for (let part = 0; part < PARTS || !(await bothListsRefused()); part += 1) {
    const answered = hostile.answered;
    for (let sent = 0; sent < EVENTS_PER_PART; sent += EVENTS_PER_STEP) {
      const events = await accounted(EVENTS_PER_STEP, () => hostile.announce(EVENTS_PER_STEP));
      refused += events.filter(isRefused).length;
    }
    await waitFor('the agent has requested lists', () => hostile.answered > answered, WITHIN_MS);
  }
  expect((await refusedByCall()).get('GetContainerEvents')).toBe(refused);
  return refused;
}

/** Which lists can be decoded depends on the seed. */
async function bothListsRefused(): Promise<boolean> {
  const refused = await refusedByCall();
  return ['ListPodSandbox', 'ListContainers'].every((call) => (refused.get(call) ?? 0) > 0);
}

/** Returns the number of dropped events. */
async function sendFlood(hostile: HostileRuntime): Promise<number> {
  await accounted(FLOOD, async () => {
    await freeze(node.agent.pid);
    try {
      await hostile.announce(FLOOD);
    } finally {
      thaw(node.agent.pid);
    }
  });
  const { dropped } = await eventCounts();
  expect(dropped).toBeGreaterThan(0);
  return dropped;
}

/** Sends events and waits until each is counted as received, refused or dropped. */
async function accounted<T>(events: number, sent: () => Promise<T>): Promise<T> {
  const before = await eventCounts();
  const result = await sent();
  const all = async () => (await eventCounts()).all - before.all === events;
  await waitFor('every event is accounted for', all, WITHIN_MS);
  return result;
}

async function violateProtocol(): Promise<void> {
  const server = await listenViolating(runtime.socket);
  try {
    await waitFor(
      'the agent has met several violations',
      () => server.done.size >= VIOLATIONS_FOR_AN_AGENT,
      WITHIN_MS,
    );
  } finally {
    await server.stop();
  }
}

/** As the agent counts: malformed events, and events without a container. */
function isRefused(bytes: Buffer): boolean {
  try {
    return readEvent(bytes, 1, mono(0)) === null;
  } catch (error) {
    if (error instanceof MalformedMessage) return true;
    throw error;
  }
}

/** Runs pods until the agent receives an event. Returns how many it ran. */
async function runPodsUntilActive(): Promise<number> {
  const before = podsRun;
  const sessions = (await node.sessions()).length;
  await waitFor(
    'a session is armed',
    async () => {
      await runPods(1);
      return (await node.sessions())
        .slice(Math.max(0, sessions - 1))
        .some(({ armed, closed }) => armed !== null && closed === null);
    },
    WITHIN_MS,
  );
  await node.relisted();
  return podsRun - before;
}

/** Runs and removes pods; several at once are in at least two lists. Returns the delivered events. */
async function runPods(count: number): Promise<string[]> {
  const from = runtime.truth.entries.length;
  const pods = Array.from({ length: count }, () => {
    podsRun += 1;
    const name = `pod-${podsRun}`;
    return runtime.runPod({ name, namespace: 'shop', uid: name, containers: ['app'] });
  });
  if (count > 1) await node.relisted();
  for (const { sandbox, containers } of pods) {
    for (const { id } of containers) {
      runtime.pods.exitContainer(id);
      runtime.pods.removeContainer(id);
    }
    runtime.removePod(sandbox.id);
  }
  return runtime.truth.entries
    .slice(from)
    .filter((entry) => entry.what === 'event' && entry.delivered)
    .map((entry) => (entry.what === 'event' ? eventKey(entry.id, entry.type) : ''));
}

async function eventCounts(): Promise<{ readonly dropped: number; readonly all: number }> {
  const body = await scrape();
  const sum = (pattern: RegExp) => [...body.matchAll(pattern)].reduce((all, [, n]) => all + Number(n), 0);
  const dropped = sum(/^plegwatch_reader_dropped_events_total (\d+)$/gm);
  const refused = sum(/^plegwatch_malformed_messages_total\{call="GetContainerEvents"\} (\d+)$/gm);
  return { dropped, all: dropped + refused + sum(/^plegwatch_events_received_total\{.*\} (\d+)$/gm) };
}

async function refusedByCall(of = node): Promise<Map<string, number>> {
  const lines = (await scrape(of)).matchAll(/^plegwatch_malformed_messages_total\{call="(\w+)"\} (\d+)$/gm);
  return new Map([...lines].map(([, call = '', count]) => [call, Number(count)]));
}

const scrape = (of = node): Promise<string> =>
  waitFor('the agent serves its metrics', async () => (await of.agent.ask('/metrics'))?.body, WITHIN_MS);

/** Resident memory of the agent and its child processes. */
function residentMiB(): number {
  const pids = [node.agent.pid, ...childrenOf(node.agent.pid)];
  const kib = pids.map((pid) =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  );
  return Math.round(kib.reduce((sum, each) => sum + each, 0) / 1024);
}
