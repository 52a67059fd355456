/*
 * The core of a simulated runtime: pods, event channel, lists and ground truth, without sockets and timers. runtime.ts
 * adds a socket and real time, virtualRuntime.ts virtual time.
 *
 *   up ── goDown() ──► down: streams are gone, nothing is announced, containers keep running ── comeUp() ──► up, perhaps as
 *                                                                                           another version
 */
import { status } from '@grpc/grpc-js';
import { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { type Clock, nanosOf, steppable } from './clock.ts';
import { eventMessage } from './criMessages.ts';
import { EventChannel, type EventReceiver } from './eventChannel.ts';
import { dropWhen, type EventFault, type SimulatedEvent } from './eventFaults.ts';
import { createGroundTruth, type GroundTruthLog, noteFault, type ShownItemState } from './groundTruth.ts';
import { Lister } from './lister.ts';
import type { ListFault } from './listFaults.ts';
import type { ContainerExit, EventDraft } from './podModel.ts';
import { SimulatedPods } from './pods.ts';
import { type Profile, type ProfileName, profileOf } from './profiles.ts';
import { randomFor } from './random.ts';
import { StatusLocks } from './statusLocks.ts';

/** The options that a runtime on a socket and one in virtual time share. */
export interface RuntimeOptions {
  /** Default 1. */
  readonly seed?: number;
  /** A name, or a custom profile. Default containerd-2.1. */
  readonly profile?: ProfileName | Profile;
  readonly faults?: readonly EventFault[];
  readonly listFaults?: readonly ListFault[];
  /** Ends each stream this long after it was opened. */
  readonly breakStreamAfterMs?: number | undefined;
  /** The status of that end; of several, each stream gets the next in turn. Default UNAVAILABLE. */
  readonly breakStreamWith?: status | readonly status[] | undefined;
  /** How many of the latest events are sent again to each new subscriber. Default 0. */
  readonly replay?: number;
  /** Whether a subscriber that does not read freezes containerd 2; otherwise it is cut off. Default false. */
  readonly freeze?: boolean;
  /** The probability that an event for a subscriber that has left crashes a runtime of which the profile says so. Default 0.5. */
  readonly crashProbability?: number;
  /** How long after its start the runtime refuses every call but Version. Default 0. */
  readonly startingMs?: number;
  /** Another subscriber freezes again and again: how long it reads in between, and how long it does not. Default: never. */
  readonly neighbourFreezes?: { readonly everyMs: number; readonly forMs: number } | undefined;
}

export interface CoreOptions extends RuntimeOptions {
  readonly clock: Clock;
  /** Runs a callback later, but never after the runtime was stopped. */
  readonly later: (ms: number, run: () => void) => void;
  readonly keepTruth: boolean;
  /** Called when the process crashed, so that the caller can restart it. */
  readonly onCrash: () => void;
}

/** One event stream, from the runtime's side. */
export interface EventStream extends EventReceiver {
  /** Ends the stream, which must then call {@link RuntimeCore.closed}. `cause` is for the ground truth. */
  readonly end: (code: status, details: string, cause: string) => void;
}

const DEFAULT_CRASH_PROBABILITY = 0.5;
const BROKEN = 'the stream was broken on purpose';

export class RuntimeCore {
  readonly truth: GroundTruthLog;
  readonly pods: SimulatedPods;
  readonly channel: EventChannel;
  readonly lister: Lister;
  /** The ids whose status calls are never answered. */
  readonly hangingStatuses = new Set<string>();
  readonly statusLocks = new StatusLocks();
  /** The clock of the runtime's timestamps; {@link stepWallClock} steps it. */
  readonly clock: Clock;
  readonly seed: number;
  readonly #options: CoreOptions;
  readonly #step: (micros: number) => void;
  readonly #streams = new Map<number, EventStream>();
  #profile: Profile;
  #faults: readonly EventFault[];
  #listFaults: readonly ListFault[];
  #isDown = true;
  #isStarting = false;
  #processRuns = 0;
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
        hasSubscriber: () => this.channel.subscribers > 0,
      }),
    );
    this.lister = new Lister(lasting(shared, { pods: this.pods, faults: () => this.#listFaults }));
    this.#freezeNeighbourLater();
  }

  get profile(): Profile {
    return this.#profile;
  }

  get isDown(): boolean {
    return this.#isDown;
  }

  /** Up, but not ready to answer calls yet. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  /** The effect of a subscriber that does not read. */
  get slowEffect(): Profile['slow']['effect'] | 'cut-off' {
    const { effect } = this.#profile.slow;
    return effect === 'freeze' && this.#options.freeze !== true ? 'cut-off' : effect;
  }

  /** The number of open event streams. */
  get subscribers(): number {
    return this.#streams.size;
  }

  /** Replaces the faults from the next event on. */
  setFaults(faults: readonly EventFault[]): void {
    this.#faults = faults;
  }

  /** Replaces the faults by a predicate that decides which events are delivered. */
  filterEvents(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): void {
    this.setFaults([dropWhen(predicate)]);
  }

  /** Replaces the faults of the lists from the next call on. */
  setListFaults(faults: readonly ListFault[]): void {
    this.#listFaults = faults;
  }

  /** Ends a container; the runtime notices it `forMs` later, unless the container is removed first. */
  exitUnnoticed(id: string, forMs: number, exit: ContainerExit = {}): void {
    this.pods.exitContainer(id, { ...exit, unnoticed: true });
    this.#options.later(forMs, () => {
      if (!this.#isDown && this.pods.containers.get(id)?.shown === 'running') this.pods.notice(id);
    });
  }

  /** Shows a false state in lists and statuses for `forMs`. */
  showFor(id: string, shown: ShownItemState, forMs: number): void {
    this.pods.show(id, shown);
    this.#options.later(forMs, () => {
      if (this.pods.containers.has(id) || this.pods.sandboxes.has(id)) this.pods.show(id, null);
    });
  }

  /** Steps the runtime's wall clock, and so every later created_at, started_at and finished_at. */
  stepWallClock(ms: number): void {
    this.#step(ms * 1000);
    noteFault(this.truth, 'wall_step', `${ms} ms`);
  }

  /** From now on another subscriber reads nothing. */
  freezeNeighbour(): void {
    noteFault(this.truth, 'neighbour_frozen', 'another subscriber reads nothing');
    this.channel.neighbour.freeze();
  }

  /** It reads everything again. */
  thawNeighbour(): void {
    noteFault(this.truth, 'neighbour_thawed', 'it reads again');
    this.channel.neighbour.thaw();
  }

  /** Opens an event stream, which `make` creates from its number. */
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

  /** To be called when a stream has ended. */
  closed(number: number, cause: string, undelivered: number): void {
    if (!this.#streams.delete(number)) return;
    if (cause === 'slow') noteFault(this.truth, 'slow_subscriber', `subscriber ${number} was cut off`);
    this.truth.record({ what: 'subscriber', subscriber: number, change: 'closed', cause, undelivered });
    this.channel.unsubscribe(number);
    const mayCrash = this.#profile.crashesOnDisconnect === 'unread-events' && !this.#isDown;
    if (mayCrash && undelivered > 0 && this.#crash()) {
      noteFault(this.truth, 'crash', `subscriber ${number} left ${undelivered} unread events`);
    }
  }

  /** Ends every event stream with a status; clients may subscribe again at once. */
  breakStreams(code: status = status.UNAVAILABLE, details = BROKEN): void {
    noteFault(this.truth, 'break_stream', `${this.#streams.size} streams end with ${status[code]}`);
    for (const stream of [...this.#streams.values()]) stream.end(code, details, 'broken');
  }

  /** The process goes down, killed or stopped in order; some runtimes then end their streams with OK. */
  goDown(how: 'killed' | 'stopped'): void {
    noteFault(this.truth, 'down', how === 'killed' ? 'it was killed' : 'it was stopped');
    this.#isDown = true;
    const dropped = { code: status.UNAVAILABLE, details: 'Connection dropped' };
    const { code, details } = (how === 'stopped' ? this.#profile.stopEndsStreams : null) ?? dropped;
    this.channel.reset();
    for (const stream of [...this.#streams.values()]) stream.end(code, details, 'down');
  }

  /** Ends each running container with this probability, for exits while the runtime is down. */
  exitSome(probability: number): void {
    for (const { id, state } of [...this.pods.containers.values()]) {
      if (state !== 'running') continue;
      if (!randomFor(this.seed, 'exit-while-down', this.#processRuns, id).chance(probability)) continue;
      this.pods.exitContainer(id, { exitCode: 137 });
    }
  }

  /** The process starts. Exits that were not noticed before are now shown, without an event. */
  comeUp(as?: ProfileName | Profile): void {
    this.#processRuns += 1;
    if (as !== undefined) this.#profile = profileOf(as);
    if (this.#processRuns > 1) {
      const { runtimeName, runtimeVersion } = this.#profile;
      noteFault(this.truth, 'up', `${runtimeName} ${runtimeVersion}`);
    }
    this.pods.noticeAfterRestart();
    this.#isDown = false;
    const { startingMs = 0, later } = this.#options;
    this.#isStarting = startingMs > 0;
    if (startingMs > 0) {
      later(startingMs, () => {
        this.#isStarting = false;
      });
    }
  }

  #freezeNeighbourLater(): void {
    const { later, neighbourFreezes } = this.#options;
    if (neighbourFreezes === undefined) return;
    later(neighbourFreezes.everyMs, () => {
      this.freezeNeighbour();
      later(neighbourFreezes.forMs, () => {
        this.thawNeighbour();
        this.#freezeNeighbourLater();
      });
    });
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
    const stillRunning =
      draft.type === 'STOPPED' &&
      randomFor(this.seed, 'shown-running', draft.id).chance(this.#profile.stoppedShownRunning);
    const message = ContainerEventResponse.encode(
      eventMessage(this.pods, { ...draft, stillRunning }, createdNs, this.#profile),
    ).finish();
    const { listed: _, ...built } = draft;
    this.channel.publish({ ...built, createdNs, message });
  }
}

/** Both, with getters that stay getters. */
function lasting<A extends object, B extends object>(shared: A, more: B): A & B {
  return Object.defineProperties(more, Object.getOwnPropertyDescriptors(shared)) as A & B;
}
