/*
 * Whether the published status of a pod shows that a container started or stopped. Pure.
 *
 *   published    the status has the container in this state or a later one; or the container stopped, and a status that named it as the present one
 *                names it no more. A kubelet that is restarted may publish that the container is lost, without its id (k/k pkg/kubelet/kubelet_pods.go,
 *                ContainerStatusUnknown)
 *   stale        it does not yet
 *   superseded   it has a later container: whether and when it showed the transition cannot be known any more
 *
 * A static pod has no API object. The kubelet creates a mirror pod, whose annotation kubernetes.io/config.hash is the UID that the runtime
 * has (kubelet pkg/kubelet/config, applyDefaults).
 *
 * Anybody who may write pods can put anything into them, so every field that is read has a bound.
 */
import * as v from 'valibot';
import type { KubeObject } from '../../kube/object.ts';
import type { TransitionType } from './statements.ts';

const CONFIG_HASH = 'kubernetes.io/config.hash';
/** Far more than the API server allows. */
const MAX_CONTAINERS = 1_000;

const id = v.pipe(v.string(), v.maxLength(512));
const restarts = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const State = v.looseObject({
  running: v.nullish(v.looseObject({})),
  terminated: v.nullish(v.looseObject({ containerID: v.optional(id, '') })),
});

const ContainerStatus = v.looseObject({
  name: v.pipe(v.string(), v.maxLength(512)),
  containerID: v.optional(id, ''),
  restartCount: v.optional(restarts, 0),
  state: v.nullish(State),
  lastState: v.nullish(State),
});

const Statuses = v.nullish(v.pipe(v.array(ContainerStatus), v.maxLength(MAX_CONTAINERS)));

const Status = v.nullish(
  v.looseObject({
    containerStatuses: Statuses,
    initContainerStatuses: Statuses,
    ephemeralContainerStatuses: Statuses,
  }),
);

const Annotations = v.nullish(v.record(v.string(), v.unknown()));

/** The published status of a container. Ids are those of the runtime, or empty. */
interface PublishedContainer {
  readonly name: string;
  readonly restarts: number;
  /** The present container. */
  readonly current: string;
  readonly running: boolean;
  /** Those of the present and the previous container that have terminated. */
  readonly ended: readonly string[];
}

export interface PublishedPod {
  readonly uid: string;
  /** Empty unless this is a mirror pod. */
  readonly configHash: string;
  readonly containers: readonly PublishedContainer[];
}

export interface WatchedTransition {
  readonly type: TransitionType;
  readonly containerId: string;
  readonly containerName: string;
  /** The restart count of the container, from the runtime. */
  readonly attempt: number;
  /** Whether an earlier read showed this container as the present one. */
  readonly wasPresent: boolean;
}

export type StatusCheck =
  | { readonly is: 'published' | 'superseded' }
  /** `present`: whether the container is the present one. */
  | { readonly is: 'stale'; readonly present: boolean };

/** Null if the object is not a valid pod. */
export function publishedPod({ metadata, ...rest }: KubeObject): PublishedPod | null {
  const status = v.safeParse(Status, rest['status']);
  const annotations = v.safeParse(Annotations, metadata['annotations']);
  if (!status.success || !annotations.success) return null;
  const hash = annotations.output?.[CONFIG_HASH];
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status.output ?? {};
  return {
    uid: metadata.uid,
    configHash: typeof hash === 'string' ? hash : '',
    containers: [containerStatuses, initContainerStatuses, ephemeralContainerStatuses].flatMap((list) =>
      (list ?? []).map(containerOf),
    ),
  };
}

function containerOf(status: v.InferOutput<typeof ContainerStatus>): PublishedContainer {
  const { name, containerID, restartCount, state, lastState } = status;
  const ended = [state?.terminated?.containerID, lastState?.terminated?.containerID];
  return {
    name,
    restarts: restartCount,
    current: withoutScheme(containerID),
    running: state?.running != null,
    ended: ended.map((each) => withoutScheme(each ?? '')).filter((each) => each !== ''),
  };
}

/** `containerd://ID` → `ID`. */
const withoutScheme = (text: string): string =>
  text.slice(text.indexOf('://') === -1 ? 0 : text.indexOf('://') + 3);

/** Whether this is the pod that has this UID in the runtime. */
export const isPod = ({ uid, configHash }: PublishedPod, wanted: string): boolean =>
  wanted !== '' && (uid === wanted || configHash === wanted);

export function checkStatus({ containers }: PublishedPod, wanted: WatchedTransition): StatusCheck {
  if (containers.some((container) => shows(container, wanted))) return { is: 'published' };
  if (containers.some((container) => supersedes(container, wanted)))
    return { is: wanted.type === 'STOPPED' && wanted.wasPresent ? 'published' : 'superseded' };
  return { is: 'stale', present: containers.some(({ current }) => current === wanted.containerId) };
}

function shows(
  { current, running, ended }: PublishedContainer,
  { type, containerId }: WatchedTransition,
): boolean {
  if (ended.includes(containerId)) return true;
  return type === 'STARTED' && running && current === containerId;
}

function supersedes(
  { name, restarts: count, current }: PublishedContainer,
  wanted: WatchedTransition,
): boolean {
  if (name !== wanted.containerName || current === wanted.containerId) return false;
  return count > wanted.attempt || (wanted.wasPresent && current !== '');
}
