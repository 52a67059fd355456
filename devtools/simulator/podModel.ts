/*
 * The items of a simulated runtime: a sandbox, a container, what one asks for to get one, and how a step is announced.
 *
 *   state   what an item really is
 *   shown   what lists and statuses say instead, while the runtime is wrong about it
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { EventSubject, PodName, ShownState } from './groundTruth.ts';

export interface SimulatedSandbox {
  readonly id: string;
  readonly pod: PodName;
  readonly attempt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly createdNs: bigint;
  ready: boolean;
  /** Null: as it is. */
  shown: ShownState | null;
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
  state: 'created' | 'running' | 'exited';
  startedNs: bigint;
  finishedNs: bigint;
  exitCode: number;
  /** Null: as it is. */
  shown: ShownState | null;
  /** The announcement of an exit that the runtime has not noticed yet. */
  unnoticed: EventDraft | null;
}

/** How a step is announced: not at all, or only these of its events. Without a word: as the profile does it. */
export interface AnnounceOptions {
  readonly announce?: boolean | readonly EventType[];
}

export interface SimulatedPodSpec {
  /** Left out: a new one. */
  readonly id?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly attempt?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface SimulatedContainerSpec {
  /** Left out: a new one. */
  readonly id?: string;
  readonly name: string;
  readonly attempt?: number;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
}

/** How a container ends. */
export interface ContainerExit extends AnnounceOptions {
  readonly exitCode?: number;
  /** The runtime goes on showing it as running until it is told to notice; the event waits as long. */
  readonly unnoticed?: boolean;
  /** Of a failed start: `zero` it has no started_at, `same` it was created, started and finished in one moment. */
  readonly failedTimes?: 'zero' | 'same';
}

/** An event that a step wants announced. `listed`: the sandbox is still there to be asked for its status. */
export interface EventDraft extends EventSubject {
  readonly type: EventType;
  readonly listed: boolean;
  /** Nothing happened: the runtime only says so. */
  readonly spurious?: boolean;
}

/** A step that the present state does not allow. */
export class IllegalStep extends Error {
  readonly reason: 'not-found' | 'wrong-state';

  constructor(reason: IllegalStep['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** What the kubelet writes on every sandbox and container. */
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

/** What an event or a draft is about, and nothing else of it. */
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
