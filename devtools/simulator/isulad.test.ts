/*
 * The profile of iSulad, line by line: it was observed on a real one.
 */
import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { ContainerState, ListPodSandboxResponse, PodSandboxState } from '../../src/cri/runtime.ts';
import { eventFacts, faultFacts, playPod, shape, subscribeVirtual, transitionFacts } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

const isulad = () => new VirtualRuntime({ profile: 'isulad-2.1.6', crashProbability: 1 });

/** A pod that runs with one container; returns both ids. */
function runPod({ core: { pods } }: VirtualRuntime) {
  const { id: sandbox } = pods.runPod({ name: 'web' });
  const { id: container } = pods.createContainer(sandbox, { name: 'app' });
  pods.startContainer(container);
  return { sandbox, container };
}

test('a pod with one container has seven events: the STARTED of the sandbox is never sent', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  const id = playPod(runtime.core);
  expect(events.map((event) => shape(event, id))).toEqual([
    'sandbox CREATED',
    'container CREATED',
    'container STARTED',
    'container STOPPED',
    'sandbox STOPPED',
    'container DELETED',
    'sandbox DELETED',
  ]);
});

test('the CREATED of a sandbox says NOTREADY, and its DELETED has no status', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  playPod(runtime.core);
  expect(events[0]?.podSandboxStatus?.state).toBe(PodSandboxState.SANDBOX_NOTREADY);
  expect(events.map(({ podSandboxStatus }) => podSandboxStatus === undefined)).toEqual([
    ...Array<boolean>(6).fill(false),
    true,
  ]);
});

test('about 4 of 17 STOPPED have a status of their own container that still says RUNNING', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  for (let n = 0; n < 340; n += 1) playPod(runtime.core);
  const own = events.flatMap(({ containerId, containerEventType, containersStatuses }) =>
    containerEventType === 2 ? containersStatuses.filter(({ id }) => id === containerId) : [],
  );
  const running = own.filter(({ state }) => state === ContainerState.CONTAINER_RUNNING);
  expect(own).toHaveLength(340);
  expect(running.length).toBeGreaterThan(50);
  expect(running.length).toBeLessThan(110);
  expect(running.every(({ finishedAt }) => finishedAt === 0n)).toBe(true);
});

test('a sandbox is listed NOTREADY between its creation and its start', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  const states: number[] = [];
  const list = () =>
    runtime.list('listPodSandbox', ({ messages: [message = new Uint8Array()] }) => {
      states.push(...ListPodSandboxResponse.decode(message).items.map(({ state }) => state));
    });
  const pod = { id: 's1', name: 'web' };
  runtime.core.pods.createPod(pod);
  list();
  runtime.core.pods.runPod(pod);
  list();
  expect(states).toEqual([PodSandboxState.SANDBOX_NOTREADY, PodSandboxState.SANDBOX_READY]);
  expect(events.map((event) => shape(event, 's1'))).toEqual(['sandbox CREATED']);
});

test('a container whose start fails stays, with started_at 0 and exit code 127, and announces nothing', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  const { pods } = runtime.core;
  const { id } = pods.runPod({ name: 'web' });
  const container = pods.createContainer(id, { name: 'app' });
  pods.exitContainer(container.id, { failedTimes: 'same' });
  expect(pods.container(container.id)).toMatchObject({ startedNs: 0n, exitCode: 127 });
  expect(container.finishedNs).toBeGreaterThan(0n);
  expect(events.map((event) => shape(event, id))).toEqual(['sandbox CREATED', 'container CREATED']);
});

test('a sandbox whose start fails announces its CREATED, and then nothing until its removal', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  const { pods } = runtime.core;
  const { id, ready } = pods.failPod({ name: 'web' });
  expect(ready).toBe(false);
  expect(events.map((event) => shape(event, id))).toEqual(['sandbox CREATED']);
});

test('the removal of a running pod announces STOPPED, and DELETED of its containers, also of those that never started', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  const { pods } = runtime.core;
  const { sandbox } = runPod(runtime);
  pods.createContainer(sandbox, { name: 'second' });
  const before = events.length;
  pods.beginRemoval(sandbox);
  pods.finishRemoval(sandbox);
  expect(events.slice(before).map((event) => shape(event, sandbox))).toEqual([
    'container STOPPED',
    'sandbox STOPPED',
    'container DELETED',
    'container DELETED',
    'sandbox DELETED',
  ]);
});

test('finished_at is when iSulad noticed the exit, and STOPPED comes after it', () => {
  const runtime = isulad();
  const { events } = subscribeVirtual(runtime);
  const { container } = runPod(runtime);
  const { startedNs } = runtime.core.pods.container(container);
  runtime.core.exitUnnoticed(container, 2000);
  runtime.advance(1999);
  expect(events).toHaveLength(3);
  runtime.advance(1);
  expect(runtime.core.pods.container(container).finishedNs - startedNs).toBe(2_000_000_000n);
  expect(events).toHaveLength(4);
});

test('a container that exits while iSulad is down ends with 255 at the time of the restart, without an event', () => {
  const runtime = isulad();
  subscribeVirtual(runtime);
  const { container } = runPod(runtime);
  const { startedNs } = runtime.core.pods.container(container);
  runtime.restart({ downMs: 1000, exits: 1 });
  runtime.advance(1000);
  const { finishedNs, exitCode, state } = runtime.core.pods.container(container);
  expect([state, exitCode, finishedNs - startedNs]).toEqual(['exited', 255, 1_000_000_000n]);
  expect(transitionFacts(runtime.core.truth).at(-1)).toMatchObject({ transition: 'stopped', silent: 'down' });
});

test('a stopped iSulad ends its streams with UNKNOWN', () => {
  const runtime = isulad();
  const { codes } = subscribeVirtual(runtime);
  runtime.restart({ downMs: 100, how: 'stopped' });
  expect(codes).toEqual([status.UNKNOWN]);
});

test('a subscriber that leaves unread events crashes iSulad; one that has read everything does not', () => {
  const runtime = isulad();
  const leave = (unread: number) =>
    runtime.core.open((number) => {
      runtime.later(0, () => runtime.core.closed(number, 'cancelled', unread));
      return { number, send: () => {}, end: () => {} };
    });
  leave(0);
  runtime.advance(10);
  expect(runtime.core.isDown).toBe(false);
  leave(3);
  runtime.advance(10);
  expect(runtime.core.isDown).toBe(true);
  expect(faultFacts(runtime.core.truth, 'crash')).toHaveLength(1);
  runtime.advance(1000);
  expect(runtime.core.isDown).toBe(false);
});

test('iSulad builds no event without a subscriber', () => {
  const runtime = isulad();
  playPod(runtime.core);
  const { events } = subscribeVirtual(runtime);
  expect(events).toEqual([]);
  expect(eventFacts(runtime.core.truth)).toEqual([]);
  const silent = transitionFacts(runtime.core.truth).map((fact) => fact.silent);
  expect(new Set(silent)).toEqual(new Set(['no_subscriber', 'profile']));
});
