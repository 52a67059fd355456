/*
 * A simulated container runtime: a real CRI server on a unix socket, with pods that live by themselves or as a test
 * tells them to, faults on the way of its events, and the ground truth of all of it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Server, status } from '@grpc/grpc-js';
import { ContainerEventResponse } from '../cri/runtime.ts';
import { EventChannel } from './channel.ts';
import { type ChurnOptions, runChurn } from './churn.ts';
import { type Clock, machineClock, nanosOf } from './clock.ts';
import { dropWhen, type Fault, type SimulatedEvent } from './faults.ts';
import { type Listener, listenOn } from './listener.ts';
import { eventMessage } from './messages.ts';
import { type Announcement, type Container, type Draft, Pods, type Sandbox } from './pods.ts';
import { PROFILES, type Profile, type ProfileName } from './profiles.ts';
import { randomFor } from './random.ts';
import { serve } from './service.ts';
import { type EventCall, Subscriber } from './subscriber.ts';
import { createTruth, type Truth, writeTruth } from './truth.ts';
import { MAX_MESSAGE_BYTES } from './wire.ts';

export interface SimulatedRuntimeOptions {
  /** An absolute path. */
  readonly socket: string;
  /** Default 1. */
  readonly seed?: number;
  /** By name, or one of your own. Default containerd-2.1. */
  readonly profile?: ProfileName | Profile;
  /** Left out: no pod lives unless it is told to. */
  readonly churn?: Omit<ChurnOptions, 'seed'>;
  readonly faults?: readonly Fault[];
  /** Ends each stream this long after it was opened. */
  readonly breakStreamAfterMs?: number | undefined;
  /** A file for the ground truth. */
  readonly truthFile?: string | undefined;
  /** Keeps the ground truth in memory too. Default: when there is no churn. */
  readonly keepTruth?: boolean;
  /** Events that wait for a subscriber whose socket is full, before it is cut off. Default 10 000. */
  readonly subscriberQueue?: number;
}

const DEFAULT_SUBSCRIBER_QUEUE = 10_000;

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
  readonly profile: Profile;
  readonly truth: Truth;
  /** Every step of a life: runPod, createContainer, startContainer, exitContainer, removeContainer, stopPod. */
  readonly pods: Pods;
  readonly #options: SimulatedRuntimeOptions;
  readonly #clock: Clock = machineClock();
  readonly #channel: EventChannel;
  readonly #subscribers = new Map<number, Subscriber>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #stopping = new AbortController();
  readonly #closeTruth: () => void;
  #faults: readonly Fault[];
  #churn: Promise<void> = Promise.resolve();
  #listener: Listener | null = null;
  #opened = 0;
  #begun = false;

  /** Use {@link startSimulatedRuntime}. */
  constructor(options: SimulatedRuntimeOptions) {
    const { profile = 'containerd-2.1', seed = 1, keepTruth = options.churn === undefined } = options;
    this.#options = options;
    this.#faults = options.faults ?? [];
    this.socket = options.socket;
    this.profile = typeof profile === 'string' ? PROFILES[profile] : profile;
    this.truth = createTruth(this.#clock, { keep: keepTruth });
    this.#closeTruth = options.truthFile === undefined ? () => {} : writeTruth(this.truth, options.truthFile);
    const shared = { profile: this.profile, clock: this.#clock, truth: this.truth };
    this.#channel = new EventChannel({
      ...shared,
      faults: () => this.#faults,
      later: (ms, run) => this.#later(ms, run),
    });
    this.pods = new Pods({
      ...shared,
      seed,
      announce: (draft) => this.#build(draft),
      isDown: () => this.#listener === null,
    });
  }

  /** Who is subscribed at present. */
  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Replaces the faults from the next event on. */
  setFaults(faults: readonly Fault[]): void {
    this.#faults = faults;
  }

  /** From the next event on a predicate says what is delivered. */
  filterEvents(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): void {
    this.setFaults([dropWhen(predicate)]);
  }

  /** A sandbox with its containers, created and started. */
  runPod(
    spec: Parameters<Pods['runPod']>[0] & { readonly containers?: readonly string[] },
    how?: Announcement,
  ): { readonly sandbox: Sandbox; readonly containers: readonly Container[] } {
    const sandbox = this.pods.runPod(spec, how);
    const containers = (spec.containers ?? []).map((name) => this.runContainer(sandbox.id, name, 0, how));
    return { sandbox, containers };
  }

  /** A container, created and started. */
  runContainer(sandboxId: string, name: string, attempt = 0, how?: Announcement): Container {
    const container = this.pods.createContainer(sandboxId, { name, attempt }, how);
    this.pods.startContainer(container.id, how);
    return container;
  }

  /** Stops and removes a pod; `lagMs` is the time that its sandbox stays listed after its DELETED was announced. */
  async removePod(sandboxId: string, how: Announcement & { readonly lagMs?: number } = {}): Promise<void> {
    this.pods.beginRemoval(sandboxId, how);
    const { lagMs = 0 } = how;
    if (lagMs > 0) await pause(lagMs, undefined, { signal: this.#stopping.signal });
    this.pods.finishRemoval(sandboxId, how);
  }

  /** Ends every event stream with a status; whoever wants may subscribe again at once. */
  breakStreams(code: status = status.UNAVAILABLE, details = 'the stream was broken on purpose'): void {
    this.#noteFault('break_stream', `${this.#subscribers.size} streams end with ${status[code]}`);
    for (const subscriber of [...this.#subscribers.values()]) subscriber.end(code, details, 'broken');
  }

  /** The runtime's process goes away: the socket closes, containers live on, nothing that happens is announced. */
  async goDown(): Promise<void> {
    const listener = this.#listener;
    if (listener === null) return;
    this.#noteFault('down', 'the socket is closed');
    this.#listener = null;
    this.#channel.reset();
    await listener.close();
  }

  /** The runtime's process is back, with the pods as they are by now. */
  async comeUp(): Promise<void> {
    if (this.#listener !== null) return;
    const server = new Server({
      'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
      'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
    });
    serve(server, {
      profile: this.profile,
      pods: this.pods,
      order: randomFor(this.#options.seed ?? 1, 'order'),
      nowNs: () => nanosOf(this.#clock().wall),
      onEvents: (call) => this.#subscribe(call),
      later: (ms, run) => this.#later(ms, run),
    });
    this.#listener = await listenOn(this.socket, server);
    this.#begin();
  }

  /** Resolves when the churn has ended, rejects when it failed. Without churn it resolves at once. */
  finished(): Promise<void> {
    return this.#churn;
  }

  /** Stops the lives, closes the socket and the truth file. Safe to call twice. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#churn;
    await this.#listener?.close();
    this.#listener = null;
    this.#closeTruth();
  }

  #begin(): void {
    if (this.#begun) {
      this.#noteFault('up', 'the socket is open again');
      return;
    }
    this.#begun = true;
    const { churn, seed = 1 } = this.#options;
    if (churn !== undefined) {
      this.#churn = runChurn(this.pods, { ...churn, seed }, this.#stopping.signal);
    }
  }

  #build(draft: Draft): void {
    const createdNs = nanosOf(this.#clock().wall);
    const message = ContainerEventResponse.encode(
      eventMessage(this.pods, draft, createdNs, this.profile),
    ).finish();
    const { listed: _, ...subject } = draft;
    this.#channel.publish({ ...subject, createdNs, message });
  }

  #subscribe(call: EventCall): void {
    this.#opened += 1;
    const number = this.#opened;
    const subscriber = new Subscriber({
      number,
      call,
      queueLimit: this.#options.subscriberQueue ?? DEFAULT_SUBSCRIBER_QUEUE,
      onClosed: (cause, undelivered) => this.#unsubscribe(number, cause, undelivered),
    });
    this.#subscribers.set(number, subscriber);
    this.truth.record({
      what: 'subscriber',
      subscriber: number,
      change: 'opened',
      cause: '',
      undelivered: 0,
    });
    this.#channel.subscribe(subscriber);
    const { breakStreamAfterMs } = this.#options;
    if (breakStreamAfterMs !== undefined) {
      this.#later(breakStreamAfterMs, () => {
        if (!this.#subscribers.has(number)) return;
        this.#noteFault('break_stream', `subscriber ${number} after ${breakStreamAfterMs} ms`);
        subscriber.end(status.UNAVAILABLE, 'the stream was broken on purpose', 'broken');
      });
    }
  }

  #unsubscribe(number: number, cause: string, undelivered: number): void {
    this.#subscribers.delete(number);
    this.#channel.unsubscribe(number);
    if (this.#stopping.signal.aborted) return;
    if (cause === 'slow') this.#noteFault('slow_subscriber', `subscriber ${number} was cut off`);
    this.truth.record({ what: 'subscriber', subscriber: number, change: 'closed', cause, undelivered });
  }

  #noteFault(fault: string, detail: string): void {
    this.truth.record({ what: 'fault', fault, event: null, id: null, type: null, detail });
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
