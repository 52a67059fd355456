/*
 * The containers and sandboxes of a history, and what lists and statuses show of them. For tests.
 *
 *   transition   a stage of an id is reached, and lists that sample the id from then on show it
 *   wrong view   for a while lists and statuses show something else
 */

import type { ExactTimes, ShownState, StatusTrait } from '../../../src/protocol/observation.ts';
import { type ContainerIdentity, EVENT_TYPES, type EventType } from '../../../src/protocol/record.ts';
import { type History, type HistoryRuntime, isContainerd } from './history.ts';

interface WrongView {
  readonly from: number;
  readonly to: number;
  readonly shown: ShownState | 'absent';
}

/** One id, and when it reached each stage; null where it never did. A failed start is stopped, and never started. */
export interface HistoryContainer {
  readonly id: string;
  readonly object: ContainerIdentity;
  readonly isSandbox: boolean;
  readonly at: Readonly<Record<EventType, number | null>>;
  /** Its DELETED is announced this long before it leaves the list. */
  readonly lead: number;
  /** How long before its STOPPED it truly ended: that is when the runtime noticed, and what `finished_at` says. */
  readonly noticedAfter: number;
  /** When its start failed, where it is UNKNOWN from then until its STOPPED; null where it is not. */
  readonly failedAt: number | null;
  /** It was restored, and that is not announced by these. */
  readonly restoredSilently: readonly EventType[];
  /** The trait in its statuses. */
  readonly trait: StatusTrait | null;
  /** It is listed, as ended, before it starts. */
  readonly listedEarly: boolean;
  /** The runtime does not announce that it stopped, or that it was removed. */
  readonly stopsSilently: boolean;
  readonly removedSilently: boolean;
  /**
   * Its start failed, or it never came up: with no `started_at`, with all three times the same, or with `started_at` equal to
   * `created_at` and a later `finished_at`.
   */
  readonly failed: 'zero' | 'equal' | 'later' | null;
  /** Whether the end of a failed start is announced: STOPPED for a container, DELETED for a sandbox. */
  readonly failureAnnounced: boolean;
  readonly wrongViews: readonly WrongView[];
}

export function containersOf(history: History): HistoryContainer[] {
  const plain = numbered(history.pods.flatMap((pod, n) => containersOfPod(pod, n + 1, history.runtime)));
  return plain.map((container, i) => ({
    ...container,
    wrongViews: [
      ...container.wrongViews,
      ...history.wrongViews.flatMap((view) =>
        view.which % plain.length === i ? wrongViewOf(container, view) : [],
      ),
    ],
  }));
}

/** Each container has as many attempts before it as containers of its name were created before. */
const numbered = (all: readonly HistoryContainer[]): HistoryContainer[] =>
  all.map((each) => {
    const { podUid, container } = each.object;
    const before = all.filter(
      ({ at, object }) =>
        object.podUid === podUid &&
        object.container === container &&
        !object.isSandbox &&
        (at.CREATED ?? 0) < (each.at.CREATED ?? 0),
    );
    return each.isSandbox ? each : { ...each, object: { ...each.object, attempt: before.length } };
  });

type Pod = History['pods'][number];

const NEVER_CAME_UP = 2;
const TWO_SANDBOXES = 2;
const REMOVED_RUNNING = 3;
const RESTORED = 4;
const RESTORED_CONTAINERS: readonly number[] = [6, 13];
/** On CRI-O it is stopped before it starts, which is announced. */
const NEVER_STARTED = 0;

function containersOfPod(pod: Pod, n: number, runtime: HistoryRuntime): HistoryContainer[] {
  if (pod.habit < NEVER_CAME_UP) return [failedSandbox(pod, n, runtime)];
  const crio = runtime === 'crio';
  const listedEarly = runtime === 'isulad';
  const begun = pod.at + (listedEarly ? pod.lead : 0);
  const containers = pod.containers.map((each, i) =>
    containerOfPod(each, { ...pod, at: begun }, n, i, runtime),
  );
  const end = Math.max(begun, ...containers.map(({ at }) => at.STOPPED ?? 0)) + 5 + pod.pause;
  const gone = Math.max(end, ...containers.map(({ at }) => at.DELETED ?? 0)) + 5 + pod.remove;
  const removedRunning = pod.habit === REMOVED_RUNNING;
  const stopped = removedRunning ? Math.max(end, gone - pod.pause) : end;
  const at = { CREATED: pod.at, STARTED: begun + 1, STOPPED: stopped, DELETED: gone };
  const hasSharedPid = crio && pod.pause % 2 === 1;
  const lead = !isContainerd(runtime) ? 0 : Math.min(pod.lead, gone - stopped - 2);
  const sandbox: HistoryContainer = {
    ...nothingOdd,
    ...identity(n, '', null),
    at,
    lead: Math.max(0, lead),
    listedEarly,
    restoredSilently: runtime === 'containerd-2.5' && pod.habit === RESTORED ? silentOf(pod.remove) : [],
    trait: hasSharedPid ? 'shared_pid' : null,
    stopsSilently: crio && removedRunning && !hasSharedPid,
  };
  // A container that is taken along goes last, or one by one while the sandbox is still up.
  const all = [sandbox, ...containers].map((container) =>
    isTakenAlong(container) && !removedRunning
      ? { ...container, at: { ...container.at, DELETED: gone - 1 } }
      : container,
  );
  if (pod.habit !== TWO_SANDBOXES) return all;
  const again = begun + 1 + pod.pause;
  const second = { CREATED: again, STARTED: again + 1, STOPPED: gone + 5, DELETED: gone + 10 + pod.remove };
  return [...all, { ...nothingOdd, ...identity(n, 'b', null), at: second, lead: 0 }];
}

/** A runtime that restores pods may announce their starts, or not. */
const silentOf = (dice: number): readonly EventType[] =>
  dice % 2 === 0 ? ['CREATED'] : ['CREATED', 'STARTED'];

/** A container that failed to start was removed before, by the runtime itself. */
const isTakenAlong = ({ removedSilently, failed }: HistoryContainer): boolean =>
  removedSilently && failed === null;

const nothingOdd = {
  lead: 0,
  noticedAfter: 0,
  failedAt: null,
  restoredSilently: [],
  trait: null,
  listedEarly: false,
  stopsSilently: false,
  removedSilently: false,
  failed: null,
  failureAnnounced: false,
  wrongViews: [],
} as const;

function failedSandbox(pod: Pod, n: number, runtime: HistoryRuntime): HistoryContainer {
  const at = { CREATED: pod.at, STARTED: null, STOPPED: pod.at, DELETED: pod.at + 5 + pod.remove };
  return {
    ...nothingOdd,
    ...identity(n, '', null),
    at,
    listedEarly: runtime === 'isulad',
    failed: 'zero',
    failureAnnounced: runtime !== 'crio' && pod.habit === 1,
  };
}

function containerOfPod(
  each: Pod['containers'][number],
  pod: Pod,
  n: number,
  i: number,
  runtime: HistoryRuntime,
): HistoryContainer {
  const fails = each.habit === 0 || each.habit === 2 || each.habit === 4;
  if (fails && runtime === 'crio' && each.habit !== NEVER_STARTED) return failedStartOnCrio(each, pod, n, i);
  const created = pod.at + 5 + each.create;
  const begun = created + 1 + each.start;
  const noticedAfter = runtime === 'isulad' && !fails ? each.remove % 2_100 : 0;
  const stopped = begun + noticedAfter + (fails ? 5 : 1 + each.run);
  const removed = stopped + 1 + each.remove;
  const common: HistoryContainer = {
    ...nothingOdd,
    ...identity(n, 'abc'[i] ?? '', each.habit % 3 === 2 ? `own-${i}` : 'app'),
    at: { CREATED: created, STARTED: fails ? null : begun, STOPPED: stopped, DELETED: removed },
    noticedAfter,
    removedSilently: runtime === 'crio' && each.habit % 2 === 1,
    ...restoredOf(each.habit, runtime),
  };
  return fails ? failedStart(common, each.habit, runtime) : common;
}

function restoredOf(
  habit: number,
  runtime: HistoryRuntime,
): Pick<HistoryContainer, 'restoredSilently' | 'trait'> {
  if (RESTORED_CONTAINERS.includes(habit)) {
    if (runtime === 'crio') return { restoredSilently: ['CREATED', 'STARTED'], trait: 'unnamed_log' };
    if (runtime === 'containerd-2.5') return { restoredSilently: silentOf(habit), trait: null };
  }
  return { restoredSilently: [], trait: null };
}

function failedStart(container: HistoryContainer, habit: number, runtime: HistoryRuntime): HistoryContainer {
  const failed = habit === 2 && runtime !== 'isulad' ? 'equal' : 'zero';
  const failureAnnounced = runtime === 'crio' || (habit === 4 && runtime !== 'isulad');
  const { STOPPED: stopped, DELETED: removed } = container.at;
  const mayBeUnknown = runtime === 'containerd-2.4' || runtime === 'containerd-2.5';
  if (habit !== 4 || !mayBeUnknown || stopped === null || removed === null) {
    return { ...container, failed, failureAnnounced };
  }
  // It is UNKNOWN until it is cleaned up in order to be removed.
  return {
    ...container,
    failed,
    failureAnnounced,
    at: { ...container.at, STOPPED: removed, DELETED: removed + 2 },
    failedAt: stopped,
    wrongViews: [{ from: stopped, to: removed, shown: 'unknown' }],
  };
}

/** CRI-O announces the end, and removes the container itself, mostly at once: before its STOPPED is built if the habit is 2. */
function failedStartOnCrio(
  each: Pod['containers'][number],
  pod: Pod,
  n: number,
  i: number,
): HistoryContainer {
  const created = pod.at + 5 + each.create;
  const stopped = created + 1 + each.start;
  const stays = each.habit === 4 ? each.remove : 0;
  return {
    ...nothingOdd,
    ...identity(n, 'abc'[i] ?? '', each.habit % 3 === 2 ? `own-${i}` : 'app'),
    at: { CREATED: created, STARTED: null, STOPPED: stopped, DELETED: stopped + 1 + stays },
    removedSilently: true,
    failed: 'later',
    failureAnnounced: true,
  };
}

/** `container` is the name of a container; null for a sandbox. */
function identity(
  n: number,
  suffix: string,
  container: string | null,
): Pick<HistoryContainer, 'id' | 'object' | 'isSandbox'> {
  const isSandbox = container === null;
  const id = `${isSandbox ? 's' : 'c'}${n}${suffix}`;
  const object = {
    id,
    sandbox: isSandbox ? id : `s${n}`,
    isSandbox,
    podUid: `u${n}`,
    namespace: 'default',
    pod: `p${n}`,
    container: container ?? '',
    attempt: 0,
  };
  return { id, object, isSandbox };
}

/** Only what has been up has wrong views. */
function wrongViewOf({ at, failed }: HistoryContainer, view: History['wrongViews'][number]): WrongView[] {
  const end = at.STOPPED;
  if (end === null || failed !== null) return [];
  if (view.kind === 'late' || view.kind === 'back') {
    const from = end + (view.kind === 'late' ? 0 : 1 + view.after);
    return [{ from, to: from + view.for, shown: 'running' }];
  }
  const from = (at.CREATED ?? 0) + view.after;
  return [{ from, to: from + view.for, shown: view.kind }];
}

/** Whether lists show a sandbox as ended before it has started. */
export const isListedEarly = ({ isSandbox, listedEarly }: HistoryContainer): boolean =>
  isSandbox && listedEarly;

/** The state of an id at a moment; null where it does not exist. */
export function stateAt(container: HistoryContainer, moment: number): ShownState | null {
  const { at, isSandbox } = container;
  const reached = (type: EventType) => at[type] !== null && moment >= at[type];
  if (!reached('CREATED') || reached('DELETED')) return null;
  if (reached('STOPPED')) return 'exited';
  if (reached('STARTED')) return 'running';
  if (isListedEarly(container)) return 'exited';
  return isSandbox ? 'running' : 'created';
}

/** The state of an id in lists and statuses at a moment; null where they show nothing. A sandbox is never UNKNOWN. */
export function shownAt(container: HistoryContainer, moment: number): ShownState | null {
  const state = stateAt(container, moment);
  if (state === null) return null;
  const view = container.wrongViews.find(({ from, to }) => moment >= from && moment < to);
  if (view === undefined || (container.isSandbox && view.shown === 'unknown')) return state;
  return view.shown === 'absent' ? null : view.shown;
}

/** The exact times in a status at a moment; a sandbox has only its creation. */
export function timesAt(
  container: HistoryContainer,
  moment: number,
  wallNs: (at: number) => bigint,
): ExactTimes {
  const { at, isSandbox, failed, failedAt, trait } = container;
  const reached = (type: EventType) => at[type] !== null && at[type] <= moment;
  const ns = (type: EventType) => (reached(type) ? wallNs(at[type] ?? 0) : 0n);
  const known = { createdNs: ns('CREATED'), startedNs: 0n, finishedNs: 0n, exitCode: 0, reason: '' };
  const times = trait === null ? known : { ...known, trait };
  if (isSandbox) return times;
  if (failed === 'equal' && reached('STOPPED')) {
    return { ...times, startedNs: times.createdNs, finishedNs: times.createdNs };
  }
  if (failed === 'later' && reached('STOPPED')) {
    return { ...times, startedNs: times.createdNs, finishedNs: ns('STOPPED') };
  }
  if (failedAt !== null) return { ...times, finishedNs: failedAt <= moment ? wallNs(failedAt) : 0n };
  // While it is shown running it has not ended.
  const ended = shownAt(container, moment) !== 'running';
  return { ...times, startedNs: ns('STARTED'), finishedNs: ended ? ns('STOPPED') : 0n };
}

/** The stages in their order. */
export const stageOfType = (type: EventType): number => EVENT_TYPES.indexOf(type);

/** The furthest stage that a shown state has reached; -1 for UNKNOWN. */
export const stageOfState = (shown: ShownState): number => ['created', 'running', 'exited'].indexOf(shown);
