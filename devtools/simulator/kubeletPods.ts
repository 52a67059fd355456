/*
 * The pod status of a simulated kubelet, by what the lists of the runtime show.
 *
 *   containers   of each name the newest container, and the one before it where that has ended (kubelet pkg/kubelet/kubelet_pods.go,
 *                convertToAPIContainerStatuses). A container that is gone keeps the status that it had, and has ended
 *   terminating  its sandbox has been ready, and none is
 *   ended        no sandbox of it exists any more
 */
import type { KubeletContainer, KubeletPod } from '../../src/protocol/observation.ts';
import type { PodContainerStatus, PodName, PodStatus, ShownItemState } from './groundTruth.ts';
import type { SimulatedContainer } from './podModel.ts';
import type { SimulatedPods } from './pods.ts';

/** The status of a pod that the kubelet creates, before it has looked at the runtime. */
export const newPodStatus = (pod: PodName): PodStatus => ({
  pod,
  isTerminating: false,
  ended: false,
  containers: [],
});

/** The pod as the kubelet finds it when it looks. `overlooked`: containers whose changes it does not notice. */
export function podStatusNow(
  pods: SimulatedPods,
  before: PodStatus,
  overlooked: ReadonlySet<string>,
): PodStatus {
  const { pod } = before;
  const sandboxes = [...pods.sandboxes.values()].filter((each) => each.pod.uid === pod.uid);
  const ended = sandboxes.length === 0;
  const hasStopped = sandboxes.every(({ ready }) => !ready) && before.containers.length > 0;
  const found = [...pods.containers.values()].filter(({ sandbox }) => sandbox.pod.uid === pod.uid);
  const names = new Set([...before.containers, ...found].map(({ name }) => name));
  const containers = [...names].flatMap((name) => {
    const known = before.containers.find((each) => each.name === name);
    const status = containerStatusNow(
      found.filter((each) => each.name === name),
      known,
      overlooked,
    );
    if (status === undefined) return [];
    return [ended ? { ...status, state: 'terminated' as const } : status];
  });
  return { pod, isTerminating: before.isTerminating || hasStopped, ended, containers };
}

function containerStatusNow(
  found: readonly SimulatedContainer[],
  known: PodContainerStatus | undefined,
  overlooked: ReadonlySet<string>,
): PodContainerStatus | undefined {
  const present = found
    .filter((each) => shownState(each) !== 'absent' && (!overlooked.has(each.id) || each.id === known?.id))
    .sort((a, b) => b.attempt - a.attempt || Number(b.createdNs - a.createdNs));
  const [newest, second] = present;
  if (newest === undefined) {
    const isOverlooked = known !== undefined && overlooked.has(known.id);
    return known && !isOverlooked && known.state === 'running' ? { ...known, state: 'terminated' } : known;
  }
  if (overlooked.has(newest.id)) return known;
  const { id, name } = newest;
  const hasRun = known?.id === id && known.state !== 'waiting';
  const lastId = second !== undefined && shownState(second) === 'exited' ? second.id : null;
  return { id, name, state: stateOf(shownState(newest), hasRun), lastId };
}

const shownState = ({ shown, state }: SimulatedContainer): ShownItemState => shown ?? state;

function stateOf(shown: ShownItemState, hasRun: boolean): KubeletContainer['state'] {
  if (shown === 'running') return 'running';
  if (shown === 'exited') return 'terminated';
  return shown === 'unknown' && hasRun ? 'terminated' : 'waiting';
}

/** As an agent sees it. */
export const kubeletPodOf = ({ pod, isTerminating, containers }: PodStatus): KubeletPod => ({
  podUid: pod.uid,
  namespace: pod.namespace,
  pod: pod.name,
  isTerminating,
  containers: containers.flatMap(({ id, name, state, lastId }) => [
    ...(lastId === null ? [] : [{ id: lastId, name, state: 'terminated' as const }]),
    { id, name, state },
  ]),
});
