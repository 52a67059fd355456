/*
 * Items: decodes one sandbox or container of a list answer, and one event.
 *
 * Every text is cleaned and bounded here, because any program may own the socket.
 */

import { basename } from 'node:path';
import type {
  ExactTimes,
  ListedItem,
  ReceivedEvent,
  ShownState,
  ShownStatus,
} from '../protocol/observation.ts';
import type { ContainerIdentity } from '../protocol/record.ts';
import { cleanText, MAX_ID_LENGTH, MAX_NAME_LENGTH } from '../protocol/text.ts';
import type { Mono } from '../protocol/units.ts';
import { decode } from './malformed.ts';
import {
  Container,
  ContainerEventResponse,
  ContainerState,
  type ContainerStatus,
  NamespaceMode,
  PodSandbox,
  PodSandboxState,
  type PodSandboxStatus,
} from './runtime.ts';

/** From these field numbers on a PodSandbox and a Container consist of maps and of fields that are not used here. */
export const SANDBOX_LABELS = 5;
export const CONTAINER_LABELS = 8;

const name = (text: string | undefined): string => cleanText(text ?? '', MAX_NAME_LENGTH);

/** Ids are compared, so one that would have to be cleaned is not used at all. */
export const usableId = (id: string): boolean =>
  id !== '' && id.length <= MAX_ID_LENGTH && !id.includes('\0');

/** Decodes a PodSandbox; null if it has no usable id. Throws MalformedMessage. */
export function readSandbox(bytes: Uint8Array): ListedItem | null {
  const sandbox = decode(PodSandbox, bytes);
  if (!usableId(sandbox.id)) return null;
  return {
    object: {
      id: sandbox.id,
      sandbox: sandbox.id,
      isSandbox: true,
      podUid: name(sandbox.metadata?.uid),
      namespace: name(sandbox.metadata?.namespace),
      pod: name(sandbox.metadata?.name),
      container: '',
      attempt: sandbox.metadata?.attempt ?? 0,
    },
    state: sandboxState(sandbox.state),
  };
}

/** Decodes a Container; null if it has no usable id. Throws MalformedMessage. */
export function readContainer(bytes: Uint8Array): ListedItem | null {
  const container = decode(Container, bytes);
  if (!usableId(container.id)) return null;
  return {
    object: {
      id: container.id,
      sandbox: cleanText(container.podSandboxId, MAX_ID_LENGTH),
      isSandbox: false,
      ...podOf(container.labels),
      container: name(container.metadata?.name),
      attempt: container.metadata?.attempt ?? 0,
    },
    state: containerState(container.state),
  };
}

/** Decodes a ContainerEventResponse; null if it has no usable id. Throws MalformedMessage. */
export function readEvent(bytes: Uint8Array, session: number, received: Mono): ReceivedEvent | null {
  const event = decode(ContainerEventResponse, bytes);
  if (!usableId(event.containerId)) return null;
  const own = event.containersStatuses.find((each) => each.id === event.containerId);
  return {
    session,
    received,
    id: event.containerId,
    type: clampType(event.containerEventType),
    createdNs: event.createdAt,
    hasSandboxStatus: event.podSandboxStatus !== undefined && event.podSandboxStatus.id !== '',
    object: objectOf(event, own),
    times: own === undefined ? ownSandboxTimes(event) : timesOf(own),
    others: othersOf(event),
  };
}

/** The event's statuses of other ids. Runtimes fill up with items without an id. */
function othersOf({
  containerId,
  podSandboxStatus,
  containersStatuses,
}: ContainerEventResponse): ShownStatus[] {
  const others = containersStatuses
    .filter(({ id }) => id !== containerId && usableId(id))
    .map((status) => ({ id: status.id, state: containerState(status.state), times: timesOf(status) }));
  if (
    podSandboxStatus === undefined ||
    podSandboxStatus.id === containerId ||
    !usableId(podSandboxStatus.id)
  ) {
    return others;
  }
  return [...others, { id: podSandboxStatus.id, ...shownBySandbox(podSandboxStatus) }];
}

/** A sandbox's status has the time of its creation, and none of its end. */
function timesOfSandbox({ createdAt, linux }: PodSandboxStatus): ExactTimes {
  const options = linux?.namespaces?.options;
  const times = { createdNs: createdAt, startedNs: 0n, finishedNs: 0n, exitCode: 0, reason: '' };
  return options?.pid === NamespaceMode.POD ? { ...times, trait: 'shared_pid' } : times;
}

function ownSandboxTimes({ containerId, podSandboxStatus }: ContainerEventResponse): ExactTimes | null {
  return podSandboxStatus?.id === containerId ? timesOfSandbox(podSandboxStatus) : null;
}

const shownBySandbox = (status: PodSandboxStatus): Pick<ShownStatus, 'state' | 'times'> => ({
  state: sandboxState(status.state),
  times: timesOfSandbox(status),
});

export function sandboxAnswer(status: PodSandboxStatus): {
  readonly times: ExactTimes;
  readonly sandbox: ShownState;
} {
  return { times: timesOfSandbox(status), sandbox: sandboxState(status.state) };
}

/** An event of which only the digest was kept. */
export function digestEvent(
  digest: { readonly id: string; readonly type: number; readonly createdNs: bigint },
  session: number,
  received: Mono,
): ReceivedEvent {
  return { ...digest, session, received, hasSandboxStatus: false, object: null, times: null, others: [] };
}

export function timesOf(status: ContainerStatus): ExactTimes {
  const times = {
    createdNs: status.createdAt,
    startedNs: status.startedAt,
    finishedNs: status.finishedAt,
    exitCode: status.exitCode,
    reason: cleanText(status.reason, 200),
  };
  return isLogNamed(status) ? times : { ...times, trait: 'unnamed_log' };
}

/** A container whose creation names no log has none, or one that is named after its id (cri-o internal/factory/container, LogPath). */
const isLogNamed = ({ id, logPath }: ContainerStatus): boolean =>
  logPath !== '' && basename(logPath) !== `${id}.log`;

/** The identity that an event carries: the pod from its sandbox's status, the container from its own. */
function objectOf(event: ContainerEventResponse, own: ContainerStatus | undefined): ContainerIdentity | null {
  const sandbox = event.podSandboxStatus;
  if (sandbox === undefined || sandbox.id === '') return null;
  const isSandbox = sandbox.id === event.containerId;
  return {
    id: event.containerId,
    sandbox: cleanText(sandbox.id, MAX_ID_LENGTH),
    isSandbox,
    podUid: name(sandbox.metadata?.uid),
    namespace: name(sandbox.metadata?.namespace),
    pod: name(sandbox.metadata?.name),
    container: isSandbox ? '' : name(own?.metadata?.name),
    attempt: (isSandbox ? sandbox.metadata?.attempt : own?.metadata?.attempt) ?? 0,
  };
}

/** The pod of a container by the labels that the kubelet sets (kubelet pkg/kubelet/types/labels.go). */
function podOf(
  labels: Readonly<Record<string, string>>,
): Pick<ContainerIdentity, 'podUid' | 'namespace' | 'pod'> {
  return {
    podUid: name(labels['io.kubernetes.pod.uid']),
    namespace: name(labels['io.kubernetes.pod.namespace']),
    pod: name(labels['io.kubernetes.pod.name']),
  };
}

/** Any other number proves nothing (kubelet pkg/kubelet/container/runtime.go, SandboxToContainerState). */
function sandboxState(state: number): ShownState {
  if (state === PodSandboxState.SANDBOX_READY) return 'running';
  return state === PodSandboxState.SANDBOX_NOTREADY ? 'exited' : 'unknown';
}

function containerState(state: number): ShownState {
  if (state === ContainerState.CONTAINER_CREATED) return 'created';
  if (state === ContainerState.CONTAINER_RUNNING) return 'running';
  return state === ContainerState.CONTAINER_EXITED ? 'exited' : 'unknown';
}

/** An unknown type is kept by its number if that fits into a byte. */
const clampType = (type: number): number => (type >= 0 && type < 255 ? type : 255);
