/*
 * A simulated container runtime: a CRI server on a unix socket, whose pods are driven by churn, by a test or by CRI calls,
 * with faults in its events and lists, and with a ground truth.
 */
import { Server, status } from '@grpc/grpc-js';
import { type ChurnOptions, runChurn } from './churn.ts';
import { machineClock, nanosOf } from './clock.ts';
import { MAX_MESSAGE_BYTES } from './criClient.ts';
import { serve } from './criService.ts';
import type { EventFault, SimulatedEvent } from './eventFaults.ts';
import { type GroundTruthLog, type ShownItemState, writeGroundTruth } from './groundTruth.ts';
import { KubeletServer } from './kubeletServer.ts';
import { listenOn, type SocketListener } from './listener.ts';
import type { ListFault } from './listFaults.ts';
import { needsRuntime, type PodAction } from './podActions.ts';
import type { AnnounceOptions, ContainerExit, SimulatedContainer, SimulatedSandbox } from './podModel.ts';
import type { SimulatedPods } from './pods.ts';
import type { Profile, ProfileName } from './profiles.ts';
import { type RestartPlan, runRestarts } from './restarts.ts';
import { RuntimeCore, type RuntimeOptions } from './runtimeCore.ts';
import { SimulatedKubelet, type SimulatedKubeletOptions } from './simulatedKubelet.ts';
import { type EventStreamCall, Subscriber } from './subscriber.ts';

export interface SimulatedRuntimeOptions extends RuntimeOptions {
  /** An absolute path. */
  readonly socket: string;
  /** Default: no pods of its own. */
  readonly churn?: Omit<ChurnOptions, 'seed'>;
  /** Default: no restarts, except after a crash of the profile. */
  readonly restarts?: RestartPlan | undefined;
  /** Steps of the runtime's wall clock, this long after the start. */
  readonly wallSteps?: readonly { readonly afterMs: number; readonly byMs: number }[];
  /** A simulated kubelet with a PodsAPI on the socket `podsApi`. Default: none. */
  readonly kubelet?: (SimulatedKubeletOptions & { readonly podsApi: string }) | undefined;
  /** The file of the ground truth. */
  readonly truthFile?: string | undefined;
  /** Whether to keep the ground truth in memory. Default: when there is no churn. */
  readonly keepTruth?: boolean;
  /** How many events wait for a subscriber with a full socket before it is cut off. Default 10,000. */
  readonly subscriberQueue?: number;
}

const DEFAULT_SUBSCRIBER_QUEUE = 10_000;
const RESTART_AFTER_CRASH_MS = 500;
/** How long an orderly end of a stream may take before the socket closes. */
const GRACE_MS = 500;

/** Starts a runtime; resolves when it answers calls. Throws SETTING_INVALID when the socket or the ground truth file cannot be used. */
export async function startSimulatedRuntime(options: SimulatedRuntimeOptions): Promise<SimulatedRuntime> {
  const runtime = new SimulatedRuntime(options);
  try {
    await runtime.comeUp();
    await runtime.kubelet?.comeUp();
  } catch (error) {
    await runtime.stop();
    throw error;
  }
  return runtime;
}

export class SimulatedRuntime {
  readonly socket: string;
  readonly core: RuntimeCore;
  readonly kubelet: KubeletServer | null;
  readonly #options: SimulatedRuntimeOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #stopping = new AbortController();
  readonly #closeTruth: () => void;
  /** Serializes coming up and going down. */
  #turn: Promise<void> = Promise.resolve();
  #running: Promise<unknown> = Promise.resolve();
  #listener: SocketListener | null = null;
  #begun = false;
  #waitingForUp: (() => void)[] = [];

  /** Use {@link startSimulatedRuntime}. */
  constructor(options: SimulatedRuntimeOptions) {
    const { keepTruth = options.churn === undefined } = options;
    this.#options = options;
    this.socket = options.socket;
    this.core = new RuntimeCore({
      ...options,
      clock: machineClock(),
      later: (ms, run) => this.#later(ms, run),
      keepTruth,
      onCrash: () => this.#restartAfterCrash(),
    });
    const { kubelet } = options;
    this.kubelet =
      kubelet === undefined
        ? null
        : new KubeletServer(
            kubelet.podsApi,
            new SimulatedKubelet(this.core, (ms, run) => this.#later(ms, run), kubelet),
          );
    this.#closeTruth =
      options.truthFile === undefined ? () => {} : writeGroundTruth(this.truth, options.truthFile);
  }

  get profile(): Profile {
    return this.core.profile;
  }

  get truth(): GroundTruthLog {
    return this.core.truth;
  }

  get pods(): SimulatedPods {
    return this.core.pods;
  }

  /** The number of open event streams. */
  get subscribers(): number {
    return this.core.subscribers;
  }

  /** Replaces the faults from the next event on. */
  setFaults(faults: readonly EventFault[]): void {
    this.core.setFaults(faults);
  }

  /** Replaces the faults of the lists from the next call on. */
  setListFaults(faults: readonly ListFault[]): void {
    this.core.setListFaults(faults);
  }

  /** Replaces the faults by a predicate that decides which events are delivered. */
  filterEvents(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): void {
    this.core.filterEvents(predicate);
  }

  /** See {@link RuntimeCore.exitUnnoticed}. */
  exitUnnoticed(id: string, forMs: number, exit?: ContainerExit): void {
    this.core.exitUnnoticed(id, forMs, exit);
  }

  /** See {@link RuntimeCore.showFor}. */
  showFor(id: string, shown: ShownItemState, forMs: number): void {
    this.core.showFor(id, shown, forMs);
  }

  /** See {@link RuntimeCore.stepWallClock}. */
  stepWallClock(ms: number): void {
    this.core.stepWallClock(ms);
  }

  /** Creates a sandbox, and creates and starts its containers. */
  runPod(
    spec: Parameters<SimulatedPods['runPod']>[0] & { readonly containers?: readonly string[] },
    how?: AnnounceOptions,
  ): { readonly sandbox: SimulatedSandbox; readonly containers: readonly SimulatedContainer[] } {
    const sandbox = this.pods.runPod(spec, how);
    const containers = (spec.containers ?? []).map((name) => this.runContainer(sandbox.id, name, 0, how));
    return { sandbox, containers };
  }

  /** Creates and starts a container. */
  runContainer(sandboxId: string, name: string, attempt = 0, how?: AnnounceOptions): SimulatedContainer {
    const container = this.pods.createContainer(sandboxId, { name, attempt }, how);
    this.pods.startContainer(container.id, how);
    return container;
  }

  /** Stops and removes a pod. */
  removePod(sandboxId: string, how: AnnounceOptions = {}): void {
    this.pods.beginRemoval(sandboxId, how);
    this.pods.finishRemoval(sandboxId, how);
  }

  /** Ends every event stream with a status, even OK; clients may subscribe again at once. */
  breakStreams(code: status = status.UNAVAILABLE, details?: string): void {
    this.core.breakStreams(code, details);
  }

  /** The runtime's process goes down: the socket closes, containers keep running, nothing is announced. */
  goDown(how: 'killed' | 'stopped' = 'killed'): Promise<void> {
    return this.#takeTurn(async () => {
      const listener = this.#listener;
      if (listener === null) return;
      this.#listener = null;
      this.core.goDown(how);
      await listener.close(how === 'stopped' ? GRACE_MS : 0);
    });
  }

  /** The runtime's process starts again, with the current pods, optionally as another version. */
  comeUp(as?: ProfileName | Profile): Promise<void> {
    return this.#takeTurn(async () => {
      if (this.#listener !== null || this.#stopping.signal.aborted) return;
      this.core.comeUp(as);
      const server = new Server({
        'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
        'grpc.max_send_message_length': this.profile.maxSendBytes,
      });
      serve(server, {
        core: this.core,
        nowNs: () => nanosOf(this.core.clock().wall),
        onEvents: (call) => this.#subscribe(call),
        later: (ms, run) => this.#later(ms, run),
      });
      this.#listener = await listenOn(this.socket, server);
      for (const proceed of this.#waitingForUp.splice(0)) proceed();
      this.#begin();
    });
  }

  /** Rejects when churn or restarts have failed. Without either it resolves at once. */
  async finished(): Promise<void> {
    await this.#running;
  }

  /** Stops churn and restarts, closes the socket and the ground truth file. May be called twice. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#running;
    await this.#turn;
    await this.kubelet?.stop();
    await this.#listener?.close();
    this.#listener = null;
    this.#closeTruth();
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { churn, restarts, wallSteps = [] } = this.#options;
    const { signal } = this.#stopping;
    const { seed } = this.core;
    const playing =
      churn && runChurn(this.pods, { ...churn, seed }, signal, (act) => this.#whenPossible(act));
    this.#running = Promise.all([playing, restarts && runRestarts(this, restarts, signal)]);
    for (const { afterMs, byMs } of wallSteps) this.#later(afterMs, () => this.core.stepWallClock(byMs));
  }

  /** Waits while the runtime is down or frozen, if the action needs it. */
  async #whenPossible(act: PodAction): Promise<void> {
    const { isDown, channel } = this.core;
    if (!needsRuntime(act) || !(isDown || channel.frozen)) return;
    const { signal } = this.#stopping;
    const { promise, resolve } = Promise.withResolvers<void>();
    const giveUp = () => resolve();
    signal.addEventListener('abort', giveUp, { once: true });
    if (isDown) this.#waitingForUp.push(resolve);
    else channel.whenFlowing(resolve);
    await promise;
    signal.removeEventListener('abort', giveUp);
  }

  #restartAfterCrash(): void {
    void this.goDown('killed');
    this.#later(RESTART_AFTER_CRASH_MS, () => void this.comeUp());
  }

  #takeTurn(run: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  #subscribe(call: EventStreamCall): void {
    this.core.open((number) => {
      const { slowEffect } = this.core;
      const { subscriberQueue = DEFAULT_SUBSCRIBER_QUEUE } = this.#options;
      const cutsOff = slowEffect === 'cut-off';
      const unlimited = cutsOff || slowEffect === 'own-queue';
      return new Subscriber({
        number,
        call,
        queueLimit: cutsOff ? subscriberQueue : Number.POSITIVE_INFINITY,
        room: unlimited ? Number.POSITIVE_INFINITY : roomOf(this.profile),
        onRoom: () => this.core.channel.resume(),
        onClosed: (cause, undelivered) => {
          if (!this.#stopping.signal.aborted) this.core.closed(number, cause, undelivered);
        },
      });
    });
  }

  #later(ms: number, run: () => void): void {
    if (this.#stopping.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }
}

/** How many events may wait for a subscriber before it blocks the others. */
const roomOf = ({ slow }: Profile): number => (slow.effect === 'freeze' ? slow.events : 0);
