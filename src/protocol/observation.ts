/*
 * Observations: what the comparison is told. All of it is values; where they came from is the shell's business.
 *
 *   item      one container or sandbox in a list answer
 *   answer    one list call: when it was asked, when it was answered, what was in it
 *   relist    both calls, taken one after the other; two moments, not one
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
  /** False where an item could not be read: what is not among the others may be there all the same. */
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
  /** Null where the payload had to be dropped or did not say: identity is then what is known already. */
  readonly object: ContainerIdentity | null;
  /** What the event's own statuses say of its id; of a sandbox only when it was created. */
  readonly times: ExactTimes | null;
  /** What its statuses say of other ids of the pod. */
  readonly others: readonly ShownStatus[];
}

/** The state of one id as a status shows it. */
export interface ShownStatus {
  readonly id: string;
  readonly state: ShownState;
  readonly times: ExactTimes;
}

/**
 * The answer to a question about one id. `sandbox` is the state of a sandbox, of whose times only the creation is known: CRI
 * has none for when it became ready or ended. Null for a container.
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

/** A question for ContainerStatus or PodSandboxStatus: what they know of the id. */
export interface StatusQuery {
  readonly id: string;
  readonly isSandbox: boolean;
}
