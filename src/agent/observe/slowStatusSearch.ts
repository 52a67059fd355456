/*
 * The search for slow statuses: while relists are slow or hang, asks for the status of one sandbox or container after the other and times
 * the answers. A single one can hold up all: a kubelet's relist asks for statuses one by one (kubernetes#93886), and a list of containerd waits
 * for the status of each container (hangVerdict.ts).
 *
 * The search must not become the load, nor accuse a pod of what holds up everything:
 *
 *   - Calls are made one at a time. After each the runtime rests nine times as long as it took. In the first round, and so until each status
 *     was asked for once, the rest may be as short as 50 ms; later it lasts a second at least.
 *   - A status that is not answered in five seconds stays asked for until relists are quick again: a runtime cannot end the call of a status whose
 *     lock is held, and its answer shows that it no longer hangs. At three of these the search waits.
 *   - After one that does not answer, another kind and another pod are asked for: is it this one, or the runtime?
 *   - None begins while one of our lists is under way, unless that hangs.
 *   - After a thousand calls it ends, until relists were quick again.
 *   - Only time in which this process runs counts. While it is held up, an answer may be waiting.
 */
import { type CriCall, CriError, type ObserverCalls } from '../../cri/client.ts';
import { monoNow } from '../../platform/clock.ts';
import type { ListedItem, Relist } from '../../protocol/observation.ts';
import type { ContainerIdentity, HangVerdict, ListCallName, MinuteStatuses } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, mono, shift, since } from '../../protocol/units.ts';
import { HangStatuses } from './hangStatuses.ts';
import { MAX_UNANSWERED } from './hangVerdict.ts';
import type { ListHang } from './listHangs.ts';
import { StatusCall } from './statusCall.ts';

/** At the runtime too. A status whose lock is held is asked for only once as long as a list hangs. */
const TIMEOUT: Micros = millis(24 * 3_600_000);
const MIN_REST: Micros = millis(1_000);
const MIN_REST_FIRST_ROUND: Micros = millis(50);
/** After this process was held up for hours, the search goes on. */
const MAX_REST: Micros = millis(60_000);
const REST_FACTOR = 9;
const MAX_CALLS = 1_000;

export const TIMED_STATUSES = ['quick', 'slow', 'timed_out'] as const;
export type TimedStatus = (typeof TIMED_STATUSES)[number];

/** Failures that do not say how long the runtime takes for this status. */
const UNTIMED: ReadonlySet<string> = new Set(['UNAVAILABLE', 'CANCELLED', 'DEADLINE_EXCEEDED']);

export interface SlowStatusEvents {
  timed(result: TimedStatus): void;
  malformed(call: Extract<CriCall, 'ContainerStatus' | 'PodSandboxStatus'>): void;
}

/** Our relists. */
export interface SearchedLists {
  /** The last relist; null before the first. */
  readonly last: Relist | null;
  /** Whether one is under way. */
  readonly areRunning: boolean;
  readonly hang: ListHang | null;
}

/** The known facts of a list that hangs. */
export interface KnownHang {
  readonly call: ListCallName;
  readonly waited: Micros;
  readonly verdict: HangVerdict;
  readonly named: ContainerIdentity | null;
}

/** The part of a minute's record about statuses, and the identity of the one that it names. */
interface StatusesOfMinute {
  readonly statuses: MinuteStatuses | null;
  readonly slowest: ContainerIdentity | null;
}

export class SlowStatusSearch {
  readonly #client: Pick<ObserverCalls, 'containerStatus' | 'sandboxStatus'>;
  readonly #events: SlowStatusEvents;
  readonly #readClock: () => Mono;
  /** Null while relists are quick. */
  #lists: SearchedLists | null = null;
  /** Ids of this round: when all were asked for, the next round begins. */
  readonly #asked = new Set<string>();
  #isFirstRound = true;
  #calls = 0;
  /** The call that the search waits for; others stay open. */
  #call: StatusCall | null = null;
  readonly #open = new Set<StatusCall>();
  /** Unanswered ones that an earlier minute counts. */
  #carried: readonly StatusCall[] = [];
  #restsUntil: Mono = mono(0);
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #minute = { asked: 0, slow: 0 };
  #slowest: StatusCall | null = null;
  #evidence: HangStatuses | null = null;

  constructor(
    client: Pick<ObserverCalls, 'containerStatus' | 'sandboxStatus'>,
    events: SlowStatusEvents,
    readClock: () => Mono = monoNow,
  ) {
    this.#client = client;
    this.#events = events;
    this.#readClock = readClock;
  }

  /** Relists are slow, or one hangs. To be called every second or so. */
  search(lists: SearchedLists): void {
    if (this.#stopped) return;
    this.#lists = lists;
    this.#follow(lists);
    this.#askNext();
  }

  /** Relists are quick. A call that is under way still ends by itself, and the next search goes on with the round. */
  rest(): void {
    this.#lists = null;
    this.#calls = 0;
    this.#isFirstRound = true;
    clearTimeout(this.#timer);
    for (const call of this.#unanswered) call.cancel();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const call of this.#open) call.cancel();
  }

  /** Null while no list hangs. */
  get hang(): KnownHang | null {
    const evidence = this.#evidence;
    if (evidence === null || evidence.hang.to !== null) return null;
    const { verdict, named } = evidence.conclude();
    const { call, waited } = evidence.hang;
    return { call, waited: millis(waited / 1000), verdict, named: named?.object ?? null };
  }

  /** Whether the first verdict on a hang, or its end, is in no minute yet. */
  get hasNews(): boolean {
    return this.#evidence?.hasNews === true;
  }

  takeMinute(epochStart: Mono): StatusesOfMinute {
    const hang = this.#evidence;
    const conclusion = hang?.conclude() ?? null;
    const slowest = conclusion?.named ?? this.#slowestOfMinute();
    const carried = this.#carried.filter(({ isUnanswered }) => isUnanswered).length;
    const asked = this.#minute.asked + carried;
    const statuses: MinuteStatuses = {
      ...{ asked, slow: this.#minute.slow + carried },
      slowest: slowest && recordOf(slowest, epochStart),
      ...(hang === null || conclusion === null ? {} : { hang: hang.report(conclusion, epochStart) }),
    };
    this.#minute = { asked: 0, slow: 0 };
    this.#slowest = null;
    this.#carried = this.#unanswered;
    if (hang?.isSettled === true) this.#evidence = null;
    return {
      statuses: asked === 0 && hang === null ? null : statuses,
      slowest: slowest?.object ?? null,
    };
  }

  get #unanswered(): readonly StatusCall[] {
    return [...this.#open].filter(({ isUnanswered }) => isUnanswered);
  }

  #slowestOfMinute(): StatusCall | null {
    const slow = [...(this.#slowest === null ? [] : [this.#slowest]), ...this.#unanswered];
    return slow.reduce<StatusCall | null>(
      (most, call) => (most === null || call.took > most.took ? call : most),
      null,
    );
  }

  #follow({ hang, last }: SearchedLists): void {
    // A minute first says that the one before has ended: no later one would.
    if (hang === null || hang === this.#evidence?.hang || this.#evidence?.isEndDue === true) return;
    this.#evidence = new HangStatuses(hang, last, this.#unanswered, this.#readClock);
    // Each status is asked for again, so that all answers are of this hang.
    this.#asked.clear();
    this.#isFirstRound = true;
  }

  #askNext(): void {
    clearTimeout(this.#timer);
    const lists = this.#lists;
    if (this.#stopped || lists === null || lists.last === null || this.#call !== null) return;
    if ((lists.areRunning && lists.hang === null) || this.#calls >= MAX_CALLS) return;
    if (this.#unanswered.length >= MAX_UNANSWERED) return;
    const now = this.#readClock();
    if (now < this.#restsUntil) {
      this.#timer = setTimeout(() => this.#askNext(), Math.ceil(between(now, this.#restsUntil) / 1000));
      return;
    }
    const next = this.#next(lists.last, lists.hang?.call ?? null);
    if (next === null) return;
    this.#asked.add(next.object.id);
    this.#calls += 1;
    void this.#ask(next.object);
  }

  /** Sandboxes first, unless containers cannot be listed; and what is running before what has ended. */
  #next({ sandboxes, containers }: Relist, hanging: ListCallName | null): ListedItem | null {
    const kinds = [sandboxes, containers];
    if (hanging === 'ListContainers') kinds.reverse();
    const all = kinds.flatMap(({ items }) => [...items.values()]);
    const present = new Set(all.map(({ object }) => object.id));
    for (const id of this.#asked) if (!present.has(id)) this.#asked.delete(id);
    if (this.#asked.size === present.size) {
      this.#isFirstRound = false;
      this.#asked.clear();
      for (const { object } of this.#unanswered) this.#asked.add(object.id);
    }
    const left = all.filter(({ object }) => !this.#asked.has(object.id));
    const isRunning = ({ state }: ListedItem) => state === 'running';
    return this.#crossCheck(all.filter(isRunning)) ?? left.find(isRunning) ?? left[0] ?? null;
  }

  /** After one that does not answer, another kind and another pod. */
  #crossCheck(running: readonly ListedItem[]): ListedItem | null {
    const unanswered = this.#unanswered;
    const last = unanswered.at(-1);
    if (last === undefined || last.othersSince > 0) return null;
    const isAsked = new Set(unanswered.map(({ object }) => object.id));
    return (
      running.find(
        ({ object }) =>
          object.isSandbox !== last.object.isSandbox &&
          object.podUid !== last.object.podUid &&
          !isAsked.has(object.id),
      ) ?? null
    );
  }

  async #ask(object: ContainerIdentity): Promise<void> {
    const call: StatusCall = new StatusCall(object, this.#readClock, () => this.#givenUp(call));
    this.#call = call;
    this.#open.add(call);
    const isTimed = await this.#isTimed(object, call.signal);
    const wasWaitedFor = !call.timedOut;
    call.end();
    this.#open.delete(call);
    if (this.#stopped) return;
    if (wasWaitedFor) {
      const isFast = isTimed && this.#isFirstRound;
      this.#restFor(
        REST_FACTOR * between(call.at, this.#readClock()),
        isFast ? MIN_REST_FIRST_ROUND : MIN_REST,
      );
    }
    if (isTimed && (wasWaitedFor || this.#carried.includes(call))) this.#count(call);
    if (isTimed && wasWaitedFor) this.#timed(call);
    this.#askNext();
  }

  /** The call goes on, but the search does not wait for it any longer. */
  #givenUp(call: StatusCall): void {
    this.#restFor(0, MIN_REST);
    this.#count(call);
    this.#timed(call);
    // Relists are quick again.
    if (this.#lists === null) call.cancel();
    else this.#askNext();
  }

  #restFor(wanted: number, least: Micros): void {
    const rest = Math.min(MAX_REST, Math.max(least, wanted));
    this.#restsUntil = shift(this.#readClock(), rest);
    this.#call = null;
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

  /** In this minute. */
  #count(call: StatusCall): void {
    this.#minute.asked += 1;
    if (!call.isSlow) return;
    this.#minute.slow += 1;
    if (call.took > (this.#slowest?.took ?? 0)) this.#slowest = call;
  }

  /** A status was answered, or given up. */
  #timed(call: StatusCall): void {
    if (!call.isSlow) for (const other of this.#unanswered) other.otherAnswered(call);
    this.#evidence?.timed(call);
    this.#events.timed(call.timedOut ? 'timed_out' : call.isSlow ? 'slow' : 'quick');
  }
}

function recordOf({ object, at, took, timedOut }: StatusCall, epochStart: Mono): MinuteStatuses['slowest'] {
  const { id, isSandbox } = object;
  return { containerId: id, isSandbox, at: since(epochStart, at), took: Math.round(took), timedOut };
}
