/*
 * Observations: the inputs of the comparison. All of them are plain values, wherever they came from.
 *
 *   item      one container or sandbox in a list answer
 *   answer    one list call: when it began, when it ended, what it listed
 *   relist    both calls, one after the other: two moments, not one
 */
import type { ContainerIdentity } from './record.ts';
import type { Mono } from './units.ts';

/**
 * The state of an id in a list. Sandboxes: READY is `running`, NOTREADY is `exited`. `unknown` is the runtime's UNKNOWN and proves nothing.
 */
export type ShownState = 'created' | 'running' | 'exited' | 'unknown';

export interface ListedItem {
  readonly object: ContainerIdentity;
  readonly state: ShownState;
}

export interface ListAnswer {
  readonly start: Mono;
  readonly end: Mono;
  readonly items: ReadonlyMap<string, ListedItem>;
  /** False where an item could not be read: an id that is not listed may still exist. */
  readonly whole: boolean;
}

export interface Relist {
  readonly sandboxes: ListAnswer;
  readonly containers: ListAnswer;
}

/**
 * The traits of an id in a status that decide which events are due. `unnamed_log`: whoever made the container named no log for it, as no kubelet
 * does. `shared_pid`: the containers of the sandbox share one PID namespace.
 */
export const STATUS_TRAITS = ['unnamed_log', 'shared_pid'] as const;
export type StatusTrait = (typeof STATUS_TRAITS)[number];

/** Exact times of one container or sandbox, in wall-clock nanoseconds; 0 where the runtime has none. */
export interface ExactTimes {
  readonly createdNs: bigint;
  readonly startedNs: bigint;
  readonly finishedNs: bigint;
  readonly exitCode: number;
  readonly reason: string;
  /** Left out where its status shows none. */
  readonly trait?: StatusTrait;
}

/** A CRI event as the reader took it from the socket. */
export interface ReceivedEvent {
  readonly session: number;
  readonly received: Mono;
  readonly id: string;
  readonly type: number;
  readonly createdNs: bigint;
  readonly hasSandboxStatus: boolean;
  /** Null where the payload was dropped or lacks it: then the identity that is known already holds. */
  readonly object: ContainerIdentity | null;
  /** The exact times of its id from the event's own statuses; for a sandbox only the creation. */
  readonly times: ExactTimes | null;
  /** The statuses in it of other ids of the pod. */
  readonly others: readonly ShownStatus[];
}

/** The state of one id as a status shows it. */
export interface ShownStatus {
  readonly id: string;
  readonly state: ShownState;
  readonly times: ExactTimes;
}

/**
 * The answer to a status query. `asked` is when the call began. `sandbox` is the state of a sandbox, null for a container. Only the creation of a
 * sandbox has a known time: CRI has none for when it became ready or ended.
 */
export type StatusAnswer = { readonly id: string; readonly asked: Mono; readonly at: Mono } & (
  | { readonly found: true; readonly times: ExactTimes; readonly sandbox: ShownState | null }
  | { readonly found: false; readonly reason: string }
);

export interface StatusQuery {
  readonly id: string;
  readonly isSandbox: boolean;
}

/** One container of a pod as the kubelet's own status shows it. `waiting` shows neither a start nor a stop of this id. */
export interface KubeletContainer {
  readonly id: string;
  readonly name: string;
  readonly state: 'waiting' | 'running' | 'terminated';
}

/** A pod as the kubelet's own status shows it. Nothing else of a pod is decoded. */
export interface KubeletPod {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  /** It has a deletionTimestamp, or its phase is final while a container of it runs. */
  readonly isTerminating: boolean;
  /** Its phase is final and no container of it runs: the kubelet looks at its containers no more. Absent where that is not so. */
  readonly hasEnded?: true;
  /** Each id once; statuses without an id are left out. The id before a restart is listed too, as terminated. */
  readonly containers: readonly KubeletContainer[];
  /** Names of those that wait and have no id yet, which the kubelet has still to create; absent where there are none. */
  readonly uncreated?: readonly string[];
}

/** The reports of the pods watch, in the order in which it came. */
export type KubeletSight =
  /** The stream was opened: the pods that exist follow, and newer messages may come between them. */
  | { readonly is: 'opened'; readonly at: Mono }
  /** Every pod that exists was sent. From here on the watch covers changes. */
  | { readonly is: 'synced'; readonly at: Mono }
  | { readonly is: 'pod'; readonly at: Mono; readonly pod: KubeletPod }
  | { readonly is: 'removed'; readonly at: Mono; readonly podUid: string }
  /** A message about this pod could not be decoded, or was not kept: until its next `pod` nothing is known of it. */
  | { readonly is: 'unknown'; readonly at: Mono; readonly podUid: string }
  /** The watch ended, for whatever reason. Nothing after `at`, the last moment known good, is covered. */
  | { readonly is: 'broken'; readonly at: Mono };

/** The answer to a GetPod. `asked` is when the call began; not found includes calls that failed. */
export type KubeletPodAnswer = { readonly podUid: string; readonly asked: Mono; readonly at: Mono } & (
  | { readonly found: true; readonly pod: KubeletPod }
  | { readonly found: false; readonly reason: string }
);
