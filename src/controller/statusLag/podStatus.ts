/*
 * Whether the published status of a pod shows that a container started or ended. Pure.
 *
 *   shown        the container's id is there with the state, or with one that comes after it
 *   unshown      it is not there yet
 *   superseded   what is there came after it: when it was published, if it ever was, nobody can tell any more
 *
 * A static pod has no API object of its own: the kubelet makes a mirror pod, whose annotation kubernetes.io/config.hash is the uid
 * that the runtime knows (kubelet pkg/kubelet/config, applyDefaults).
 *
 * Whoever may write pods says what is in them. Only what is needed is taken over, with a bound for each.
 */
import * as v from 'valibot';
import type { KubeObject } from '../kube/object.ts';

const CONFIG_HASH = 'kubernetes.io/config.hash';
/** The API server allows no pod anywhere near as many. */
const MOST_CONTAINERS = 1_000;

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

const Statuses = v.nullish(v.pipe(v.array(ContainerStatus), v.maxLength(MOST_CONTAINERS)));

const Status = v.nullish(
  v.looseObject({
    containerStatuses: Statuses,
    initContainerStatuses: Statuses,
    ephemeralContainerStatuses: Statuses,
  }),
);

const Annotations = v.nullish(v.record(v.string(), v.unknown()));

/** What is kept of a container's published status. Ids are those of the runtime; empty where there is none. */
interface PublishedContainer {
  readonly name: string;
  readonly restarts: number;
  /** The container that the status is about. */
  readonly current: string;
  readonly running: boolean;
  /** The containers that are said to have ended: the present one, and the one before. */
  readonly ended: readonly string[];
}

export interface PublishedPod {
  readonly uid: string;
  /** Empty for a pod that is no mirror of a static one. */
  readonly configHash: string;
  readonly containers: readonly PublishedContainer[];
}

/** What is looked for. */
export interface Wanted {
  readonly type: 'STARTED' | 'STOPPED';
  readonly containerId: string;
  readonly containerName: string;
  /** How often the container was restarted before this one, by the runtime. */
  readonly attempt: number;
  /** Whether a read before showed this container as the present one. */
  readonly seen: boolean;
}

export type Look =
  | { readonly is: 'shown' | 'superseded' }
  /** `present`: whether the container is the present one. */
  | { readonly is: 'unshown'; readonly present: boolean };

/** The pod as it is published; null where the object is not what a pod is. */
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

/** `containerd://…` as the runtime itself has it. */
const withoutScheme = (text: string): string =>
  text.slice(text.indexOf('://') === -1 ? 0 : text.indexOf('://') + 3);

/** Whether a pod is the one that the runtime knows by this uid. */
export const isPod = ({ uid, configHash }: PublishedPod, wanted: string): boolean =>
  wanted !== '' && (uid === wanted || configHash === wanted);

export function look({ containers }: PublishedPod, wanted: Wanted): Look {
  if (containers.some((container) => shows(container, wanted))) return { is: 'shown' };
  if (containers.some((container) => passed(container, wanted))) return { is: 'superseded' };
  return { is: 'unshown', present: containers.some(({ current }) => current === wanted.containerId) };
}

function shows({ current, running, ended }: PublishedContainer, { type, containerId }: Wanted): boolean {
  if (ended.includes(containerId)) return true;
  return type === 'STARTED' && running && current === containerId;
}

function passed({ name, restarts: count, current }: PublishedContainer, wanted: Wanted): boolean {
  if (name !== wanted.containerName || current === wanted.containerId) return false;
  return count > wanted.attempt || (wanted.seen && current !== '');
}
