/*
 * The kubelet of a history: the status that it has of each pod at each moment, and what the watch of its PodsAPI reports of that. For
 * tests.
 *
 *   look      the kubelet reads a pod's containers from its runtime; how long after a change it does is up to chance
 *   status    what it has of a pod from one look to the next
 *   restart   the end of a watch that is one: until the kubelet has looked again it has an old status of each pod
 */
import type { KubeletContainer, KubeletPod, KubeletSight } from '../../../src/protocol/observation.ts';
import { type Mono, mono } from '../../../src/protocol/units.ts';
import { type HistoryContainer, shownAt } from './containers.ts';
import { type History, HORIZON } from './history.ts';

/** The status of a pod from a moment on. */
interface PodStatus {
  readonly at: number;
  readonly pod: KubeletPod;
}

interface KubeletPodHistory {
  readonly podUid: string;
  /** In their order. */
  readonly statuses: readonly PodStatus[];
  /** When it has terminated the pod; null where it has not. */
  readonly ended: number | null;
}

export interface HistoryWatch {
  readonly opened: number;
  readonly synced: number;
  readonly closed: number;
}

/** A sight, when the agent takes it, and what is sent to it. */
interface HistorySight {
  readonly received: number;
  readonly sight: KubeletSight;
}

export interface HistoryKubelet {
  readonly pods: readonly KubeletPodHistory[];
  readonly watches: readonly HistoryWatch[];
  readonly sights: readonly HistorySight[];
}

const us = (ms: number): Mono => mono(ms * 1000);

export function kubeletOf(history: History, containers: readonly HistoryContainer[]): HistoryKubelet {
  const watches = watchesOf(history);
  const uids = [...new Set(containers.map(({ object }) => object.podUid))];
  const unknown = new Set(history.kubelet.unknownPods.map((n) => n % (uids.length + 1)));
  const pods = uids.flatMap((podUid, i) =>
    unknown.has(i) ? [] : [podOf(history, podUid, i, containers, watches)],
  );
  return { pods, watches, sights: watches.flatMap((watch, i) => sightsOf(history, pods, watch, i)) };
}

function watchesOf({ kubelet }: History): HistoryWatch[] {
  let at = kubelet.firstWatch;
  return kubelet.watches.map(({ sync, after, down }, i) => {
    const opened = at;
    const synced = opened + 10 + sync;
    const closed = i === kubelet.watches.length - 1 ? Number.POSITIVE_INFINITY : synced + 10 + after;
    at = closed + down;
    return { opened, synced, closed };
  });
}

/** The kubelet is down from the end of a watch that it restarted after until the next one. */
export function isDown(
  { kubelet: { watches: planned } }: History,
  watches: readonly HistoryWatch[],
  at: number,
): boolean {
  return watches.some(
    ({ closed }, i) => planned[i]?.restarts === true && at >= closed && at < (watches[i + 1]?.opened ?? at),
  );
}

/** The kubelet's status of a pod at a moment; null where it has no such pod. */
export function statusAt({ pods }: HistoryKubelet, podUid: string, at: number): KubeletPod | null {
  const statuses = pods.find((pod) => pod.podUid === podUid)?.statuses ?? [];
  return statuses.findLast((status) => status.at <= at)?.pod ?? null;
}

function podOf(
  history: History,
  podUid: string,
  index: number,
  all: readonly HistoryContainer[],
  watches: readonly HistoryWatch[],
): KubeletPodHistory {
  const { kubelet } = history;
  const containers = all.filter(({ object }) => object.podUid === podUid && !object.isSandbox);
  const begun = Math.min(
    ...all.flatMap(({ object, at }) => (object.podUid === podUid ? (at.CREATED ?? []) : [])),
  );
  const changes = containers.flatMap(({ at }) => Object.values(at).flatMap((ms) => ms ?? []));
  const delayOf = (n: number) => kubelet.delays[(history.salt + index + n) % kubelet.delays.length] ?? 0;
  const looks = changes.map((ms, n) => ms + 1 + delayOf(n));
  const stops = containers.map(({ at }) => at.STOPPED ?? HORIZON);
  const end = kubelet.ends[index % kubelet.ends.length] ?? null;
  const ended = end === null || stops.length === 0 ? null : Math.max(...stops) + 300 + end;
  const termination = kubelet.terminations.find(({ which }) => which % 5 === index);
  const terminating =
    termination === undefined || stops.length === 0
      ? Number.POSITIVE_INFINITY
      : Math.max(...stops) - termination.before;
  const moments = [Math.max(0, begun - 20), ...looks, terminating].filter((ms) => ms < (ended ?? HORIZON));
  const statuses: PodStatus[] = [];
  const show = (at: number, shown: readonly KubeletContainer[]) => {
    const named = { podUid, namespace: 'default', pod: podUid.replace('u', 'p') };
    const end = ended !== null && at >= ended ? ({ hasEnded: true } as const) : {};
    statuses.push({ at, pod: { ...named, isTerminating: at >= terminating, ...end, containers: shown } });
  };
  for (const at of moments.sort((a, b) => a - b)) {
    show(at, containersAt(containers, at, statuses.at(-1)?.pod.containers ?? []));
  }
  if (ended !== null) {
    const last = containersAt(containers, ended, statuses.at(-1)?.pod.containers ?? []);
    show(
      ended,
      last.map((each) => ({ ...each, state: 'terminated' })),
    );
  }
  return { podUid, statuses: withRestarts(history, statuses, watches, { terminating, ended }), ended };
}

/** The newest container of each name and the one before it, where that has ended (kubelet pkg/kubelet/kubelet_pods.go). */
function containersAt(
  containers: readonly HistoryContainer[],
  at: number,
  before: readonly KubeletContainer[],
): KubeletContainer[] {
  const names = [...new Set(containers.map(({ object }) => object.container))];
  return names.flatMap((name): KubeletContainer[] => {
    const present = containers
      .filter((each) => each.object.container === name && shownAt(each, at) !== null)
      .sort((a, b) => (b.at.CREATED ?? 0) - (a.at.CREATED ?? 0));
    const [newest, second] = present;
    if (newest === undefined)
      return before.filter((each) => each.name === name && each.state === 'terminated');
    const { id } = newest;
    const ran = before.some((each) => each.id === id && each.state === 'running');
    const state = stateShown(newest, at, ran);
    const last = second !== undefined && shownAt(second, at) === 'exited' ? [second.id] : [];
    return [
      { id, name, state },
      ...last.map((lastId): KubeletContainer => ({ id: lastId, name, state: 'terminated' })),
    ];
  });
}

function stateShown(container: HistoryContainer, at: number, ran: boolean): KubeletContainer['state'] {
  switch (shownAt(container, at)) {
    case 'running':
      return 'running';
    case 'exited':
      return 'terminated';
    case 'unknown':
      return ran ? 'terminated' : 'waiting';
    default:
      return 'waiting';
  }
}

/**
 * From a restart until it has looked again the kubelet has the containers that the API server knew some time before. That the pod is
 * terminating is said by the API server itself, so that is never old; and to end a pod the kubelet has looked.
 */
function withRestarts(
  { kubelet }: History,
  statuses: readonly PodStatus[],
  watches: readonly HistoryWatch[],
  { terminating, ended }: { readonly terminating: number; readonly ended: number | null },
): PodStatus[] {
  return kubelet.watches.reduce<PodStatus[]>(
    (all, { restarts, stale, looksAfter }, i) => {
      const next = watches[i + 1];
      const from = watches[i]?.closed;
      if (!restarts || next === undefined || from === undefined) return all;
      const looked = Math.min(
        next.opened + looksAfter,
        ended !== null && ended > from ? ended : Number.POSITIVE_INFINITY,
      );
      const known = all.findLast(({ at }) => at <= from - stale);
      const present = all.findLast(({ at }) => at <= looked);
      const around = all.filter(({ at }) => at < from || at > looked);
      if (present === undefined) return all;
      const old = [from, terminating].flatMap((at) =>
        known === undefined || at < from || at >= looked
          ? []
          : [{ at, pod: { ...known.pod, isTerminating: at >= terminating } }],
      );
      return [...around, ...old, { at: looked, pod: present.pod }].sort((a, b) => a.at - b.at);
    },
    [...statuses],
  );
}

function sightsOf(
  history: History,
  pods: readonly KubeletPodHistory[],
  watch: HistoryWatch,
  number: number,
): HistorySight[] {
  const { opened, synced, closed } = watch;
  if (opened >= HORIZON) return [];
  const drops = new Set(history.kubelet.drops.map((n) => n % 40));
  const delayOf = (n: number) => [1, 2, 40, 3, 200][(history.salt + number + n) % 5] ?? 1;
  const initial = pods.flatMap(({ podUid, statuses }, i) => {
    const sent = Math.min(synced - 1, opened + 1 + i);
    const known = statuses.findLast(({ at }) => at <= sent);
    return known === undefined ? [] : [{ sent, podUid, pod: known.pod }];
  });
  const changed = pods
    .flatMap(({ podUid, statuses, ended }) => [
      // The end of a pod is a message of its own.
      ...statuses.flatMap(({ at, pod }) => (at < (ended ?? HORIZON) ? [{ sent: at, podUid, pod }] : [])),
      ...(ended === null ? [] : [{ sent: ended, podUid, pod: null }]),
    ])
    .filter(({ sent }) => sent >= opened && sent < closed)
    .sort((a, b) => a.sent - b.sent)
    .filter((_, n) => !drops.has((number * 17 + n) % 40))
    .map((each, n) => ({ ...each, sent: each.sent + delayOf(n) }));
  const messages = [...initial, ...changed].sort((a, b) => a.sent - b.sent);
  let last = opened;
  const reported = messages.flatMap(({ sent, podUid, pod }): HistorySight[] => {
    last = Math.max(last, sent);
    if (last >= closed) return [];
    const at = us(last);
    return [{ received: last, sight: pod === null ? { is: 'removed', at, podUid } : { is: 'pod', at, pod } }];
  });
  const frame: HistorySight[] = [
    { received: opened, sight: { is: 'opened', at: us(opened) } },
    { received: synced, sight: { is: 'synced', at: us(synced) } },
    ...(closed < HORIZON ? [{ received: closed, sight: { is: 'broken', at: us(closed) } } as const] : []),
  ];
  return [...frame, ...reported].sort(
    (a, b) => a.received - b.received || (a.sight.is === 'opened' ? -1 : 0),
  );
}

// The truth about a stage.

/**
 * When the kubelet's status first showed a stage of a container, by its id or by the end of its pod, from a moment on; infinity where it
 * never did.
 */
export function firstShownAt(
  { pods }: HistoryKubelet,
  { id, object }: HistoryContainer,
  type: 'STARTED' | 'STOPPED',
  from = 0,
): number {
  const pod = pods.find(({ podUid }) => podUid === object.podUid);
  const shows = ({ containers }: KubeletPod) =>
    containers.some(
      (each) =>
        each.id === id && (each.state === 'terminated' || (each.state === 'running' && type === 'STARTED')),
    );
  const shown = pod?.statuses.find(
    (status, i) => (pod.statuses[i + 1]?.at ?? Number.POSITIVE_INFINITY) > from && shows(status.pod),
  );
  return Math.min(shown?.at ?? Number.POSITIVE_INFINITY, pod?.ended ?? Number.POSITIVE_INFINITY);
}

/** When the status first named a later container of the same name in its place, from a moment on; infinity where it never did. */
export function replacedAt(
  { pods }: HistoryKubelet,
  containers: readonly HistoryContainer[],
  { at, id, object }: HistoryContainer,
  from: number,
): number {
  const later = new Set(
    containers.flatMap((each) =>
      each.id !== id &&
      each.object.podUid === object.podUid &&
      each.object.container === object.container &&
      (each.at.CREATED ?? 0) > (at.CREATED ?? 0)
        ? [each.id]
        : [],
    ),
  );
  const statuses = pods.find(({ podUid }) => podUid === object.podUid)?.statuses ?? [];
  const named = statuses.find(
    ({ pod }, i) =>
      (statuses[i + 1]?.at ?? Number.POSITIVE_INFINITY) > from &&
      pod.containers.some((each) => later.has(each.id)) &&
      !pod.containers.some((each) => each.id === id),
  );
  return named?.at ?? Number.POSITIVE_INFINITY;
}

/** When a pod was first shown to be terminating; infinity where it never was. */
export function terminatingAt({ pods }: HistoryKubelet, podUid: string): number {
  const statuses = pods.find((pod) => pod.podUid === podUid)?.statuses ?? [];
  return statuses.find(({ pod }) => pod.isTerminating)?.at ?? Number.POSITIVE_INFINITY;
}
