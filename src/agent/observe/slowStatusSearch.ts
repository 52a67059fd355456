/*
 * The search for slow statuses: while relists are slow, asks for the status of one sandbox or container after the other and times the
 * answers. A kubelet's relist asks for statuses one by one, so a single pod whose status hangs holds up all (kubernetes#93886): this names it.
 *
 * The search must not become the load, nor accuse a pod of what holds up everything:
 *
 *   - One call is under way at a time, and ends after five seconds. Then the runtime rests nine times as long as it took, for a second at least.
 *   - None begins while one of our lists is under way: a runtime that answers no list answers no status either.
 *   - After a thousand calls it ends, until relists were quick again.
 *   - Only time in which this process runs counts. While it is held up, an answer may be waiting.
 */
import { type CriCall, CriError, type ObserverCalls } from '../../cri/client.ts';
import { monoNow } from '../../platform/clock.ts';
import type { ListedItem, Relist } from '../../protocol/observation.ts';
import type { ContainerIdentity, MinuteStatuses } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, mono, shift, since } from '../../protocol/units.ts';

/** A healthy runtime needs milliseconds. */
const SLOW: Micros = millis(1_000);
const PATIENCE: Micros = millis(5_000);
/** Ends a call when this process hardly runs, at the runtime too; says nothing about the pod. */
const TIMEOUT: Micros = millis(60_000);
const MIN_REST: Micros = millis(1_000);
const REST_FACTOR = 9;
const MAX_CALLS = 1_000;
const BEAT: Micros = millis(100);

export const TIMED_STATUSES = ['quick', 'slow', 'timed_out'] as const;
export type TimedStatus = (typeof TIMED_STATUSES)[number];

/** Failures that do not say how long the runtime takes for this status. */
const UNTIMED: ReadonlySet<string> = new Set(['UNAVAILABLE', 'CANCELLED', 'DEADLINE_EXCEEDED']);

export interface SlowStatusEvents {
  timed(result: TimedStatus): void;
  malformed(call: Extract<CriCall, 'ContainerStatus' | 'PodSandboxStatus'>): void;
}

interface SlowStatus {
  readonly object: ContainerIdentity;
  readonly at: Mono;
  readonly took: Micros;
  readonly timedOut: boolean;
}

/** What a minute's record says, and the identity of what it names. */
interface StatusesOfMinute {
  readonly statuses: MinuteStatuses | null;
  readonly slowest: ContainerIdentity | null;
}

export class SlowStatusSearch {
  readonly #client: Pick<ObserverCalls, 'containerStatus' | 'sandboxStatus'>;
  readonly #events: SlowStatusEvents;
  readonly #readClock: () => Mono;
  /** Ids of this round: when all were asked for, the next round begins. */
  readonly #asked = new Set<string>();
  #calls = 0;
  #call: AbortController | null = null;
  #restsUntil: Mono = mono(0);
  #stopped = false;
  #minute = { asked: 0, slow: 0 };
  #slowest: SlowStatus | null = null;

  constructor(
    client: Pick<ObserverCalls, 'containerStatus' | 'sandboxStatus'>,
    events: SlowStatusEvents,
    readClock: () => Mono = monoNow,
  ) {
    this.#client = client;
    this.#events = events;
    this.#readClock = readClock;
  }

  /** Relists are slow. To be called every second or so; `listed` is null while a list is under way. */
  search(listed: Relist | null, now: Mono): void {
    if (this.#stopped || this.#call !== null || listed === null) return;
    if (now < this.#restsUntil || this.#calls >= MAX_CALLS) return;
    const next = this.#next(listed);
    if (next === null) return;
    this.#asked.add(next.object.id);
    this.#calls += 1;
    void this.#ask(next.object, now);
  }

  /** Relists are quick. A call that is under way still ends by itself, and the next search goes on with the round. */
  rest(): void {
    this.#calls = 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#call?.abort();
  }

  takeMinute(epochStart: Mono): StatusesOfMinute {
    const { asked, slow } = this.#minute;
    const slowest = this.#slowest;
    this.#minute = { asked: 0, slow: 0 };
    this.#slowest = null;
    return {
      statuses: asked === 0 ? null : { asked, slow, slowest: slowest && recordOf(slowest, epochStart) },
      slowest: slowest?.object ?? null,
    };
  }

  /** Sandboxes first, and what is running before what has ended. */
  #next({ sandboxes, containers }: Relist): ListedItem | null {
    const all = [...sandboxes.items.values(), ...containers.items.values()];
    const present = new Set(all.map(({ object }) => object.id));
    for (const id of this.#asked) if (!present.has(id)) this.#asked.delete(id);
    if (this.#asked.size === present.size) this.#asked.clear();
    const left = all.filter(({ object }) => !this.#asked.has(object.id));
    return left.find(({ state }) => state === 'running') ?? left[0] ?? null;
  }

  async #ask(object: ContainerIdentity, at: Mono): Promise<void> {
    const call = new AbortController();
    this.#call = call;
    const patience = new Patience(this.#readClock, () => call.abort());
    const isTimed = await this.#isTimed(object, call.signal);
    const took = patience.end();
    const now = this.#readClock();
    // A process that is held up may notice the end of the call hours later.
    const lasted = Math.min(between(at, now), TIMEOUT);
    this.#restsUntil = shift(now, Math.max(MIN_REST, REST_FACTOR * lasted));
    this.#call = null;
    if (!this.#stopped && (isTimed || patience.isOver))
      this.#timed({ object, at, took, timedOut: patience.isOver });
  }

  /** Asks, and returns whether the time until then is that of the status. */
  async #isTimed({ id, isSandbox }: ContainerIdentity, signal: AbortSignal): Promise<boolean> {
    try {
      const bounds = { timeoutMs: TIMEOUT / 1000, signal };
      await (isSandbox ? this.#client.sandboxStatus(id, bounds) : this.#client.containerStatus(id, bounds));
      return true;
    } catch (error) {
      const code = error instanceof CriError ? error.code : 'CANCELLED';
      if (code === 'MALFORMED') this.#events.malformed(isSandbox ? 'PodSandboxStatus' : 'ContainerStatus');
      return !UNTIMED.has(code);
    }
  }

  #timed(status: SlowStatus): void {
    const isSlow = status.timedOut || status.took >= SLOW;
    this.#minute.asked += 1;
    if (isSlow) this.#minute.slow += 1;
    if (isSlow && status.took > (this.#slowest?.took ?? 0)) this.#slowest = status;
    this.#events.timed(status.timedOut ? 'timed_out' : isSlow ? 'slow' : 'quick');
  }
}

function recordOf({ object, at, took, timedOut }: SlowStatus, epochStart: Mono): MinuteStatuses['slowest'] {
  const { id, isSandbox } = object;
  return { containerId: id, isSandbox, at: since(epochStart, at), took: Math.round(took), timedOut };
}

/** Adds up the time in which this process runs, and aborts the call after {@link PATIENCE} of it. */
class Patience {
  isOver = false;
  readonly #readClock: () => Mono;
  readonly #abort: () => void;
  readonly #timer = setInterval(() => this.#beat(), BEAT / 1000);
  #last: Mono;
  #ran = 0;

  constructor(readClock: () => Mono, abort: () => void) {
    this.#readClock = readClock;
    this.#abort = abort;
    this.#last = readClock();
  }

  /** Returns how long this process ran meanwhile. */
  end(): Micros {
    clearInterval(this.#timer);
    this.#add();
    return millis(this.#ran / 1000);
  }

  #beat(): void {
    this.#add();
    if (this.#ran < PATIENCE || this.isOver) return;
    this.isOver = true;
    this.#abort();
  }

  /** A beat that comes later than the next was due shows that this process was held up. */
  #add(): void {
    const now = this.#readClock();
    this.#ran += Math.min(between(this.#last, now), 2 * BEAT);
    this.#last = now;
  }
}
