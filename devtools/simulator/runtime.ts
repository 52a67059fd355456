/*
 * A simulated container runtime: a real CRI server on a unix socket, with pods that live by themselves or as a test
 * tells them to, faults on the way of its events, and the ground truth of all of it.
 */
import { Server, status } from '@grpc/grpc-js';
import { type ChurnOptions, runChurn } from './churn.ts';
import { machineClock, nanosOf } from './clock.ts';
import { MAX_MESSAGE_BYTES } from './criClient.ts';
import { serve } from './criService.ts';
import type { EventFault, SimulatedEvent } from './eventFaults.ts';
import { type GroundTruth, type ShownState, writeGroundTruth } from './groundTruth.ts';
import { listenOn, type SocketListener } from './listener.ts';
import type { ListFault } from './listFaults.ts';
import { needsRuntime, type PodAction } from './podActions.ts';
import type { AnnounceOptions, ContainerExit, SimulatedContainer, SimulatedSandbox } from './podModel.ts';
import type { SimulatedPods } from './pods.ts';
import type { Profile, ProfileName } from './profiles.ts';
import { type RestartPlan, runRestarts } from './restarts.ts';
import { RuntimeCore, type RuntimeOptions } from './runtimeCore.ts';
import { type EventStreamCall, Subscriber } from './subscriber.ts';

export interface SimulatedRuntimeOptions extends RuntimeOptions {
  /** An absolute path. */
  readonly socket: string;
  /** Left out: no pod lives unless it is told to. */
  readonly churn?: Omit<ChurnOptions, 'seed'>;
  /** Left out: the process never goes away by itself, unless its profile does. */
  readonly restarts?: RestartPlan | undefined;
  /** Jumps of the runtime's wall clock, so long after the start. */
  readonly wallSteps?: readonly { readonly afterMs: number; readonly byMs: number }[];
  /** A file for the ground truth. */
  readonly truthFile?: string | undefined;
  /** Keeps the ground truth in memory too. Default: when there is no churn. */
  readonly keepTruth?: boolean;
  /** Events that wait for a subscriber whose socket is full, before it is cut off. Default 10 000. */
  readonly subscriberQueue?: number;
}

const DEFAULT_SUBSCRIBER_QUEUE = 10_000;
const RESTART_AFTER_CRASH_MS = 500;
/** How long an orderly end may take to reach its subscriber before the socket goes. */
const GRACE_MS = 500;

/** Starts a runtime and resolves when it answers. Throws SETTING_INVALID when the socket or the truth file cannot be used. */
export async function startSimulatedRuntime(options: SimulatedRuntimeOptions): Promise<SimulatedRuntime> {
  const runtime = new SimulatedRuntime(options);
  try {
    await runtime.comeUp();
  } catch (error) {
    await runtime.stop();
    throw error;
  }
  return runtime;
}

export class SimulatedRuntime {
  readonly socket: string;
  /** Everything that can be done to a runtime without its socket. */
  readonly core: RuntimeCore;
  readonly #options: SimulatedRuntimeOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #stopping = new AbortController();
  readonly #closeTruth: () => void;
  /** Coming up and going down take turns. */
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
    this.#closeTruth =
      options.truthFile === undefined ? () => {} : writeGroundTruth(this.truth, options.truthFile);
  }

  get profile(): Profile {
    return this.core.profile;
  }

  get truth(): GroundTruth {
    return this.core.truth;
  }

  /** Every step of a life: runPod, createContainer, startContainer, exitContainer, removeContainer, stopPod. */
  get pods(): SimulatedPods {
    return this.core.pods;
  }

  /** Who is subscribed at present. */
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

  /** From the next event on a predicate says what is delivered. */
  filterEvents(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): void {
    this.core.filterEvents(predicate);
  }

  /** See {@link RuntimeCore.exitUnnoticed}. */
  exitUnnoticed(id: string, forMs: number, exit?: ContainerExit): void {
    this.core.exitUnnoticed(id, forMs, exit);
  }

  /** See {@link RuntimeCore.showFor}. */
  showFor(id: string, shown: ShownState, forMs: number): void {
    this.core.showFor(id, shown, forMs);
  }

  /** See {@link RuntimeCore.stepWallClock}. */
  stepWallClock(ms: number): void {
    this.core.stepWallClock(ms);
  }

  /** A sandbox with its containers, created and started. */
  runPod(
    spec: Parameters<SimulatedPods['runPod']>[0] & { readonly containers?: readonly string[] },
    how?: AnnounceOptions,
  ): { readonly sandbox: SimulatedSandbox; readonly containers: readonly SimulatedContainer[] } {
    const sandbox = this.pods.runPod(spec, how);
    const containers = (spec.containers ?? []).map((name) => this.runContainer(sandbox.id, name, 0, how));
    return { sandbox, containers };
  }

  /** A container, created and started. */
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

  /** Ends every event stream with a status, OK included; whoever wants may subscribe again at once. */
  breakStreams(code: status = status.UNAVAILABLE, details?: string): void {
    this.core.breakStreams(code, details);
  }

  /** The runtime's process goes away: the socket closes, containers live on, nothing that happens is announced. */
  goDown(how: 'killed' | 'stopped' = 'killed'): Promise<void> {
    return this.#takeTurn(async () => {
      const listener = this.#listener;
      if (listener === null) return;
      this.#listener = null;
      this.core.goDown(how);
      await listener.close(how === 'stopped' ? GRACE_MS : 0);
    });
  }

  /** The runtime's process is back, with the pods as they are by now; perhaps as another version. */
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

  /** Rejects when the lives or the restarts have failed. Without either it resolves at once. */
  async finished(): Promise<void> {
    await this.#running;
  }

  /** Stops the lives, closes the socket and the truth file. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#running;
    await this.#turn;
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
    const lives = churn && runChurn(this.pods, { ...churn, seed }, signal, (act) => this.#whenPossible(act));
    this.#running = Promise.all([lives, restarts && runRestarts(this, restarts, signal)]);
    for (const { afterMs, byMs } of wallSteps) this.#later(afterMs, () => this.core.stepWallClock(byMs));
  }

  /** What needs the runtime waits while it is away or stands still. */
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

/** Events that a subscriber may have waiting before it holds up the others. */
const roomOf = ({ slow }: Profile): number => (slow.effect === 'freeze' ? slow.events : 0);
