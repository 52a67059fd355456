/*
 * A simulated runtime in virtual time, for the simulator's own tests: the core of runtime.ts without sockets and timers.
 */
import { status } from '@grpc/grpc-js';
import type { ChurnOptions } from './churn.ts';
import { manualClock } from './clock.ts';
import { MAX_MESSAGE_BYTES } from './criClient.ts';
import type { ListOutcome } from './lister.ts';
import type { CriListName } from './listFaults.ts';
import { needsRuntime, type PodAction, performIfPossible, type ScriptStep } from './podActions.ts';
import { podScriptOf } from './podScript.ts';
import type { Profile, ProfileName } from './profiles.ts';
import { randomFor } from './random.ts';
import { type EventStream, RuntimeCore, type RuntimeOptions } from './runtimeCore.ts';
import { Timeline } from './timeline.ts';

export interface VirtualSubscriber {
  readonly receive: (message: Uint8Array) => void;
  readonly ended?: (code: status) => void;
  /** Default: always. After it returned false, the subscriber calls {@link VirtualRuntime.resume} when it has room. */
  readonly hasRoom?: () => boolean;
}

export interface VirtualListOutcome extends ListOutcome {
  readonly tookMs: number;
}

export interface VirtualRestart {
  readonly downMs: number;
  readonly how?: 'killed' | 'stopped';
  /** The probability that a running container exits while the runtime is down. Default 0. */
  readonly exits?: number;
  readonly as?: ProfileName | Profile;
}

const RESTART_AFTER_CRASH_MS = 500;
const RETRY_MS = 100;

export class VirtualRuntime {
  readonly core: RuntimeCore;
  readonly #timeline: Timeline;

  constructor(options: RuntimeOptions = {}) {
    const { clock, advance } = manualClock();
    this.#timeline = new Timeline(advance);
    this.core = new RuntimeCore({
      ...options,
      clock,
      later: (ms, run) => this.later(ms, run),
      keepTruth: true,
      onCrash: () => this.restart({ downMs: RESTART_AFTER_CRASH_MS }),
    });
    this.core.comeUp();
  }

  later(ms: number, run: () => void): void {
    this.#timeline.later(ms, run);
  }

  /** Runs something periodically, first after one period. */
  every(ms: number, run: () => void): void {
    this.later(ms, () => {
      run();
      this.every(ms, run);
    });
  }

  advance(ms: number): void {
    this.#timeline.advance(ms);
  }

  /** Plays pods in slots, as churn does. No pod begins after `forMs`; those that began run to their end. */
  play(options: Omit<ChurnOptions, 'seed'>, forMs: number): void {
    const until = this.#timeline.now + forMs;
    for (let slot = 0; slot < options.pods; slot += 1) this.#playSlot(options, slot, 0, until);
  }

  /** Subscribes; returns a function that unsubscribes. A runtime that is down or has no stream ends the stream at once. */
  subscribe(subscriber: VirtualSubscriber): () => void {
    const refusal = this.#refusal();
    if (refusal !== null) {
      this.later(0, () => subscriber.ended?.(refusal));
      return () => {};
    }
    let unsubscribe = (): void => {};
    this.core.open((number) => {
      const stream = this.#stream(number, subscriber);
      unsubscribe = () => this.core.closed(number, 'cancelled', 0);
      return stream;
    });
    return () => unsubscribe();
  }

  /** To be called when a subscriber has room again. */
  resume(): void {
    this.core.channel.resume();
  }

  /** Calls a list method. A list that hangs never calls back. */
  list(call: CriListName, done: (outcome: VirtualListOutcome) => void): void {
    const start = this.#timeline.now;
    const answer = (outcome: ListOutcome) => done({ ...outcome, tookMs: this.#timeline.now - start });
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

  /** Takes the runtime down and starts it again later. */
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
      if (this.#timeline.now > until) return;
      const steps = podScriptOf({ ...options, seed, slot, number });
      this.#playSteps(steps, () => this.#playSlot(options, slot, number + 1, until));
    });
  }

  /** Plays one step after the other; a step that needs the runtime waits for it. */
  #playSteps(steps: readonly ScriptStep[], done: () => void, index = 0, start = this.#timeline.now): void {
    const step = steps[index];
    if (step === undefined) {
      done();
      return;
    }
    const wait = Math.max(0, start + step.at - this.#timeline.now);
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
        if (slowEffect !== 'cut-off' || hasRoom()) receive(message);
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
