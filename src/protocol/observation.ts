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
 * What a list shows of an id. Sandboxes: READY is `running`, NOTREADY is `exited`. `unknown` is the runtime's UNKNOWN and
 * proves nothing.
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

/** Exact times of one container or sandbox, in wall-clock nanoseconds; 0 where the runtime has none. */
export interface ExactTimes {
  readonly createdNs: bigint;
  readonly startedNs: bigint;
  readonly finishedNs: bigint;
  readonly exitCode: number;
  readonly reason: string;
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
  /** What its statuses show of other ids of the pod. */
  readonly others: readonly ShownStatus[];
}

/** The state of one id as a status shows it. */
export interface ShownStatus {
  readonly id: string;
  readonly state: ShownState;
  readonly times: ExactTimes;
}

/**
 * The answer to a status query. `sandbox` is the state of a sandbox, null for a container. Of a sandbox's times only the
 * creation is known: CRI has none for when it became ready or ended.
 */
export type StatusAnswer =
  | {
      readonly id: string;
      readonly at: Mono;
      readonly found: true;
      readonly times: ExactTimes;
      readonly sandbox: ShownState | null;
    }
  | { readonly id: string; readonly at: Mono; readonly found: false; readonly reason: string };

export interface StatusQuery {
  readonly id: string;
  readonly isSandbox: boolean;
}
