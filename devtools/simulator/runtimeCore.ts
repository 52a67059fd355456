/*
 * The core of a simulated runtime: pods, event channel, lists and ground truth, put together without sockets and without
 * timers of their own. A shell gives it time and connections: runtime.ts the real ones, virtualRuntime.ts none.
 *
 *   up ── goDown() ──► down: streams are gone, nothing is announced, containers live on ── comeUp() ──► up, perhaps as
 *                                                                                           another version
 */
import { status } from '@grpc/grpc-js';
import { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { type Clock, nanosOf, steppable } from './clock.ts';
import { eventMessage } from './criMessages.ts';
import { EventChannel, type EventReceiver } from './eventChannel.ts';
import { dropWhen, type EventFault, type SimulatedEvent } from './eventFaults.ts';
import { createGroundTruth, type GroundTruth, noteFault, type ShownState } from './groundTruth.ts';
import { Lister } from './lister.ts';
import type { ListFault } from './listFaults.ts';
import type { ContainerExit, EventDraft } from './podModel.ts';
import { SimulatedPods } from './pods.ts';
import { type Profile, type ProfileName, profileOf } from './profiles.ts';
import { randomFor } from './random.ts';

/** What both kinds of simulated runtime can be told at their start. */
export interface RuntimeOptions {
  /** Default 1. */
  readonly seed?: number;
  /** By name, or one of your own. Default containerd-2.1. */
  readonly profile?: ProfileName | Profile;
  readonly faults?: readonly EventFault[];
  readonly listFaults?: readonly ListFault[];
  /** Ends each stream this long after it was opened. */
  readonly breakStreamAfterMs?: number | undefined;
  /** With this status; OK is an orderly end. Of several each stream has the next, in turn. Default UNAVAILABLE. */
  readonly breakStreamWith?: status | readonly status[] | undefined;
  /** Events from before a subscription that are sent again to whoever subscribes. Default 0. */
  readonly replay?: number;
  /** Whether a subscriber that does not read freezes a containerd 2; if not, it is cut off. Default false. */
  readonly freeze?: boolean;
  /** How likely an event for a subscriber that has left ends a runtime which can die of it. Default 0.5. */
  readonly crashProbability?: number;
  /** How long after coming up every call but Version is refused. Default 0. */
  readonly startingMs?: number;
}

export interface CoreOptions extends RuntimeOptions {
  readonly clock: Clock;
  /** Runs something later; never after the runtime was stopped. */
  readonly later: (ms: number, run: () => void) => void;
  readonly keepTruth: boolean;
  /** The process has died by itself; whoever restarts it should. */
  readonly onCrash: () => void;
}

/** One event stream, from the runtime's side. */
export interface EventStream extends EventReceiver {
  /** Ends it; `cause` is for the ground truth. Calling back {@link RuntimeCore.closed} is the stream's duty. */
  readonly end: (code: status, details: string, cause: string) => void;
}

const DEFAULT_CRASH_PROBABILITY = 0.5;
const BROKEN = 'the stream was broken on purpose';

export class RuntimeCore {
  readonly truth: GroundTruth;
  readonly pods: SimulatedPods;
  readonly channel: EventChannel;
  readonly lister: Lister;
  /** What the runtime's own stamps are made with; jumps with {@link stepWallClock}. */
  readonly clock: Clock;
  readonly seed: number;
  readonly #options: CoreOptions;
  readonly #step: (micros: number) => void;
  readonly #streams = new Map<number, EventStream>();
  #profile: Profile;
  #faults: readonly EventFault[];
  #listFaults: readonly ListFault[];
  #isDown = false;
  #isStarting = false;
  #lives = 0;
  #opened = 0;
  #crashes = 0;

  constructor(options: CoreOptions) {
    const { profile = 'containerd-2.1', seed = 1, faults = [], listFaults = [], later } = options;
    this.#options = options;
    this.#profile = profileOf(profile);
    this.#faults = faults;
    this.#listFaults = listFaults;
    this.seed = seed;
    const { clock, step } = steppable(options.clock);
    this.clock = clock;
    this.#step = step;
    this.truth = createGroundTruth(options.clock, { keep: options.keepTruth });
    const self = this;
    const shared = {
      get profile() {
        return self.#profile;
      },
      clock,
      truth: this.truth,
      seed,
      later,
    };
    this.channel = new EventChannel(
      lasting(shared, {
        faults: () => this.#faults,
        replay: options.replay ?? 0,
        crash: () => this.#crash(),
      }),
    );
    this.pods = new SimulatedPods(
      lasting(shared, {
        announce: (draft: EventDraft) => this.#build(draft),
        isDown: () => this.#isDown,
        isHeard: () => this.channel.subscribers > 0,
      }),
    );
    this.lister = new Lister(lasting(shared, { pods: this.pods, faults: () => this.#listFaults }));
  }

  get profile(): Profile {
    return this.#profile;
  }

  get isDown(): boolean {
    return this.#isDown;
  }

  /** Up, and not ready to answer yet. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  /** What a subscriber that does not read brings about. */
  get slowEffect(): Profile['slow']['effect'] | 'cut-off' {
    const { effect } = this.#profile.slow;
    return effect === 'freeze' && this.#options.freeze !== true ? 'cut-off' : effect;
  }

  /** Event streams that are open at present. */
  get subscribers(): number {
    return this.#streams.size;
  }

  /** Replaces the faults from the next event on. */
  setFaults(faults: readonly EventFault[]): void {
    this.#faults = faults;
  }

  /** From the next event on a predicate says what is delivered. */
  filterEvents(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): void {
    this.setFaults([dropWhen(predicate)]);
  }

  /** Replaces the faults of the lists from the next call on. */
  setListFaults(faults: readonly ListFault[]): void {
    this.#listFaults = faults;
  }

  /** Ends a container, and notices it only so much later, unless it is removed before. */
  exitUnnoticed(id: string, forMs: number, exit: ContainerExit = {}): void {
    this.pods.exitContainer(id, { ...exit, unnoticed: true });
    this.#options.later(forMs, () => {
      if (!this.#isDown && this.pods.containers.get(id)?.shown === 'running') this.pods.notice(id);
    });
  }

  /** Has lists and statuses show something else than what is, for a while. */
  showFor(id: string, shown: ShownState, forMs: number): void {
    this.pods.show(id, shown);
    this.#options.later(forMs, () => {
      if (this.pods.containers.has(id) || this.pods.sandboxes.has(id)) this.pods.show(id, null);
    });
  }

  /** Moves the runtime's wall clock, and with it every later created_at, started_at and finished_at. */
  stepWallClock(ms: number): void {
    this.#step(ms * 1000);
    noteFault(this.truth, 'wall_step', `${ms} ms`);
  }

  /** Opens an event stream: the caller makes it from its number. */
  open(make: (number: number) => EventStream): void {
    this.#opened += 1;
    const number = this.#opened;
    const stream = make(number);
    this.#streams.set(number, stream);
    this.truth.record({
      what: 'subscriber',
      subscriber: number,
      change: 'opened',
      cause: '',
      undelivered: 0,
    });
    this.channel.subscribe(stream);
    const { breakStreamAfterMs } = this.#options;
    if (breakStreamAfterMs === undefined) return;
    const code = this.#breakingCode(number);
    this.#options.later(breakStreamAfterMs, () => {
      if (!this.#streams.has(number)) return;
      const detail = `subscriber ${number} after ${breakStreamAfterMs} ms with ${status[code]}`;
      noteFault(this.truth, 'break_stream', detail);
      stream.end(code, BROKEN, 'broken');
    });
  }

  /** A stream has ended, whoever ended it. */
  closed(number: number, cause: string, undelivered: number): void {
    if (!this.#streams.delete(number)) return;
    if (cause === 'slow') noteFault(this.truth, 'slow_subscriber', `subscriber ${number} was cut off`);
    this.truth.record({ what: 'subscriber', subscriber: number, change: 'closed', cause, undelivered });
    this.channel.unsubscribe(number);
  }

  /** Ends every event stream with a status; whoever wants may subscribe again at once. */
  breakStreams(code: status = status.UNAVAILABLE, details = BROKEN): void {
    noteFault(this.truth, 'break_stream', `${this.#streams.size} streams end with ${status[code]}`);
    for (const stream of [...this.#streams.values()]) stream.end(code, details, 'broken');
  }

  /** The process goes away, killed or stopped in order; some runtimes then end their streams with OK. */
  goDown(how: 'killed' | 'stopped'): void {
    noteFault(this.truth, 'down', how === 'killed' ? 'it was killed' : 'it was stopped');
    this.#isDown = true;
    const polite = how === 'stopped' && this.#profile.stopEndsStreams;
    const code = polite ? status.OK : status.UNAVAILABLE;
    this.channel.reset();
    for (const stream of [...this.#streams.values()]) stream.end(code, 'Connection dropped', 'down');
  }

  /** Each container that runs ends with this probability: for what happens while nobody watches. */
  exitSome(probability: number): void {
    for (const { id, state } of [...this.pods.containers.values()]) {
      if (state !== 'running') continue;
      if (!randomFor(this.seed, 'exit-while-down', this.#lives, id).chance(probability)) continue;
      this.pods.exitContainer(id, { exitCode: 137 });
    }
  }

  /** The process is there (again). What ended unnoticed is put right without a word. */
  comeUp(as?: ProfileName | Profile): void {
    this.#lives += 1;
    if (as !== undefined) this.#profile = profileOf(as);
    if (this.#lives > 1) {
      const { runtimeName, runtimeVersion } = this.#profile;
      noteFault(this.truth, 'up', `${runtimeName} ${runtimeVersion}`);
    }
    for (const { id, unnoticed } of [...this.pods.containers.values()]) {
      if (unnoticed !== null) this.pods.notice(id);
    }
    this.#isDown = false;
    const { startingMs = 0, later } = this.#options;
    this.#isStarting = startingMs > 0;
    if (startingMs > 0) {
      later(startingMs, () => {
        this.#isStarting = false;
      });
    }
  }

  /** Streams are numbered from 1. */
  #breakingCode(number: number): status {
    const { breakStreamWith: codes = [] } = this.#options;
    if (typeof codes === 'number') return codes;
    return codes[(number - 1) % codes.length] ?? status.UNAVAILABLE;
  }

  #crash(): boolean {
    this.#crashes += 1;
    const { crashProbability = DEFAULT_CRASH_PROBABILITY } = this.#options;
    if (!randomFor(this.seed, 'crash', this.#crashes).chance(crashProbability)) return false;
    // Not in the middle of an event: the shell takes it down when this one is through.
    this.#options.later(0, () => this.#options.onCrash());
    return true;
  }

  #build(draft: EventDraft): void {
    const createdNs = nanosOf(this.clock().wall);
    const message = ContainerEventResponse.encode(
      eventMessage(this.pods, draft, createdNs, this.#profile),
    ).finish();
    const { listed: _, ...built } = draft;
    this.channel.publish({ ...built, createdNs, message });
  }
}

/** Both, with getters that stay getters. */
function lasting<A extends object, B extends object>(shared: A, more: B): A & B {
  return Object.defineProperties(more, Object.getOwnPropertyDescriptors(shared)) as A & B;
}
