/*
 * The pods of a simulated runtime and every legal action on them. An action changes the state, records the transition in
 * the ground truth and builds the event, in the order of the profile's runtime. It is deterministic: no clock, no socket
 * and no random numbers.
 *
 *   sandbox     (createPod ──► NOTREADY) ── runPod ──► READY ── stopPod ──► NOTREADY ── beginRemoval ──► (still listed) ── finishRemoval ──► gone
 *               failPod ─────────────────────► NOTREADY     (beginRemoval also stops a READY one)
 *   container   createContainer ──► CREATED ── startContainer ──► RUNNING ── exitContainer ──► EXITED ── removeContainer ──► gone
 *                                      └─────── exitContainer: a failed start ──────────────────────────────────┘
 */
import type { EventType } from '../../src/protocol/record.ts';
import { type Clock, nanosOf } from './clock.ts';
import { Announcer, type AnnouncerOptions } from './eventAnnouncer.ts';
import { noteFault, type ShownItemState } from './groundTruth.ts';
import {
  type AnnounceOptions,
  type ContainerExit,
  type EventDraft,
  IllegalStep,
  podLabels,
  type SimulatedContainer,
  type SimulatedContainerSpec,
  type SimulatedPodSpec,
  type SimulatedSandbox,
  subjectOf,
} from './podModel.ts';
import { idFor, uidFor } from './random.ts';

export interface PodsOptions extends AnnouncerOptions {
  readonly clock: Clock;
  readonly seed: number;
}

const FAILED_TIMES = {
  zero: 'started_at is 0',
  same: 'all times are the same',
  later: 'started_at is created_at',
} as const;
/** The zero time of Go, in nanoseconds as `UnixNano` has it. */
const GO_ZERO_NS = -6_795_364_578_871_345_152n;
const FAILED_WITH = { 'cri-o': 'later', isulad: 'zero' } as const;

export class SimulatedPods {
  readonly sandboxes = new Map<string, SimulatedSandbox>();
  readonly containers = new Map<string, SimulatedContainer>();
  readonly #options: PodsOptions;
  readonly #announcer: Announcer;
  #made = 0;

  constructor(options: PodsOptions) {
    this.#options = options;
    this.#announcer = new Announcer(options);
  }

  /** Creates a sandbox that {@link runPod} starts later. Does nothing where no sandbox is listed before it starts. */
  createPod(spec: SimulatedPodSpec & { readonly id: string }): void {
    if (this.#options.profile.sandboxesListedBeforeStart) this.#createPod(spec, {});
  }

  /** A second READY sandbox of one pod UID is legal, and recorded as a fault. */
  runPod(spec: SimulatedPodSpec, how: AnnounceOptions = {}): SimulatedSandbox {
    const sandbox = this.sandboxes.get(spec.id ?? '') ?? this.#createPod(spec, how);
    const duplicate = [...this.sandboxes.values()].find(
      ({ id, ready, pod }) => ready && id !== sandbox.id && pod.uid === sandbox.pod.uid,
    );
    if (duplicate !== undefined)
      this.#noteFault('duplicate_sandbox', sandbox, `${duplicate.id} is ready too`);
    sandbox.ready = true;
    this.#announcer.step(subjectOf(sandbox), 'started', how);
    return sandbox;
  }

  /** A sandbox that fails to start: listed as NOTREADY, or never listed. At most its CREATED is announced. */
  failPod(spec: SimulatedPodSpec, how: { readonly listed?: boolean } = {}): SimulatedSandbox {
    const sandbox = this.#newSandbox(spec, false);
    const listed = how.listed ?? true;
    this.#noteFault('sandbox_failed', sandbox, listed ? 'listed as NOTREADY' : 'never listed');
    if (!listed) return sandbox;
    this.sandboxes.set(sandbox.id, sandbox);
    const never = this.#options.profile.announcesFailedSandbox ? null : 'profile';
    this.#announcer.step(subjectOf(sandbox), 'created', { never });
    return sandbox;
  }

  createContainer(
    sandboxId: string,
    spec: SimulatedContainerSpec,
    how: AnnounceOptions = {},
  ): SimulatedContainer {
    const sandbox = this.sandbox(sandboxId);
    if (!sandbox.ready) throw new IllegalStep('wrong-state', `sandbox ${sandboxId} is not ready`);
    const container: SimulatedContainer = {
      id: spec.id ?? this.#newId('container', sandboxId, spec.name),
      sandbox,
      name: spec.name,
      attempt: spec.attempt ?? 0,
      image: spec.image ?? 'plegwatch.local/busybox:1',
      labels: { ...podLabels(sandbox.pod), 'io.kubernetes.container.name': spec.name, ...spec.labels },
      annotations: spec.annotations ?? {},
      command: spec.command ?? [],
      createdNs: this.#now(),
      restored: spec.restored === true,
      state: 'created',
      startedNs: 0n,
      finishedNs: 0n,
      exitCode: 0,
      oomKilled: false,
      shown: null,
      unknownStart: false,
      unnoticed: null,
      exitedWhileDown: false,
    };
    this.containers.set(container.id, container);
    const never = container.restored && this.#options.profile.restores !== 'all' ? 'profile' : null;
    this.#announcer.step(subjectOf(container), 'created', { ...how, never });
    return container;
  }

  /**
   * Starts a container; a second running one of its pod UID and name is legal, and recorded as a fault. `exitsAtOnce` is the
   * exit code of a container so short that its STOPPED is announced before its STARTED.
   */
  startContainer(id: string, how: AnnounceOptions & { readonly exitsAtOnce?: number } = {}): void {
    const container = this.container(id);
    if (container.state !== 'created') {
      throw new IllegalStep('wrong-state', `container ${id} is ${container.state}, not created`);
    }
    const duplicate = this.#duplicateOf(container);
    if (duplicate !== undefined)
      this.#noteFault('duplicate_container', container, `${duplicate.id} runs too`);
    container.state = 'running';
    container.startedNs = this.#now();
    const never = container.restored && this.#options.profile.restores === 'end_only' ? 'profile' : null;
    const draft = this.#announcer.record(subjectOf(container), 'started', { ...how, never });
    if (how.exitsAtOnce !== undefined) {
      this.#noteFault('stopped_first', container, 'it ended before its start was announced');
      this.exitContainer(id, { ...how, exitCode: how.exitsAtOnce });
    }
    this.#announcer.announceLater(draft);
  }

  /** Ends a running container, or fails the start of a created one. Does nothing to an exited one. */
  exitContainer(id: string, how: ContainerExit = {}): void {
    const container = this.container(id);
    if (container.state === 'exited') return;
    const ran = container.state === 'running';
    container.state = 'exited';
    container.exitCode = how.exitCode ?? (ran ? 0 : 128);
    container.finishedNs = this.#now();
    container.exitedWhileDown = this.#options.isDown();
    container.oomKilled = how.oomKilled === true;
    if (!ran) {
      this.#failStart(container, how);
      return;
    }
    const { exitCode } = container;
    const step = { ...how, exitCode };
    const draft = this.#announcer.record(subjectOf(container), 'stopped', step);
    if (how.unnoticed === true) {
      container.unnoticed = draft;
      this.#noteFault('state_late', container, 'it has ended, and is shown as running');
      this.show(id, 'running');
    } else this.#announcer.announceLater(draft);
  }

  /** Ends a container as StopContainer does. */
  stopContainer(id: string, how: AnnounceOptions = {}): void {
    const container = this.container(id);
    if (container.state === 'created') this.#stopUnstarted(container, how);
    else if (container.unknownStart) this.#cleanUpStart(container, how);
    else if (container.state === 'running') {
      this.exitContainer(id, { ...how, exitCode: 137 });
      if (this.#options.profile.stopAnnouncesDeleted) this.spurious(id, 'DELETED');
    }
  }

  /** Some runtimes end what never ran, too: its `started_at` is then no time at all. */
  #stopUnstarted(container: SimulatedContainer, how: AnnounceOptions): void {
    if (!this.#options.profile.stopsWhatNeverRan) return;
    container.state = 'exited';
    container.startedNs = GO_ZERO_NS;
    container.finishedNs = this.#now();
    container.exitCode = 137;
    this.#announcer.step(subjectOf(container), 'stopped', { ...how, exitCode: 137 });
  }

  #cleanUpStart(container: SimulatedContainer, how: AnnounceOptions): void {
    container.unknownStart = false;
    this.show(container.id, null);
    this.#announcer.announce(subjectOf(container), 'stopped', how, true);
  }

  /** Announces something that did not happen. */
  spurious(id: string, type: EventType): void {
    this.#announcer.invent(subjectOf(this.sandboxes.get(id) ?? this.container(id)), type);
  }

  /** The runtime notices an exit: the lists show it, and it is announced. */
  notice(id: string): void {
    const container = this.container(id);
    const draft = container.unnoticed;
    container.unnoticed = null;
    if (this.#options.profile.exitsDatedWhenNoticed) container.finishedNs = this.#now();
    this.show(id, null);
    this.#announcer.announceLater(draft);
  }

  /** A process of the runtime starts: it notices what ended before. */
  noticeAfterRestart(): void {
    for (const container of [...this.containers.values()]) {
      if (container.unnoticed !== null) this.notice(container.id);
      if (!container.exitedWhileDown) continue;
      container.exitedWhileDown = false;
      if (!this.#options.profile.exitsDatedWhenNoticed) continue;
      container.finishedNs = this.#now();
      container.exitCode = 255;
    }
  }

  /** Shows another state than the true one in lists and statuses; null: the true one again. */
  show(id: string, shown: ShownItemState | null): void {
    const item = this.sandboxes.get(id) ?? this.container(id);
    if (item.shown === shown) return;
    item.shown = shown;
    this.#options.truth.record({ what: 'view', ...subjectOf(item), shown });
  }

  /**
   * Removes a container; a running one is ended first. `stoppedLast`: its STOPPED is announced after its DELETED. `withSandbox`: it is the
   * removal of its sandbox that has come to it, while the sandbox is still READY.
   */
  removeContainer(
    id: string,
    how: AnnounceOptions & { readonly stoppedLast?: boolean; readonly withSandbox?: boolean } = {},
  ): void {
    this.#remove(this.container(id), how, how.withSandbox === true ? this.#unannounced : null);
  }

  /** Ends the containers of a sandbox, then the sandbox. Does nothing to a stopped one. */
  stopPod(sandboxId: string, how: AnnounceOptions = {}): void {
    this.#stopPod(this.sandbox(sandboxId), how, null);
  }

  /** The first half of a removal: everything before the sandbox leaves the list. */
  beginRemoval(sandboxId: string, how: AnnounceOptions = {}): void {
    const sandbox = this.sandbox(sandboxId);
    this.#stopPod(sandbox, how, sandbox.sharedPid ? null : this.#unannounced);
    for (const container of this.containersOf(sandboxId)) this.#remove(container, how, this.#unannounced);
    if (this.#options.profile.sandboxDeletedWhileListed) {
      this.#announcer.announce(subjectOf(sandbox), 'deleted', how, true);
    }
  }

  /** The second half: the sandbox leaves the list. Takes the same options as the first. */
  finishRemoval(sandboxId: string, how: AnnounceOptions = {}): void {
    const sandbox = this.sandbox(sandboxId);
    this.show(sandboxId, null);
    this.sandboxes.delete(sandboxId);
    const draft = this.#announcer.record(subjectOf(sandbox), 'deleted', how);
    if (this.#options.profile.sandboxDeletedWhileListed) return;
    this.#announcer.announceLater(draft && { ...draft, listed: false });
  }

  /** Why nothing announces what the removal of a sandbox ends; null where it is announced. */
  get #unannounced(): 'profile' | null {
    return this.#options.profile.announcesSandboxRemoval ? null : 'profile';
  }

  sandbox(id: string): SimulatedSandbox {
    const found = this.sandboxes.get(id);
    if (found === undefined) throw new IllegalStep('not-found', `could not find sandbox "${id}": not found`);
    return found;
  }

  container(id: string): SimulatedContainer {
    const found = this.containers.get(id);
    if (found === undefined) {
      throw new IllegalStep('not-found', `could not find container "${id}": not found`);
    }
    return found;
  }

  containersOf(sandboxId: string): SimulatedContainer[] {
    return [...this.containers.values()].filter((container) => container.sandbox.id === sandboxId);
  }

  #createPod(spec: SimulatedPodSpec, how: AnnounceOptions): SimulatedSandbox {
    // Most runtimes announce a sandbox only when it is up.
    const sandbox = this.#newSandbox(spec, !this.#options.profile.sandboxesListedBeforeStart);
    this.sandboxes.set(sandbox.id, sandbox);
    this.#announcer.step(subjectOf(sandbox), 'created', how);
    return sandbox;
  }

  #stopPod(sandbox: SimulatedSandbox, how: AnnounceOptions, never: 'profile' | null): void {
    if (!sandbox.ready) return;
    for (const container of this.containersOf(sandbox.id)) {
      if (container.unnoticed !== null) this.notice(container.id);
      this.stopContainer(container.id, how);
    }
    sandbox.ready = false;
    this.#announcer.step(subjectOf(sandbox), 'stopped', { ...how, never });
  }

  #remove(
    container: SimulatedContainer,
    how: AnnounceOptions & { readonly stoppedLast?: boolean },
    never: 'profile' | null,
  ): void {
    const { id } = container;
    if (container.unnoticed !== null) this.notice(id);
    const last = how.stoppedLast === true ? this.#endSilently(container, how) : null;
    if (container.state === 'running') this.exitContainer(id, { ...how, exitCode: 137 });
    else this.stopContainer(id, how);
    this.show(id, null);
    this.containers.delete(id);
    this.#announcer.step(subjectOf(container), 'deleted', { ...how, never });
    this.#announcer.announceLater(last);
  }

  /** Ends a running container, and leaves its event for later. */
  #endSilently(container: SimulatedContainer, how: AnnounceOptions): EventDraft | null {
    container.state = 'exited';
    container.finishedNs = this.#now();
    container.exitCode = 137;
    this.#noteFault('stopped_last', container, 'its end is announced after its removal');
    return this.#announcer.record(subjectOf(container), 'stopped', { ...how, exitCode: 137 });
  }

  #failStart(container: SimulatedContainer, how: ContainerExit): void {
    const subject = subjectOf(container);
    const { createdNs } = container;
    const { failedStart } = this.#options.profile;
    const crio = failedStart === 'cri-o';
    const times = failedStart === 'containerd' ? (how.failedTimes ?? 'zero') : FAILED_WITH[failedStart];
    if (times !== 'zero') container.startedNs = createdNs;
    if (times === 'same') container.finishedNs = createdNs;
    if (failedStart === 'isulad') container.exitCode = 127;
    const { exitCode } = container;
    this.#noteFault('start_failed', container, FAILED_TIMES[times]);
    this.#announcer.step(subject, 'stopped', { ...how, exitCode, never: crio ? null : 'profile' });
    if (how.unknownStart === true && this.#options.profile.failedStartsMayBeUnknown) {
      container.unknownStart = true;
      this.show(container.id, 'unknown');
    }
    if (!crio) return;
    this.containers.delete(container.id);
    this.#announcer.step(subject, 'deleted', { ...how, never: 'profile' });
  }

  #newSandbox(spec: SimulatedPodSpec, ready: boolean): SimulatedSandbox {
    const id = spec.id ?? this.#newId('sandbox', spec.name);
    const uid = spec.uid ?? uidFor(this.#options.seed, id);
    const pod = { uid, namespace: spec.namespace ?? 'default', name: spec.name };
    return {
      id,
      pod,
      attempt: spec.attempt ?? 0,
      labels: { ...podLabels(pod), ...spec.labels },
      annotations: spec.annotations ?? {},
      createdNs: this.#now(),
      sharedPid: spec.sharedPid === true,
      ready,
      shown: null,
    };
  }

  /** Another container that runs under the same pod UID and name. */
  #duplicateOf({ id, name, sandbox }: SimulatedContainer): SimulatedContainer | undefined {
    return [...this.containers.values()].find(
      (other) =>
        other.id !== id &&
        other.state === 'running' &&
        other.name === name &&
        other.sandbox.pod.uid === sandbox.pod.uid,
    );
  }

  #noteFault(fault: string, { id }: SimulatedSandbox | SimulatedContainer, detail: string): void {
    noteFault(this.#options.truth, fault, detail, id);
  }

  #now(): bigint {
    return nanosOf(this.#options.clock().wall);
  }

  #newId(...keys: readonly string[]): string {
    this.#made += 1;
    return idFor(this.#options.seed, this.#made, ...keys);
  }
}
