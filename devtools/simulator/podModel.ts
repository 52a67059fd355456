/*
 * Sandboxes and containers of a simulated runtime, and the options to create and announce them.
 *
 *   state   the true state
 *   shown   the state in lists and statuses while it differs from the true one
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { EventSubject, PodName, ShownItemState } from './groundTruth.ts';

export interface SimulatedSandbox {
  readonly id: string;
  readonly pod: PodName;
  readonly attempt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly createdNs: bigint;
  /** Its containers share a PID namespace. */
  readonly sharedPid: boolean;
  ready: boolean;
  /** Null: the true state. */
  shown: ShownItemState | null;
}

export interface SimulatedContainer {
  readonly id: string;
  readonly sandbox: SimulatedSandbox;
  readonly name: string;
  readonly attempt: number;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly createdNs: bigint;
  /** From a checkpoint. */
  readonly restored: boolean;
  state: 'created' | 'running' | 'exited';
  startedNs: bigint;
  finishedNs: bigint;
  exitCode: number;
  oomKilled: boolean;
  /** Null: the true state. */
  shown: ShownItemState | null;
  /** Its start failed, and nobody knows what is left of it. */
  unknownStart: boolean;
  /** The event of an exit that the runtime has not noticed yet. */
  unnoticed: EventDraft | null;
  /** It exited while the runtime was down. */
  exitedWhileDown: boolean;
}

/** Which events of an action are announced: none, or only these types. Default: those of the profile. */
export interface AnnounceOptions {
  readonly announce?: boolean | readonly EventType[];
}

export interface SimulatedPodSpec {
  /** Default: a new id. */
  readonly id?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly attempt?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly sharedPid?: boolean;
}

export interface SimulatedContainerSpec {
  /** Default: a new id. */
  readonly id?: string;
  readonly name: string;
  readonly attempt?: number;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  /** It is restored from a checkpoint. */
  readonly restored?: boolean;
}

/** How a container ends. */
export interface ContainerExit extends AnnounceOptions {
  readonly exitCode?: number;
  /** The runtime shows the container as running, and delays the event, until `notice` is called. */
  readonly unnoticed?: boolean;
  /** Times of a failed start of containerd: `zero` has no started_at, `same` has the same created_at, started_at and finished_at. */
  readonly failedTimes?: 'zero' | 'same';
  /** A failed start is UNKNOWN, where the profile has that. */
  readonly unknownStart?: boolean;
  readonly oomKilled?: boolean;
}

/** An event to be built. `listed`: the sandbox is still listed, so that the event has its status. */
export interface EventDraft extends EventSubject {
  readonly type: EventType;
  readonly listed: boolean;
  /** Announced although nothing happened. */
  readonly spurious?: boolean;
}

/** An action that the current state does not allow. */
export class IllegalStep extends Error {
  readonly reason: 'not-found' | 'wrong-state';

  constructor(reason: IllegalStep['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The labels that the kubelet sets on every sandbox and container. */
export function podLabels(pod: PodName): Record<string, string> {
  return {
    'io.kubernetes.pod.name': pod.name,
    'io.kubernetes.pod.namespace': pod.namespace,
    'io.kubernetes.pod.uid': pod.uid,
  };
}

export function subjectOf(item: SimulatedSandbox | SimulatedContainer): EventSubject {
  if ('sandbox' in item) {
    const { id, sandbox, name, attempt } = item;
    return { id, sandbox: sandbox.id, isSandbox: false, pod: sandbox.pod, container: name, attempt };
  }
  const { id, pod, attempt } = item;
  return { id, sandbox: id, isSandbox: true, pod, container: '', attempt };
}

/** Only the subject of an event or a draft. */
export function subjectOfEvent({
  id,
  sandbox,
  isSandbox,
  pod,
  container,
  attempt,
}: EventSubject): EventSubject {
  return { id, sandbox, isSandbox, pod, container, attempt };
}
