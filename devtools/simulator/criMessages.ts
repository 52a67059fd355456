/*
 * CRI messages for the state of the pods, and the filters of the two lists.
 */
import {
  type ContainerEventResponse,
  ContainerEventType,
  type ContainerFilter,
  ContainerState,
  type ContainerStatus,
  NamespaceMode,
  type PodSandboxFilter,
  PodSandboxState,
  type PodSandboxStatus,
  type Container as WireContainer,
  type PodSandbox as WireSandbox,
} from '../../src/cri/runtime.ts';
import type { EventType } from '../../src/protocol/record.ts';
import type { ShownItemState } from './groundTruth.ts';
import type { EventDraft, SimulatedContainer, SimulatedSandbox } from './podModel.ts';
import type { SimulatedPods } from './pods.ts';
import type { Profile } from './profiles.ts';

const EVENT_NUMBERS: Readonly<Record<EventType, ContainerEventType>> = {
  CREATED: ContainerEventType.CONTAINER_CREATED_EVENT,
  STARTED: ContainerEventType.CONTAINER_STARTED_EVENT,
  STOPPED: ContainerEventType.CONTAINER_STOPPED_EVENT,
  DELETED: ContainerEventType.CONTAINER_DELETED_EVENT,
};

const CONTAINER_STATES = {
  created: ContainerState.CONTAINER_CREATED,
  running: ContainerState.CONTAINER_RUNNING,
  exited: ContainerState.CONTAINER_EXITED,
  unknown: ContainerState.CONTAINER_UNKNOWN,
} as const satisfies Record<Exclude<ShownItemState, 'absent'>, ContainerState>;

const isThere = ({ shown }: SimulatedSandbox | SimulatedContainer): boolean => shown !== 'absent';

/** The unfiltered lists. */
export const listedSandboxes = (pods: SimulatedPods): WireSandbox[] =>
  [...pods.sandboxes.values()].filter(isThere).map(sandboxMessage);

export const listedContainers = (pods: SimulatedPods): WireContainer[] =>
  [...pods.containers.values()].filter(isThere).map(containerMessage);

/** A list item and a status at once: for a sandbox both messages have the same fields. */
export function sandboxMessage(sandbox: SimulatedSandbox): WireSandbox & PodSandboxStatus {
  return {
    id: sandbox.id,
    metadata: { ...sandbox.pod, attempt: sandbox.attempt },
    state: isReady(sandbox) ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY,
    createdAt: sandbox.createdNs,
    labels: { ...sandbox.labels },
    annotations: { ...sandbox.annotations },
    linux: {
      namespaces: {
        options: {
          network: NamespaceMode.POD,
          pid: sandbox.sharedPid ? NamespaceMode.POD : NamespaceMode.CONTAINER,
          ipc: NamespaceMode.POD,
        },
      },
    },
  };
}

const isReady = ({ ready, shown }: SimulatedSandbox): boolean =>
  shown === null ? ready : shown === 'running';

/** The state that lists and statuses show. */
function shownState({ state, shown }: SimulatedContainer): Exclude<ShownItemState, 'absent'> {
  return shown === null || shown === 'absent' ? state : shown;
}

function containerMessage(container: SimulatedContainer): WireContainer {
  return {
    id: container.id,
    podSandboxId: container.sandbox.id,
    metadata: { name: container.name, attempt: container.attempt },
    image: { image: container.image },
    imageRef: container.image,
    state: CONTAINER_STATES[shownState(container)],
    createdAt: container.createdNs,
    labels: { ...container.labels },
    annotations: { ...container.annotations },
  };
}

export function containerStatus(container: SimulatedContainer): ContainerStatus {
  const { podSandboxId: _, ...common } = containerMessage(container);
  const { startedNs, finishedNs, exitCode } = container;
  const ended = shownState(container) === 'exited';
  const isOver = ended || container.unknownStart;
  return {
    ...common,
    startedAt: startedNs,
    finishedAt: isOver ? finishedNs : 0n,
    exitCode: ended ? exitCode : 0,
    reason: ended ? reasonOf(container) : '',
    message: '',
    // CRI-O takes no log from the request of what it restores.
    logPath: `/var/log/pods/${container.restored ? container.id : `${container.name}/${container.attempt}`}.log`,
  };
}

function reasonOf({ createdNs, startedNs, finishedNs, exitCode, oomKilled }: SimulatedContainer): string {
  if (oomKilled) return 'OOMKilled';
  if (startedNs === 0n || (startedNs === createdNs && startedNs === finishedNs)) return 'StartError';
  return exitCode === 0 ? 'Completed' : 'Error';
}

/** The container statuses in an event of this sandbox. */
export function statusesFor(
  pods: SimulatedPods,
  sandboxId: string,
  uid: string,
  profile: Profile,
): ContainerStatus[] {
  return [...pods.containers.values()]
    .filter(isThere)
    .filter(({ sandbox }) =>
      profile.statusesOf === 'pod' ? sandbox.pod.uid === uid : sandbox.id === sandboxId,
    )
    .map(containerStatus);
}

export function eventMessage(
  pods: SimulatedPods,
  draft: EventDraft & { readonly stillRunning: boolean },
  createdNs: bigint,
  profile: Profile,
): ContainerEventResponse {
  const sandbox = draft.listed ? pods.sandboxes.get(draft.sandbox) : undefined;
  const statuses = draft.listed ? statusesFor(pods, draft.sandbox, draft.pod.uid, profile) : [];
  return {
    containerId: draft.id,
    containerEventType: EVENT_NUMBERS[draft.type],
    createdAt: createdNs,
    podSandboxStatus: sandbox && sandboxMessage(sandbox),
    containersStatuses: statuses.map((each) =>
      each.id === draft.id ? ownStatus(each, draft, profile) : each,
    ),
  };
}

/** The status of what an event is about may be older than the event says. */
function ownStatus(
  own: ContainerStatus,
  { type, stillRunning }: Pick<EventDraft, 'type'> & { readonly stillRunning: boolean },
  { stoppedShowsOom }: Profile,
): ContainerStatus {
  if (stillRunning) return { ...own, ...STILL_RUNNING };
  const isEarly = type === 'STOPPED' && own.reason === 'OOMKilled' && !stoppedShowsOom;
  return isEarly ? { ...own, reason: 'Error' } : own;
}

const STILL_RUNNING = { state: CONTAINER_STATES.running, finishedAt: 0n, exitCode: 0, reason: '' } as const;

/** An id matches by prefix, as in real runtimes. */
export function sandboxMatches(filter: PodSandboxFilter | undefined, sandbox: WireSandbox): boolean {
  if (filter === undefined) return true;
  if (filter.state !== undefined && filter.state.state !== sandbox.state) return false;
  return sandbox.id.startsWith(filter.id) && labelsMatch(filter.labelSelector, sandbox.labels);
}

export function containerMatches(filter: ContainerFilter | undefined, container: WireContainer): boolean {
  if (filter === undefined) return true;
  if (filter.state !== undefined && filter.state.state !== container.state) return false;
  return (
    container.id.startsWith(filter.id) &&
    container.podSandboxId.startsWith(filter.podSandboxId) &&
    labelsMatch(filter.labelSelector, container.labels)
  );
}

const labelsMatch = (wanted: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>) =>
  Object.entries(wanted).every(([key, value]) => labels[key] === value);
