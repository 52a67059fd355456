/*
 * The pods of a simulated runtime: what its lists show, and every legal step of a life. A step changes the state, notes
 * the transition in the ground truth, then builds the event, in the order in which the profile's runtime does it. No
 * clock, no sockets, no chance of its own.
 *
 *   sandbox     runPod ──► READY ── stopPod ──► NOTREADY ── beginRemoval ──► (still listed) ── finishRemoval ──► gone
 *   container   createContainer ──► CREATED ── startContainer ──► RUNNING ── exitContainer ──► EXITED ── removeContainer ──► gone
 *                                      └─────── exitContainer: a failed start, which no runtime announces ──────┘
 */
import type { EventType } from '../evidence/record.ts';
import { type Clock, nanosOf } from './clock.ts';
import type { Profile } from './profiles.ts';
import { idFor, uidFor } from './random.ts';
import type { PodName, Silence, Subject, Transition, Truth } from './truth.ts';

export interface Sandbox {
  readonly id: string;
  readonly pod: PodName;
  readonly attempt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly createdNs: bigint;
  ready: boolean;
}

export interface Container {
  readonly id: string;
  readonly sandbox: Sandbox;
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
}

/** How a step is announced: not at all, or only these of its events. Without a word: as the profile does it. */
export interface Announcement {
  readonly announce?: boolean | readonly EventType[];
}

export interface PodSpec {
  /** Left out: a new one. */
  readonly id?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly attempt?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ContainerSpec {
  /** Left out: a new one. */
  readonly id?: string;
  readonly name: string;
  readonly attempt?: number;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
}

/** An event that a step wants announced. `listed`: the sandbox is still there to be asked for its status. */
export interface Draft extends Subject {
  readonly type: EventType;
  readonly listed: boolean;
}

export interface PodsOptions {
  readonly profile: Profile;
  readonly clock: Clock;
  readonly truth: Truth;
  readonly seed: number;
  readonly announce: (draft: Draft) => void;
  /** While true nothing can be announced: the runtime's process is away and its containers live on. */
  readonly isDown: () => boolean;
}

/** A step that the present state does not allow. */
export class IllegalStep extends Error {
  readonly reason: 'not-found' | 'wrong-state';

  constructor(reason: IllegalStep['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

const EVENT_OF = { created: 'CREATED', started: 'STARTED', stopped: 'STOPPED', deleted: 'DELETED' } as const;

export class Pods {
  readonly sandboxes = new Map<string, Sandbox>();
  readonly containers = new Map<string, Container>();
  readonly #options: PodsOptions;
  #made = 0;

  constructor(options: PodsOptions) {
    this.#options = options;
  }

  runPod(spec: PodSpec, how: Announcement = {}): Sandbox {
    const id = spec.id ?? this.#newId('sandbox', spec.name);
    const pod = {
      uid: spec.uid ?? uidFor(this.#options.seed, id),
      namespace: spec.namespace ?? 'default',
      name: spec.name,
    };
    const sandbox: Sandbox = {
      id,
      pod,
      attempt: spec.attempt ?? 0,
      labels: { ...podLabels(pod), ...spec.labels },
      annotations: spec.annotations ?? {},
      createdNs: this.#now(),
      ready: true,
    };
    this.sandboxes.set(id, sandbox);
    this.#step(subjectOf(sandbox), 'created', how);
    this.#step(subjectOf(sandbox), 'started', how);
    return sandbox;
  }

  createContainer(sandboxId: string, spec: ContainerSpec, how: Announcement = {}): Container {
    const sandbox = this.sandbox(sandboxId);
    if (!sandbox.ready) throw new IllegalStep('wrong-state', `sandbox ${sandboxId} is not ready`);
    const container: Container = {
      id: spec.id ?? this.#newId('container', sandboxId, spec.name),
      sandbox,
      name: spec.name,
      attempt: spec.attempt ?? 0,
      image: spec.image ?? 'plegwatch.local/busybox:1',
      labels: { ...podLabels(sandbox.pod), 'io.kubernetes.container.name': spec.name, ...spec.labels },
      annotations: spec.annotations ?? {},
      command: spec.command ?? [],
      createdNs: this.#now(),
      state: 'created',
      startedNs: 0n,
      finishedNs: 0n,
      exitCode: 0,
    };
    this.containers.set(container.id, container);
    this.#step(subjectOf(container), 'created', how);
    return container;
  }

  startContainer(id: string, how: Announcement = {}): void {
    const container = this.container(id);
    if (container.state !== 'created') {
      throw new IllegalStep('wrong-state', `container ${id} is ${container.state}, not created`);
    }
    container.state = 'running';
    container.startedNs = this.#now();
    this.#step(subjectOf(container), 'started', how);
  }

  /** Ends a running container, or fails the start of a created one. One that has ended already is left as it is. */
  exitContainer(id: string, how: Announcement & { readonly exitCode?: number } = {}): void {
    const container = this.container(id);
    if (container.state === 'exited') return;
    const ran = container.state === 'running';
    container.state = 'exited';
    container.finishedNs = this.#now();
    container.exitCode = how.exitCode ?? (ran ? 0 : 128);
    this.#step(subjectOf(container), 'stopped', how, ran ? null : 'profile', container.exitCode);
  }

  /** Removes a container, after ending it where it still runs. */
  removeContainer(id: string, how: Announcement = {}): void {
    this.#remove(this.container(id), how, null);
  }

  /** Ends what runs in a sandbox, then the sandbox. One that has been stopped already is left as it is. */
  stopPod(sandboxId: string, how: Announcement = {}): void {
    const sandbox = this.sandbox(sandboxId);
    if (!sandbox.ready) return;
    for (const container of this.containersOf(sandboxId)) {
      if (container.state === 'running') this.exitContainer(container.id, { ...how, exitCode: 137 });
    }
    sandbox.ready = false;
    this.#step(subjectOf(sandbox), 'stopped', how);
  }

  /** The first half of a removal: everything up to the moment in which the sandbox leaves the list. */
  beginRemoval(sandboxId: string, how: Announcement = {}): void {
    const { profile } = this.#options;
    const sandbox = this.sandbox(sandboxId);
    this.stopPod(sandboxId, how);
    for (const container of this.containersOf(sandboxId)) {
      this.#remove(container, how, profile.removalAnnouncesContainers ? null : 'profile');
    }
    if (profile.sandboxDeletedWhileListed) this.#announce(subjectOf(sandbox), 'deleted', how, true);
  }

  /** The second half: the sandbox leaves the list. Takes the same announcement as the first. */
  finishRemoval(sandboxId: string, how: Announcement = {}): void {
    const sandbox = this.sandbox(sandboxId);
    const early = this.#options.profile.sandboxDeletedWhileListed;
    this.sandboxes.delete(sandboxId);
    this.#note(subjectOf(sandbox), 'deleted', this.#silence(subjectOf(sandbox), 'deleted', how));
    if (!early) this.#announce(subjectOf(sandbox), 'deleted', how, false);
  }

  sandbox(id: string): Sandbox {
    const found = this.sandboxes.get(id);
    if (found === undefined) throw new IllegalStep('not-found', `could not find sandbox "${id}": not found`);
    return found;
  }

  container(id: string): Container {
    const found = this.containers.get(id);
    if (found === undefined)
      throw new IllegalStep('not-found', `could not find container "${id}": not found`);
    return found;
  }

  containersOf(sandboxId: string): Container[] {
    return [...this.containers.values()].filter((container) => container.sandbox.id === sandboxId);
  }

  #remove(container: Container, how: Announcement, silence: Silence | null): void {
    if (container.state === 'running') this.exitContainer(container.id, { ...how, exitCode: 137 });
    this.containers.delete(container.id);
    this.#step(subjectOf(container), 'deleted', how, silence);
  }

  #step(
    subject: Subject,
    transition: Transition,
    how: Announcement,
    never: Silence | null = null,
    exitCode: number | null = null,
  ): void {
    const silent = never ?? this.#silence(subject, transition, how);
    this.#note(subject, transition, silent, exitCode);
    if (silent === null) this.#options.announce({ ...subject, type: EVENT_OF[transition], listed: true });
  }

  #announce(subject: Subject, transition: Transition, how: Announcement, listed: boolean): void {
    if (this.#silence(subject, transition, how) !== null) return;
    this.#options.announce({ ...subject, type: EVENT_OF[transition], listed });
  }

  #note(
    subject: Subject,
    transition: Transition,
    silent: Silence | null,
    exitCode: number | null = null,
  ): void {
    this.#options.truth.record({ what: 'transition', ...subject, transition, exitCode, silent });
  }

  #silence({ isSandbox }: Subject, transition: Transition, how: Announcement): Silence | null {
    const { profile, isDown } = this.#options;
    const type = EVENT_OF[transition];
    if (!(isSandbox ? profile.sandboxEvents : profile.containerEvents).includes(type)) return 'profile';
    if (isDown()) return 'down';
    const wanted = how.announce ?? true;
    return wanted === true || (wanted !== false && wanted.includes(type)) ? null : 'asked';
  }

  #now(): bigint {
    return nanosOf(this.#options.clock().wall);
  }

  #newId(...keys: readonly string[]): string {
    this.#made += 1;
    return idFor(this.#options.seed, this.#made, ...keys);
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

function subjectOf(item: Sandbox | Container): Subject {
  if ('sandbox' in item) {
    const { id, sandbox, name, attempt } = item;
    return { id, sandbox: sandbox.id, isSandbox: false, pod: sandbox.pod, container: name, attempt };
  }
  return {
    id: item.id,
    sandbox: item.id,
    isSandbox: true,
    pod: item.pod,
    container: '',
    attempt: item.attempt,
  };
}
