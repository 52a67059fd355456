import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type ContainerEventResponse,
  type ContainerFilter,
  ContainerState,
  PodSandboxState,
} from '../../src/cri/runtime.ts';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { until } from '../../test/support/waitFor.ts';
import type { CriTestClient } from './criClient.ts';
import { drop } from './eventFaults.ts';
import type { TruthEntry } from './groundTruth.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from './runtime.ts';
import { eventFacts, lostEvents, shape, subscribe, TestBed } from './testBed.ts';

let bed: TestBed;

beforeEach(() => {
  bed = new TestBed();
});

afterEach(() => bed.close());

const shapes = (events: readonly ContainerEventResponse[], sandbox: string) =>
  events.map((event) => shape(event, sandbox));

/** Runs a pod with one container from its creation to its removal; returns the sandbox id. */
const playPod = (runtime: SimulatedRuntime): string => {
  const { sandbox, containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  for (const { id } of containers) runtime.pods.exitContainer(id);
  runtime.pods.stopPod(sandbox.id);
  runtime.removePod(sandbox.id);
  return sandbox.id;
};

const listSandboxes = async (client: CriTestClient) =>
  (await client.call('listPodSandbox', { filter: undefined })).items;

test('containerd 2.1 announces a pod with one container in eight events, in the order of a real containerd', async () => {
  const runtime = await bed.start();
  const { events } = await bed.listen(runtime);
  const sandbox = playPod(runtime);
  await until(() => events.length === 8);
  expect(shapes(events, sandbox)).toEqual([
    'sandbox CREATED',
    'sandbox STARTED',
    'container CREATED',
    'container STARTED',
    'container STOPPED',
    'sandbox STOPPED',
    'container DELETED',
    'sandbox DELETED',
  ]);
  expect(events.every(({ podSandboxStatus }) => podSandboxStatus?.metadata?.name === 'web')).toBe(true);
});

test('containerd 2.1 stamps events in nanoseconds of the wall clock', async () => {
  const runtime = await bed.start();
  const { events } = await bed.listen(runtime);
  const before = BigInt(Date.now()) * 1_000_000n;
  runtime.runPod({ name: 'web' });
  await until(() => events.length === 2);
  const [first, second] = events.map(({ createdAt }) => createdAt);
  expect(first).toBeGreaterThanOrEqual(before);
  expect(second).toBeGreaterThanOrEqual(first ?? 0n);
  expect(second).toBeLessThanOrEqual(BigInt(Date.now() + 1) * 1_000_000n);
});

test('a container shows the times of the ground truth, however slow the machine is', async () => {
  const runtime = await bed.start({ keepTruth: true });
  const { id: sandbox } = runtime.pods.runPod({ name: 'web' });
  const { id } = runtime.pods.createContainer(sandbox, { name: 'app' });
  const slow = new Int32Array(new SharedArrayBuffer(4));
  runtime.truth.listen(() => void Atomics.wait(slow, 0, 0, 20));
  runtime.pods.exitContainer(id);
  const stopped = runtime.truth.entries.find(
    (entry) => entry.what === 'transition' && entry.transition === 'stopped',
  );
  expect(BigInt(stopped?.at ?? 0) * 1_000n).toBe(runtime.pods.container(id).finishedNs);
});

test('containerd 2.1 lists a sandbox after its DELETED until its removal is finished', async () => {
  const runtime = await bed.start();
  const client = bed.connect(runtime);
  const { events } = await bed.listen(runtime);
  const { sandbox } = runtime.runPod({ name: 'web' });
  runtime.pods.beginRemoval(sandbox.id);
  await until(() => events.length === 4);
  expect((await listSandboxes(client)).map(({ state }) => state)).toEqual([PodSandboxState.SANDBOX_NOTREADY]);
  runtime.pods.finishRemoval(sandbox.id);
  expect(await listSandboxes(client)).toEqual([]);
});

test('containerd 2.1 omits a removed container from the statuses of its DELETED', async () => {
  const runtime = await bed.start();
  const { events } = await bed.listen(runtime);
  const { containers } = runtime.runPod({ name: 'web', containers: ['app', 'sidecar'] });
  runtime.pods.removeContainer(containers[0]?.id ?? '');
  await until(() => events.length === 8);
  expect(events.at(-1)?.containersStatuses.map(({ id }) => id)).toEqual([containers[1]?.id]);
});

test('containerd 2.1 sends every event to every subscriber', async () => {
  const runtime = await bed.start();
  const first = await bed.listen(runtime);
  const second = await bed.listen(runtime);
  playPod(runtime);
  await until(() => first.events.length === 8 && second.events.length === 8);
  expect(second.events).toEqual(first.events);
});

test('containerd 2.1 keeps events without a subscriber for the first subscriber only', async () => {
  const runtime = await bed.start();
  playPod(runtime);
  const first = await bed.listen(runtime);
  await until(() => first.events.length === 8);
  const second = await bed.listen(runtime);
  runtime.runPod({ name: 'next' });
  await until(() => first.events.length === 10 && second.events.length === 2);
  const replayed = runtime.truth.entries.filter((entry) => entry.what === 'event' && entry.replayed);
  expect(replayed).toHaveLength(8);
});

test('containerd 2.1 lists in a different order each time', async () => {
  const runtime = await bed.start();
  const client = bed.connect(runtime);
  for (let n = 0; n < 20; n += 1) runtime.runPod({ name: `pod-${n}` });
  const names = async () => (await listSandboxes(client)).map(({ metadata }) => metadata?.name);
  const [first, second] = [await names(), await names()];
  expect(second).not.toEqual(first);
  expect(second.sort()).toEqual(first.sort());
});

test('a profile of containerd 1.7 sends each event to one subscriber only, in turn', async () => {
  const runtime = await bed.start({ profile: 'containerd-1.7' });
  const first = await bed.listen(runtime);
  const second = await bed.listen(runtime);
  playPod(runtime);
  await until(() => first.events.length + second.events.length === 8);
  expect([first.events.length, second.events.length]).toEqual([4, 4]);
});

test('a profile of containerd 1.7 loses one event to a subscriber that has left', async () => {
  const runtime = await bed.start({ profile: 'containerd-1.7' });
  const leaver = await bed.listen(runtime);
  leaver.cancel();
  await until(() => runtime.subscribers === 0);
  const { events } = await bed.listen(runtime);
  playPod(runtime);
  await until(() => events.length === 7);
  expect(lostEvents(runtime.truth)).toHaveLength(1);
});

test('a profile of containerd 1.7 sends the DELETED of a sandbox without its status', async () => {
  const runtime = await bed.start({ profile: 'containerd-1.7' });
  const { events } = await bed.listen(runtime);
  playPod(runtime);
  await until(() => events.length === 8);
  expect(events.map(({ podSandboxStatus }) => podSandboxStatus === undefined)).toEqual([
    ...Array<boolean>(7).fill(false),
    true,
  ]);
});

test('a profile of CRI-O never announces CREATED and DELETED of a sandbox', async () => {
  const runtime = await bed.start({ profile: 'crio-1.33' });
  const { events } = await bed.listen(runtime);
  const sandbox = playPod(runtime);
  await until(() => events.length === 5);
  expect(shapes(events, sandbox)).toEqual([
    'sandbox STARTED',
    'container CREATED',
    'container STARTED',
    'container STOPPED',
    'sandbox STOPPED',
  ]);
});

test('a profile of CRI-O with events disabled ends the stream at once with OK', async () => {
  const runtime = await bed.start({ profile: 'crio-1.33-disabled' });
  const { events, ended } = subscribe(bed.connect(runtime));
  expect(await ended).toEqual({ code: status.OK });
  expect(events).toEqual([]);
});

test.each(['containerd-1.6', 'cri-dockerd'] as const)(
  'a profile of %s refuses the event stream with UNIMPLEMENTED',
  async (profile) => {
    const runtime = await bed.start({ profile });
    expect(await subscribe(bed.connect(runtime)).ended).toEqual({ code: status.UNIMPLEMENTED });
  },
);

test('a profile answers Version with the name and version of the real runtime', async () => {
  const runtime = await bed.start({ profile: 'crio-1.33' });
  const answer = await bed.connect(runtime).call('version', { version: 'v1' });
  expect([answer.runtimeName, answer.runtimeVersion]).toEqual(['cri-o', '1.33.0']);
});

test('lists and statuses select by id prefix, state, sandbox and labels', async () => {
  const runtime = await bed.start();
  const client = bed.connect(runtime);
  const { sandbox, containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  runtime.runPod({ name: 'other', containers: ['app'] });
  const none = { id: '', state: undefined, podSandboxId: '', labelSelector: {} };
  const ids = async (filter: Partial<ContainerFilter>) => {
    const answer = await client.call('listContainers', { filter: { ...none, ...filter } });
    return answer.containers.map(({ id }) => id);
  };
  expect(await ids({ podSandboxId: sandbox.id })).toEqual([containers[0]?.id]);
  expect(await ids({ id: containers[0]?.id.slice(0, 12) ?? '' })).toEqual([containers[0]?.id]);
  expect(await ids({ labelSelector: { 'io.kubernetes.pod.uid': sandbox.pod.uid } })).toHaveLength(1);
  expect(await ids({ state: { state: ContainerState.CONTAINER_EXITED } })).toEqual([]);
  expect(await ids({ state: { state: ContainerState.CONTAINER_RUNNING } })).toHaveLength(2);
});

test('lists and statuses include the start and end times in a status, which lists omit', async () => {
  const runtime = await bed.start();
  const client = bed.connect(runtime);
  const { containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  const containerId = containers[0]?.id ?? '';
  runtime.pods.exitContainer(containerId, { exitCode: 3 });
  const { status: found } = await client.call('containerStatus', { containerId, verbose: false });
  expect(found?.exitCode).toBe(3);
  expect(found?.startedAt).toBeGreaterThanOrEqual(found?.createdAt ?? 0n);
  expect(found?.finishedAt).toBeGreaterThanOrEqual(found?.startedAt ?? 0n);
});

test('lists and statuses answer NOT_FOUND for the status of a removed container', async () => {
  const runtime = await bed.start();
  const call = bed.connect(runtime).call('containerStatus', { containerId: 'gone', verbose: false });
  await expect(call).rejects.toMatchObject({ code: status.NOT_FOUND });
});

test('faults lose exactly the events that a predicate selects, and the ground truth records it', async () => {
  const runtime = await bed.start();
  const { events } = await bed.listen(runtime);
  runtime.filterEvents((event) => (event.type === 'STOPPED' && !event.isSandbox ? 'drop' : 'deliver'));
  const sandbox = playPod(runtime);
  await until(() => events.length === 7);
  expect(shapes(events, sandbox)).not.toContain('container STOPPED');
  const lost = lostEvents(runtime.truth);
  expect(lost).toMatchObject([{ type: 'STOPPED', isSandbox: false, container: 'app', delivered: false }]);
  expect(runtime.truth.entries.filter((entry) => entry.what === 'fault')).toMatchObject([
    { fault: 'drop', id: lost[0]?.id },
  ]);
});

test('faults include a silent step, which changes the lists and sends no event', async () => {
  const runtime = await bed.start();
  const { events } = await bed.listen(runtime);
  const { containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  runtime.pods.exitContainer(containers[0]?.id ?? '', { announce: false });
  runtime.pods.removeContainer(containers[0]?.id ?? '');
  await until(() => events.length === 5);
  expect(
    runtime.truth.entries.find((entry) => entry.what === 'transition' && entry.silent === 'requested'),
  ).toMatchObject({ transition: 'stopped', container: 'app' });
});

test('faults break a stream with the chosen status, and a new stream receives later events', async () => {
  const runtime = await bed.start();
  const client = bed.connect(runtime);
  const { ended } = await bed.listen(runtime, client);
  runtime.breakStreams();
  expect(await ended).toEqual({ code: status.UNAVAILABLE });
  const again = await bed.listen(runtime, client);
  runtime.runPod({ name: 'web' });
  await until(() => again.events.length === 2);
});

test('faults break every stream after the configured time', async () => {
  const runtime = await bed.start({ breakStreamAfterMs: 20 });
  const client = bed.connect(runtime);
  expect(await subscribe(client).ended).toEqual({ code: status.UNAVAILABLE });
  expect(await subscribe(client).ended).toEqual({ code: status.UNAVAILABLE });
});

test('faults take the runtime down: a container that exits meanwhile is listed as exited and never announced', async () => {
  const runtime = await bed.start();
  const client = bed.connect(runtime);
  const { containers } = runtime.runPod({ name: 'web', containers: ['app'] });
  const { ended } = await bed.listen(runtime, client);
  await runtime.goDown();
  expect(await ended).toEqual({ code: status.UNAVAILABLE });
  runtime.pods.exitContainer(containers[0]?.id ?? '');
  await runtime.comeUp();
  const answer = await client
    .call('listContainers', { filter: undefined }, { deadline: Date.now() + 5000 })
    .catch(() => client.call('listContainers', { filter: undefined }));
  expect(answer.containers.map(({ state }) => state)).toEqual([ContainerState.CONTAINER_EXITED]);
  const { events } = await bed.listen(runtime, client);
  runtime.pods.removeContainer(containers[0]?.id ?? '');
  await until(() => events.length === 1);
  expect(EVENT_TYPES[events[0]?.containerEventType ?? 0]).toBe('DELETED');
});

test('faults cut off a subscriber that stops reading, without delaying others', async () => {
  const runtime = await bed.start({ subscriberQueue: 50 });
  const frozen = bed.connect(runtime).events();
  frozen.on('error', () => {});
  await until(() => runtime.subscribers === 1);
  // grpc-js buffers without bound until it was asked for a first message; only then does it stop reading.
  frozen.once('data', () => frozen.pause());
  const { events } = await bed.listen(runtime);
  const { sandbox } = runtime.runPod({ name: 'web' });
  let steps = 2;
  while (runtime.subscribers === 2 && steps < 20_000) {
    runtime.runContainer(sandbox.id, `app-${steps}`);
    runtime.pods.removeContainer([...runtime.pods.containers.keys()][0] ?? '');
    steps += 4;
    await until(() => events.length === steps);
  }
  expect(
    runtime.truth.entries.some((entry) => entry.what === 'fault' && entry.fault === 'slow_subscriber'),
  ).toBe(true);
});

describe('churn', () => {
  const churn = { pods: 8, meanMs: 600, restarts: 1 };

  test('churn announces every id in the order created, started, stopped, deleted', async () => {
    const runtime = await bed.start({ churn, seed: 7, keepTruth: true });
    const { events } = await bed.listen(runtime);
    await until(() => events.length > 150);
    const seen = new Map<string, number>();
    for (const { containerId, containerEventType } of events) {
      expect(containerEventType).toBe(seen.get(containerId) ?? 0);
      seen.set(containerId, containerEventType + 1);
    }
  });

  test('churn creates the same pods with the same ids for the same seed', async () => {
    const createdIds = async (socket: string) => {
      const runtime = await bed.start({ churn, seed: 7, keepTruth: true, socket });
      await until(() => runtime.truth.entries.length > 250);
      await runtime.stop();
      return new Map(
        runtime.truth.entries.flatMap((entry) =>
          entry.what === 'transition' && entry.transition === 'created' ? [[name(entry), entry.id]] : [],
        ),
      );
    };
    const name = (entry: TruthEntry & { what: 'transition' }) =>
      [entry.pod.name, entry.pod.uid, entry.container, entry.attempt].join('/');
    const first = await createdIds(join(bed.folder, 'a.sock'));
    const second = await createdIds(join(bed.folder, 'b.sock'));
    const common = [...first.keys()].filter((key) => second.has(key));
    expect(common.length).toBeGreaterThan(20);
    for (const key of common) expect(second.get(key)).toBe(first.get(key));
  });

  test('churn loses about the configured share of events, of the chosen types only', async () => {
    const faults = [drop({ seed: 3, probability: 0.5, types: ['STARTED'] })];
    const runtime = await bed.start({ churn, seed: 3, keepTruth: true, faults });
    await bed.listen(runtime);
    const started = () => eventFacts(runtime.truth).filter(({ type, live }) => type === 'STARTED' && live);
    await until(() => started().length > 40);
    // An event from before the subscription waits in the backlog first, so one entry alone does not show a loss.
    const lost = lostEvents(runtime.truth);
    expect(lost.every(({ type }) => type === 'STARTED')).toBe(true);
    expect(lost.length / started().length).toBeGreaterThan(0.2);
    expect(lost.length / started().length).toBeLessThan(0.8);
  });
});

test('the ground truth file contains one JSON line per entry, in order', async () => {
  const truthFile = join(bed.folder, 'truth.jsonl');
  const runtime = await bed.start({ truthFile });
  await bed.listen(runtime);
  playPod(runtime);
  await runtime.stop();
  const lines = readFileSync(truthFile, 'utf8')
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(lines).toEqual(runtime.truth.entries);
  expect(lines).toHaveLength(1 + 8 + 8);
});

test('the socket is removed when the runtime stops, and refused while another process uses it', async () => {
  const runtime = await bed.start();
  await runtime.stop();
  expect(existsSync(runtime.socket)).toBe(false);
  const again = await bed.start();
  await expect(startSimulatedRuntime({ socket: again.socket })).rejects.toMatchObject({
    code: 'SETTING_INVALID',
  });
});
