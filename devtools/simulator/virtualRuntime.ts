/*
 * A simulated runtime in virtual time: no sockets, no timers, no waiting. For properties of whatever
 * judges a runtime: it does all that runtime.ts does, to the same ground truth.
 *
 *   const runtime = new VirtualRuntime({ seed: 7, profile: 'crio-1.33', faults: [drop({ seed: 7, probability: 0.01 })] });
 *   runtime.subscribe({ receive: (message, at) => …, ended: (code) => … });
 *   runtime.play({ pods: 20, meanMs: 5000, restarts: 1 }, 60_000);
 *   runtime.every(1000, () => runtime.list('listContainers', (answer) => …));
 *   runtime.advance(60_000);
 */
import { status } from '@grpc/grpc-js';
import { ContainerStatus, PodSandboxStatus } from '../../src/cri/runtime.ts';
import type { Mono } from '../../src/protocol/units.ts';
import type { ChurnOptions } from './churn.ts';
import { type Clock, manualClock } from './clock.ts';
import { MAX_MESSAGE_BYTES } from './criClient.ts';
import { containerStatus, sandboxMessage } from './criMessages.ts';
import type { ListOutcome } from './lister.ts';
import type { ListName } from './listFaults.ts';
import { needsRuntime, type PodAction, performIfPossible, type ScriptStep } from './podActions.ts';
import { podScriptOf } from './podScript.ts';
import type { Profile, ProfileName } from './profiles.ts';
import { randomFor } from './random.ts';
import { type EventStream, RuntimeCore, type RuntimeOptions } from './runtimeCore.ts';
import { Timeline } from './timeline.ts';

/** One who listens to the events. */
export interface VirtualSubscriber {
  readonly receive: (message: Uint8Array, at: Mono) => void;
  readonly ended?: (code: status) => void;
  /** Left out: it reads at once. If it ever says no, it must call {@link VirtualRuntime.resume} when it can again. */
  readonly hasRoom?: () => boolean;
}

export interface VirtualAnswer extends ListOutcome {
  readonly started: Mono;
  readonly ended: Mono;
}

export interface VirtualRestart {
  readonly downMs: number;
  readonly how?: 'killed' | 'stopped';
  /** How likely a running container ends half-way. Default 0. */
  readonly exits?: number;
  readonly as?: ProfileName | Profile;
}

const RESTART_AFTER_CRASH_MS = 500;
const RETRY_MS = 100;

export class VirtualRuntime {
  /** Everything else that can be done to a runtime. */
  readonly core: RuntimeCore;
  /** The clock of the machine: moves only with {@link advance}. */
  readonly clock: Clock;
  readonly #timeline: Timeline;

  constructor(options: RuntimeOptions = {}) {
    const { clock, advance } = manualClock();
    this.clock = clock;
    this.#timeline = new Timeline(advance);
    this.core = new RuntimeCore({
      ...options,
      clock,
      later: (ms, run) => this.later(ms, run),
      keepTruth: true,
      onCrash: () => this.restart({ downMs: RESTART_AFTER_CRASH_MS, how: 'killed' }),
    });
    this.core.comeUp();
  }

  /** Milliseconds since the start. */
  get now(): number {
    return this.#timeline.now;
  }

  later(ms: number, run: () => void): void {
    this.#timeline.later(ms, run);
  }

  /** Runs something again and again, the first time one period from now. */
  every(ms: number, run: () => void): void {
    this.later(ms, () => {
      run();
      this.every(ms, run);
    });
  }

  /** Lets time pass. */
  advance(ms: number): void {
    this.#timeline.advance(ms);
  }

  /** Plays lives in slots, as churn does; none begins after `forMs`, and those that began are lived to their end. */
  play(options: Omit<ChurnOptions, 'seed'>, forMs: number): void {
    const until = this.now + forMs;
    for (let slot = 0; slot < options.pods; slot += 1) this.#playSlot(options, slot, 0, until);
  }

  /** Subscribes; gives what leaves again. A runtime that has no stream, or is away, ends it at once. */
  subscribe(subscriber: VirtualSubscriber): () => void {
    const refusal = this.#refusal();
    if (refusal !== null) {
      this.later(0, () => subscriber.ended?.(refusal));
      return () => {};
    }
    let leave = (): void => {};
    this.core.open((number) => {
      const stream = this.#stream(number, subscriber);
      leave = () => this.core.closed(number, 'cancelled', 0);
      return stream;
    });
    return () => leave();
  }

  /** A subscriber without room has room again. */
  resume(): void {
    this.core.channel.resume();
  }

  /** Asks for a list. The answer comes when time has passed, or never. */
  list(call: ListName, done: (answer: VirtualAnswer) => void): void {
    const started = this.clock().mono;
    const answer = (outcome: ListOutcome) => done({ ...outcome, started, ended: this.clock().mono });
    if (this.core.isDown || this.core.isStarting) {
      answer(failed(status.UNAVAILABLE));
      return;
    }
    this.core.lister.list({ call }, (outcome) => {
      const large = outcome.messages.some(({ length }) => length > MAX_MESSAGE_BYTES);
      if (this.core.isDown) answer(failed(status.UNAVAILABLE));
      else answer(large ? failed(status.RESOURCE_EXHAUSTED) : outcome);
    });
  }

  /** What ContainerStatus or PodSandboxStatus carries of an id; null where the runtime does not know it. */
  statusOf(id: string): Uint8Array | null {
    const { pods, isDown } = this.core;
    const container = pods.containers.get(id);
    const sandbox = pods.sandboxes.get(id);
    if (isDown || (container ?? sandbox)?.shown === 'absent') return null;
    if (container !== undefined) return ContainerStatus.encode(containerStatus(container)).finish();
    return sandbox === undefined ? null : PodSandboxStatus.encode(sandboxMessage(sandbox)).finish();
  }

  /** Takes the runtime down now and brings it back later. */
  restart({ downMs, how = 'killed', exits = 0, as }: VirtualRestart): void {
    if (this.core.isDown) return;
    this.core.goDown(how);
    this.later(downMs / 2, () => this.core.exitSome(exits));
    this.later(downMs, () => this.core.comeUp(as));
  }

  #playSlot(options: Omit<ChurnOptions, 'seed'>, slot: number, number: number, until: number): void {
    const { seed } = this.core;
    const pause = randomFor(seed, 'pause', slot, number).between(5, 1000);
    this.later(pause, () => {
      if (this.now > until) return;
      const steps = podScriptOf({ ...options, seed, slot, number });
      this.#playSteps(steps, () => this.#playSlot(options, slot, number + 1, until));
    });
  }

  /** One step after the other; what needs the runtime waits until it is there. */
  #playSteps(steps: readonly ScriptStep[], done: () => void, index = 0, start = this.now): void {
    const step = steps[index];
    if (step === undefined) {
      done();
      return;
    }
    const wait = Math.max(0, start + step.at - this.now);
    this.later(wait, () =>
      this.#whenPossible(step.act, () => {
        performIfPossible(this.core.pods, step.act);
        this.#playSteps(steps, done, index + 1, start);
      }),
    );
  }

  #whenPossible(act: PodAction, run: () => void): void {
    if (!needsRuntime(act)) run();
    else if (this.core.isDown) this.later(RETRY_MS, () => this.#whenPossible(act, run));
    else this.core.channel.whenFlowing(run);
  }

  #stream(number: number, { receive, ended, hasRoom = () => true }: VirtualSubscriber): EventStream {
    const { slowEffect } = this.core;
    const end: EventStream['end'] = (code, _details, cause) => {
      this.core.closed(number, cause, 0);
      ended?.(code);
    };
    return {
      number,
      send: (message) => {
        if (slowEffect !== 'cut-off' || hasRoom()) receive(message, this.clock().mono);
        else end(status.RESOURCE_EXHAUSTED, 'the subscriber reads too slowly', 'slow');
      },
      hasRoom: () => slowEffect === 'cut-off' || slowEffect === 'own-queue' || hasRoom(),
      end,
    };
  }

  #refusal(): status | null {
    if (this.core.isDown || this.core.isStarting) return status.UNAVAILABLE;
    const { stream } = this.core.profile;
    if (stream === 'unimplemented') return status.UNIMPLEMENTED;
    return stream === 'disabled' ? status.OK : null;
  }
}

const failed = (code: status): ListOutcome => ({
  messages: [],
  failure: { code, details: status[code] },
});
