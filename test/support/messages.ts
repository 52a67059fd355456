/*
 * Well-formed CRI messages of every kind that an agent reads, about pods that do not exist.
 */

import { idFor, type Random, uidFor } from '../../devtools/simulator/random.ts';
import {
  Container,
  ContainerEventResponse,
  type ContainerEventType,
  ContainerState,
  ContainerStatusResponse,
  ListContainersResponse,
  ListPodSandboxResponse,
  type MessageFns,
  PodSandbox,
  VersionResponse,
} from '../../src/cri/runtime.ts';

export const MESSAGE_KINDS = ['version', 'sandboxes', 'containers', 'status', 'event'] as const;
export type CriMessageKind = (typeof MESSAGE_KINDS)[number];

const PODS = 6;
const STATES: readonly [ContainerState, ...ContainerState[]] = [0, 1, 2, 3];
const TYPES: readonly [ContainerEventType, ...ContainerEventType[]] = [0, 1, 2, 3];
/** This many ids recur, in several kinds of message; others appear once. */
const RECURRING_IDS = 40;

/** `nowNs`: the times in the message. */
export function randomMessage(kind: CriMessageKind, random: Random, nowNs: bigint): Buffer {
  switch (kind) {
    case 'version':
      return bytesOf(VersionResponse, {
        version: '0.1.0',
        runtimeName: 'containerd',
        runtimeVersion: 'v2.1.4',
        runtimeApiVersion: 'v1',
      });
    case 'sandboxes':
      return bytesOf(ListPodSandboxResponse, { items: several(() => sandbox(random, nowNs)) });
    case 'containers':
      return bytesOf(ListContainersResponse, { containers: several(() => container(random, nowNs)) });
    case 'status':
      return bytesOf(ContainerStatusResponse, { status: status(someId(random), random, nowNs) });
    case 'event':
      return event(random, nowNs);
  }
}

const several = <T>(make: () => T): T[] => Array.from({ length: PODS }, make);

const bytesOf = <T>(type: MessageFns<T>, value: Parameters<MessageFns<T>['fromPartial']>[0]): Buffer =>
  Buffer.from(type.encode(type.fromPartial(value)).finish());

function pick<T>(random: Random, all: readonly [T, ...T[]]): T {
  return all[Math.floor(random.between(0, all.length))] ?? all[0];
}

function someId(random: Random): string {
  const number = random.chance(0.5) ? Math.floor(random.between(0, RECURRING_IDS)) : random.next();
  return idFor('message', number);
}

const metadata = { name: 'web-0', uid: uidFor('message'), namespace: 'shop', attempt: 1 };
const labels = {
  'io.kubernetes.pod.name': metadata.name,
  'io.kubernetes.pod.namespace': metadata.namespace,
  'io.kubernetes.pod.uid': metadata.uid,
};

const sandbox = (random: Random, nowNs: bigint): PodSandbox =>
  PodSandbox.fromPartial({
    id: someId(random),
    metadata,
    state: random.chance(0.7) ? 0 : 1,
    createdAt: nowNs,
    labels,
    annotations: { 'kubernetes.io/config.source': 'api' },
  });

const container = (random: Random, nowNs: bigint): Container =>
  Container.fromPartial({
    id: someId(random),
    podSandboxId: someId(random),
    metadata: { name: 'app', attempt: 2 },
    image: { image: 'registry/app:1' },
    imageRef: 'sha256:1',
    state: pick(random, STATES),
    createdAt: nowNs,
    labels,
    annotations: { 'io.kubernetes.container.hash': '1' },
  });

const status = (id: string, random: Random, nowNs: bigint) => ({
  id,
  metadata: { name: 'app', attempt: 2 },
  state: ContainerState.CONTAINER_EXITED,
  createdAt: nowNs,
  startedAt: random.chance(0.8) ? nowNs : 0n,
  finishedAt: random.chance(0.5) ? nowNs : 0n,
  exitCode: 137,
  reason: 'Error',
  message: 'it ended',
  labels,
});

function event(random: Random, nowNs: bigint): Buffer {
  const containerId = someId(random);
  return bytesOf(ContainerEventResponse, {
    containerId,
    containerEventType: pick(random, TYPES),
    createdAt: nowNs,
    podSandboxStatus: {
      id: random.chance(0.3) ? containerId : someId(random),
      metadata,
      createdAt: nowNs,
      labels,
    },
    containersStatuses: [status(containerId, random, nowNs), status(someId(random), random, nowNs)],
  });
}
