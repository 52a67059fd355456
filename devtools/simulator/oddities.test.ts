import { expect, test } from 'vitest';
import { ContainerState, ListContainersResponse, ListPodSandboxResponse } from '../../src/cri/runtime.ts';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import type { TransitionFact } from './groundTruth.ts';
import type { Oddity } from './oddities.ts';
import { ODDITY_NAMES } from './oddities.ts';
import { eventFacts, faultFacts, subscribeVirtual, transitionFacts, viewFacts } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

const SECOND = 1000;

/** Plays one pod with an oddity that lasts two seconds, and lists ten times a second. */
function play(oddity: Oddity, profile: 'containerd-2.1' | 'crio-1.33' = 'containerd-2.1') {
  const runtime = new VirtualRuntime({ seed: 3, profile });
  const { events } = subscribeVirtual(runtime);
  const containers: ContainerState[][] = [];
  const sandboxes: number[] = [];
  runtime.every(100, () => {
    runtime.list('listContainers', ({ messages: [message = new Uint8Array()] }) => {
      containers.push(ListContainersResponse.decode(message).containers.map(({ state }) => state));
    });
    runtime.list('listPodSandbox', ({ messages: [message = new Uint8Array()] }) => {
      sandboxes.push(...ListPodSandboxResponse.decode(message).items.map(({ state }) => state));
    });
  });
  const odds = { [oddity]: 1 };
  runtime.play({ pods: 1, meanMs: SECOND, restarts: 0, odds, oddForMs: 2 * SECOND }, SECOND);
  runtime.advance(20 * SECOND);
  const { truth, pods } = runtime.core;
  return { runtime, events, containers, sandboxes, truth, pods, transitions: transitionFacts(truth) };
}

const { CONTAINER_CREATED, CONTAINER_RUNNING, CONTAINER_EXITED, CONTAINER_UNKNOWN } = ContainerState;

/** The states that lists showed one after the other, without repetition; for pods with one container. */
const shown = (lists: readonly (readonly ContainerState[])[]) => {
  const states = lists.map((list) => list[0] ?? null);
  return states.filter((state, n) => n === 0 || state !== states[n - 1]);
};

const typesOf = (events: readonly { containerEventType: number }[]) =>
  events.map(({ containerEventType }) => EVENT_TYPES[containerEventType]);

test.each(ODDITY_NAMES)('%s leaves nothing behind', (oddity) => {
  const { pods, transitions } = play(oddity);
  expect(pods.sandboxes.size + pods.containers.size).toBe(0);
  for (const [, group] of Map.groupBy(transitions, ({ id }) => id)) {
    expect(group.at(-1)?.transition).toBe('deleted');
  }
});

test('short-life removes a container before the next list', () => {
  const { containers, transitions } = play('short-life');
  expect(containers.flat()).toEqual([]);
  expect(transitions.filter(({ isSandbox }) => !isSandbox)).toHaveLength(4);
});

test('stopped-first announces STOPPED before STARTED, and the ground truth has the true order', () => {
  const { truth, transitions } = play('stopped-first');
  const own = <T extends { isSandbox: boolean }>(facts: readonly T[]) => facts.filter((f) => !f.isSandbox);
  expect(own(eventFacts(truth)).map(({ type }) => type)).toEqual([
    'CREATED',
    'STOPPED',
    'STARTED',
    'DELETED',
  ]);
  expect(own(transitions).map(({ transition }) => transition)).toEqual([
    'created',
    'started',
    'stopped',
    'deleted',
  ]);
  expect(faultFacts(truth, 'stopped_first')).toHaveLength(1);
});

test('failed-start lists the container as exited and announces nothing', () => {
  const { truth, containers, transitions } = play('failed-start');
  expect(shown(containers)).toEqual([null, CONTAINER_EXITED, null]);
  expect(transitions.filter(({ silent }) => silent !== null)).toMatchObject([
    { transition: 'stopped', silent: 'profile' },
  ]);
  expect(faultFacts(truth, 'start_failed')).toHaveLength(1);
});

test.each(['zero', 'same'] as const)('failed-start has %s times', (failedTimes) => {
  const { pods } = new VirtualRuntime().core;
  const { id } = pods.runPod({ name: 'web' });
  const container = pods.createContainer(id, { name: 'app' });
  pods.exitContainer(container.id, { failedTimes });
  const { createdNs, startedNs, finishedNs } = container;
  if (failedTimes === 'zero') expect(startedNs).toBe(0n);
  else expect([startedNs, finishedNs]).toEqual([createdNs, createdNs]);
});

test('failed-sandbox lists the sandbox NOTREADY, and only its removal is announced', () => {
  const { sandboxes, truth } = play('failed-sandbox');
  expect(new Set(sandboxes)).toEqual(new Set([1]));
  expect(eventFacts(truth).map(({ type }) => type)).toEqual(['DELETED']);
  expect(faultFacts(truth, 'sandbox_failed')).toHaveLength(1);
});

test('unlisted-sandbox never lists the sandbox', () => {
  const { sandboxes, truth, transitions } = play('unlisted-sandbox');
  expect([sandboxes, transitions]).toEqual([[], []]);
  expect(faultFacts(truth, 'sandbox_failed')[0]?.detail).toBe('never listed');
});

test('duplicate-container runs two containers of one name at the same time', () => {
  const { containers, truth } = play('duplicate-container');
  const running = containers.map((list) => list.filter((state) => state === CONTAINER_RUNNING).length);
  expect(Math.max(...running)).toBe(2);
  expect(faultFacts(truth, 'duplicate_container')).toHaveLength(1);
});

test('duplicate-sandbox has two sandboxes of one pod ready at the same time', () => {
  const { truth, transitions } = play('duplicate-sandbox');
  expect(faultFacts(truth, 'duplicate_sandbox')).toHaveLength(1);
  expect(new Set(transitions.map(({ id }) => id)).size).toBe(2);
  expect(new Set(transitions.map(({ pod }) => pod.uid)).size).toBe(1);
});

test('removed-together is announced by containerd and not by CRI-O', () => {
  const silenceOf = (profile: 'containerd-2.1' | 'crio-1.33') =>
    play('removed-together', profile)
      .transitions.filter((fact: TransitionFact) => !fact.isSandbox && fact.transition === 'deleted')
      .map(({ silent }) => silent);
  expect(silenceOf('containerd-2.1')).toEqual([null, null]);
  expect(silenceOf('crio-1.33')).toEqual(['profile', 'profile']);
});

test('state-late shows and announces an exit late, with its true time', () => {
  const { truth, containers, events } = play('state-late');
  expect(shown(containers)).toEqual([null, CONTAINER_RUNNING, CONTAINER_EXITED, null]);
  expect(viewFacts(truth).map((view) => view.shown)).toEqual(['running', null]);
  const stopped = truth.entries.find(
    (entry) => entry.what === 'transition' && entry.transition === 'stopped',
  );
  const announced = truth.entries.find((entry) => entry.what === 'event' && entry.type === 'STOPPED');
  expect((announced?.mono ?? 0) - (stopped?.mono ?? 0)).toBe(2 * SECOND * 1000);
  const own = events.find(({ containerEventType }) => EVENT_TYPES[containerEventType] === 'STOPPED');
  expect(own?.containersStatuses[0]?.finishedAt).toBe(BigInt(stopped?.at ?? 0) * 1000n);
  expect(faultFacts(truth, 'state_late')).toHaveLength(1);
});

test('regression shows an exited container as running again', () => {
  const { truth, containers } = play('regression');
  const { length } = shown(containers);
  expect(shown(containers).slice(1, length - 1)).toEqual([
    CONTAINER_RUNNING,
    CONTAINER_EXITED,
    CONTAINER_RUNNING,
    CONTAINER_EXITED,
  ]);
  expect(viewFacts(truth).map((view) => view.shown)).toEqual(['running', null]);
});

test('sandbox-regression shows a stopped sandbox as ready again', () => {
  const { sandboxes } = play('sandbox-regression');
  const changes = sandboxes.filter((state, n) => state !== sandboxes[n - 1]);
  expect(changes).toEqual([1, 0, 1]);
});

test('unknown shows a container in an unknown state for a while', () => {
  const { containers } = play('unknown');
  expect(shown(containers)).toEqual([null, CONTAINER_RUNNING, CONTAINER_UNKNOWN, CONTAINER_RUNNING, null]);
});

test('absent omits a container from the lists for a while', () => {
  const { containers } = play('absent');
  expect(shown(containers)).toEqual([null, CONTAINER_RUNNING, null, CONTAINER_RUNNING, null]);
});

test.each([
  ['spurious-stopped', 'STOPPED', CONTAINER_RUNNING],
  ['spurious-deleted', 'DELETED', CONTAINER_EXITED],
] as const)(
  '%s announces something that did not happen, and the lists still show the true state',
  (oddity, type, state) => {
    const { truth, containers, events } = play(oddity);
    const invented = eventFacts(truth).filter(({ spurious }) => spurious);
    expect(invented.map((fact) => fact.type)).toEqual([type]);
    expect(typesOf(events).filter((each) => each === type).length).toBeGreaterThan(1);
    expect(containers.flat().filter((each) => each === state).length).toBeGreaterThan(15);
    expect(faultFacts(truth, 'spurious')).toHaveLength(1);
  },
);

test('a container is listed as created before its start', () => {
  const runtime = new VirtualRuntime();
  const { id } = runtime.core.pods.runPod({ name: 'web' });
  runtime.core.pods.createContainer(id, { name: 'app' });
  runtime.list('listContainers', ({ messages: [message = new Uint8Array()] }) => {
    const [only] = ListContainersResponse.decode(message).containers;
    expect(only?.state).toBe(CONTAINER_CREATED);
  });
  expect.assertions(1);
});
