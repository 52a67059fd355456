/*
 * A story: what happened to a simulated runtime, what the store says of it, and how the two agree.
 *
 * Of each kind of finding none may be wrong, and none overlooked that was clearly to be seen. Clearly: with a margin of
 * several lists on either side, and no gap that the agent itself has told of near it. All times are milliseconds of the
 * wall clock.
 */
import { EVENT_TYPES, type EventType } from '../../src/evidence/record.ts';
import type { EventFact, Shown, TransitionFact, TruthEntry } from '../../src/simulator/truth.ts';

/** The system's short times (support/system.ts), in milliseconds. */
const CONFIRM = 4_000;
const LATE_LIMIT = 1_000;
/** More than three relists: what lasts so long is in two lists at least. */
const SEEN = 1_800;
/** Lists that are further apart than this, on a busy machine, show too little to ask for anything. */
const RARE = 1_200;
/** What two processes take to agree on a moment. */
const BLUR = 30;

export type Kind =
  | 'missed'
  | 'late'
  | 'out_of_order'
  | 'duplicate'
  | 'spurious'
  | 'unannounced'
  | 'short_life'
  | 'duplicate_container'
  | 'regression'
  | 'silent_stream';

export interface Finding extends Record<string, unknown> {
  readonly kind: Kind | 'unobservable' | 'stale';
  readonly type: EventType | null;
  readonly cause: string;
  readonly id: string;
  readonly detected: number;
  readonly resolved: number | null;
  readonly proof: Readonly<Record<string, unknown>>;
}

export interface Stored extends Record<string, unknown> {
  readonly id: string;
  readonly type: EventType;
  readonly received: number;
}

export interface Gap {
  readonly [column: string]: unknown;
  readonly from: number;
  readonly to: number | null;
}

export interface Evidence {
  readonly findings: readonly Finding[];
  readonly events: readonly Stored[];
  readonly gaps: readonly Gap[];
}

export interface Circumstances {
  /** So many transitions come before the agent does. */
  readonly before?: number;
  /** Lists that take long, or never come: nothing can be clearly seen by them. */
  readonly blind?: boolean;
  /** The stream is cut: what was on its way is lost. */
  readonly cut?: boolean;
  /** A container that is removed may have gone with its sandbox, without a word. */
  readonly removedTogether?: boolean;
}

const STAGE_OF = { created: 'CREATED', started: 'STARTED', stopped: 'STOPPED', deleted: 'DELETED' } as const;

type At<T> = T & { readonly ms: number };

/** What happened, what was told, and when containers were listed. */
export class Story {
  readonly #evidence: Evidence;
  readonly #circumstances: Circumstances;
  readonly #transitions: readonly At<TransitionFact>[];
  readonly #events: readonly At<EventFact>[];
  readonly #views: readonly At<{ readonly id: string; readonly shown: Shown | null }>[];
  readonly #late: ReadonlySet<string | null>;
  readonly #end: number;
  /** When somebody subscribed first. */
  readonly #begun: number;
  /** When a subscriber came. */
  readonly #openings: readonly number[];
  /** Stretches with too few lists. */
  readonly #rare: readonly Gap[];

  constructor(
    entries: readonly TruthEntry[],
    evidence: Evidence,
    lists: readonly number[],
    circumstances: Circumstances,
  ) {
    this.#evidence = evidence;
    this.#circumstances = circumstances;
    const timed = entries.map((entry) => ({ ...entry, ms: entry.at / 1000 }));
    this.#transitions = timed.filter((entry) => entry.what === 'transition');
    this.#events = timed.filter((entry) => entry.what === 'event');
    this.#views = timed.filter((entry) => entry.what === 'view');
    const faults = timed.filter((entry) => entry.what === 'fault');
    this.#late = new Set(faults.filter(({ fault }) => fault === 'state_late').map(({ id }) => id));
    this.#end = timed.at(-1)?.ms ?? 0;
    this.#openings = timed.flatMap((entry) =>
      entry.what === 'subscriber' && entry.change === 'opened' ? entry.ms : [],
    );
    this.#begun = this.#openings[0] ?? this.#end;
    this.#rare = lists
      .map((to, i) => ({ from: lists[i - 1] ?? to, to }))
      .filter(({ from, to }) => to - from > RARE);
  }

  /** What is told and not so, and events that were stored and not delivered. */
  wrong(): string[] {
    const findings = this.#evidence.findings.filter((each) => !this.#isSo(each)).map(nameOf);
    const delivered = this.#deliveries.map(({ id, type }) => `${id} ${type}`).sort();
    const stored = this.#evidence.events.map(({ id, type }) => `${id} ${type}`).sort();
    const { cut = false, before = 0 } = this.#circumstances;
    const same = JSON.stringify(delivered) === JSON.stringify(stored);
    const known = new Set(delivered);
    const invented = stored.filter((name) => !known.has(name));
    const lost = cut || before > 0 || same ? [] : [`${delivered.length} delivered, ${stored.length} stored`];
    return [...findings, ...invented, ...lost];
  }

  overlooked(): string[] {
    const kinds: readonly Kind[] = ['missed', 'late', 'out_of_order', 'duplicate', 'spurious', 'unannounced'];
    const all: readonly Kind[] = [
      ...kinds,
      'short_life',
      'duplicate_container',
      'regression',
      'silent_stream',
    ];
    return all.flatMap((kind) => {
      const told = new Set(this.#evidence.findings.filter((each) => each.kind === kind).map(nameOf));
      return this.#due(kind).filter((name) => !told.has(name));
    });
  }

  /** What was clearly to be seen of a kind. */
  #due(kind: Kind): string[] {
    if (this.#circumstances.blind) return [];
    switch (kind) {
      case 'missed':
        return this.#transitions
          .filter((each) => this.#isClearlyMissed(each))
          .map((each) => `missed ${keyOf(each)}`);
      case 'late':
        return this.#transitions
          .filter((each) => this.#isClearlyLate(each))
          .map((each) => `late ${keyOf(each)}`);
      case 'out_of_order':
        return this.#clearDeliveries(
          (each) => this.#overtaken(each) && !this.#isTooLate(each) && !this.#isToldAsMissed(each),
        ).map(named(kind));
      case 'duplicate':
        return this.#clearDeliveries((each) => this.#earlier(each).some((one) => one.type === each.type)).map(
          named(kind),
        );
      case 'spurious':
        return this.#deliveries.filter((each) => this.#isClearlySpurious(each)).map(named(kind));
      case 'unannounced':
        return this.#transitions
          .filter((each) => this.#isClearlyUnannounced(each))
          .map((each) => `unannounced ${keyOf(each)}`);
      case 'short_life':
        // Which two lists came around it nobody but the agent knows.
        return [];
      case 'duplicate_container':
        return this.#pairs(SEEN)
          .filter(({ from, to }) => this.#isClear(from - SEEN, to))
          .map(({ name }) => name);
      case 'regression':
        return this.#views.filter((each) => this.#isClearlyBack(each)).map(({ id }) => `regression ${id}`);
      case 'silent_stream':
        return this.#deliveries.length === 0 ? ['silent_stream'] : [];
    }
  }

  get #deliveries(): readonly At<EventFact>[] {
    return this.#events.filter(({ delivered }) => delivered);
  }

  #isSo(told: Finding): boolean {
    const { kind, id, type } = told;
    const mine = this.#deliveries.filter((each) => each.id === id);
    switch (kind) {
      case 'missed':
        return this.#isMissed(told);
      case 'late':
        return told.cause === 'after_missed' ? this.#wasMissed(told) : this.#cameLate(told);
      case 'out_of_order':
        return mine.some((each) => each.type === type && this.#overtaken(each));
      case 'duplicate':
        return mine.filter((each) => each.type === type).length > 1;
      case 'spurious':
        return mine.some((each) => each.type === type && each.spurious) || this.#isDoubtful(id);
      case 'unannounced':
        return this.#transitions.some((each) => each.silent === 'profile' && keyOf(each) === `${id} ${type}`);
      case 'short_life':
        return this.#isDoubtful(id) || this.#isShort(told);
      case 'duplicate_container':
        return this.#isDoubtful(id) || this.#pairs(0).some(({ name }) => name === nameOf(told));
      case 'regression':
        return this.#views.some((each) => each.id === id && each.shown === 'running');
      case 'silent_stream':
        return this.#deliveries.length === 0;
      default:
        return true;
    }
  }

  /** It happened and was announced to us while we listened, and has not come before the time to confirm was over. */
  #isMissed({ id, type, detected, resolved }: Finding): boolean {
    const happened = this.#when(id, type);
    // A list that leaves out what is there misleads anybody; it is taken back.
    if (happened === null || happened > detected) return this.#isDoubtful(id) && resolved !== null;
    const announced = this.#events.filter((each) => each.id === id && each.type === type && !each.spurious);
    const came = announced.some((each) => each.delivered && each.ms < happened + CONFIRM - BLUR);
    return announced.some(({ live }) => live) && !came;
  }

  #wasMissed({ id, type }: Finding): boolean {
    return this.#evidence.findings.some(
      (each) => each.kind === 'missed' && each.id === id && each.type === type,
    );
  }

  #cameLate({ id, type }: Finding): boolean {
    const happened = this.#when(id, type);
    if (happened === null || (type !== 'STARTED' && type !== 'STOPPED')) return false;
    return this.#evidence.events.some(
      (each) => each.id === id && each.type === type && each.received - happened > LATE_LIMIT - BLUR,
    );
  }

  /** Lists or statuses showed something else of it than what was, at some time. */
  #isDoubtful(id: string): boolean {
    return this.#late.has(id) || this.#views.some((each) => each.id === id);
  }

  #isShort({ id, cause, proof }: Finding): boolean {
    const [from, to] = SHORT[cause] ?? ['CREATED', 'DELETED'];
    const [begun, ended] = [this.#when(id, from), this.#when(id, to)];
    if (begun === null || ended === null) return false;
    const lasted = ended - begun;
    return Number(proof['lifeMinMs']) <= lasted + BLUR && lasted <= Number(proof['lifeMaxMs']) + BLUR;
  }

  /** When a stage was reached; null where it never was. */
  #when(id: string, type: EventType | null): number | null {
    return this.#transitions.find((each) => keyOf(each) === `${id} ${type}`)?.ms ?? null;
  }

  /** Somebody listened and lists came often, and nothing that the agent itself calls a gap touches the stretch. */
  #isClear(from: number, to: number): boolean {
    const holes = [...this.#evidence.gaps, ...this.#rare];
    return (
      from > this.#begun && holes.every((hole) => from > (hole.to ?? this.#end) + SEEN || to < hole.from)
    );
  }

  /** Whether the id stayed as it was for a while before and after. */
  #isSteady({ id, ms }: At<TransitionFact>): boolean {
    return this.#transitions.every(
      (each) => each.id !== id || each.ms === ms || Math.abs(each.ms - ms) > SEEN,
    );
  }

  #isClearlyMissed(each: At<TransitionFact>): boolean {
    const { id, ms, isSandbox, silent, transition } = each;
    const announced = this.#events.filter((one) => keyOf(each) === `${one.id} ${one.type}` && !one.spurious);
    // A sandbox's DELETED may be announced long before; a removed container of a CRI-O may have gone with its sandbox.
    const lead = transition === 'deleted' ? 11_000 : 3_000;
    const crio = this.#circumstances.removedTogether === true && transition === 'deleted';
    return (
      silent === null &&
      !crio &&
      !this.#isDoubtful(id) &&
      announced.some(({ live }) => live) &&
      announced.every(({ delivered }) => !delivered) &&
      this.#isSteady(each) &&
      (transition !== 'stopped' || this.#isOfSession(each)) &&
      (transition !== 'deleted' || !isSandbox || this.#when(id, 'STARTED') !== null) &&
      this.#isClear(ms - lead, ms + CONFIRM + 5_000)
    );
  }

  /** What ran before a session may have ended before it too, for all that its first minute tells. */
  #isOfSession({ id, ms }: At<TransitionFact>): boolean {
    const opened = this.#openings.findLast((at) => at < ms) ?? this.#end;
    return (this.#when(id, 'STARTED') ?? 0) > opened + SEEN || ms > opened + 70_000;
  }

  #isTooLate({ id, type, ms, isSandbox }: At<EventFact>): boolean {
    const happened = this.#when(id, type);
    const timed = !isSandbox && (type === 'STARTED' || type === 'STOPPED');
    return timed && happened !== null && ms - happened > LATE_LIMIT / 2;
  }

  #isClearlyLate(each: At<TransitionFact>): boolean {
    const { id, ms, isSandbox, transition } = each;
    if (isSandbox || (transition !== 'started' && transition !== 'stopped') || this.#isDoubtful(id))
      return false;
    const came = this.#deliveries.filter((one) => keyOf(each) === `${one.id} ${one.type}`);
    const first = came[0];
    return (
      came.length === 1 &&
      first !== undefined &&
      first.ms - ms > LATE_LIMIT + 300 &&
      this.#isClear(ms - SEEN, first.ms + 1_000)
    );
  }

  /** One kind tells an event: where it came after its verdict, and is told to, nothing else is due. */
  #isToldAsMissed({ id, type, ms }: At<EventFact>): boolean {
    const happened = this.#when(id, type);
    if (happened === null || ms < happened + CONFIRM - BLUR) return false;
    return this.#evidence.findings.some(
      (each) => each.kind === 'late' && each.cause === 'after_missed' && each.id === id && each.type === type,
    );
  }

  /** Deliveries before this one of the same id. */
  #earlier(delivery: At<EventFact>): readonly At<EventFact>[] {
    return this.#deliveries
      .slice(0, this.#deliveries.indexOf(delivery))
      .filter(({ id }) => id === delivery.id);
  }

  #overtaken(delivery: At<EventFact>): boolean {
    return this.#earlier(delivery).some(
      ({ type }) => EVENT_TYPES.indexOf(type) > EVENT_TYPES.indexOf(delivery.type),
    );
  }

  #clearDeliveries(condition: (delivery: At<EventFact>) => boolean): At<EventFact>[] {
    return this.#deliveries.filter(
      (each) =>
        condition(each) &&
        !this.#isDoubtful(each.id) &&
        this.#events.every((one) => one.id !== each.id || !(one.spurious || one.replayed)) &&
        this.#isClear((this.#earlier(each)[0]?.ms ?? each.ms) - SEEN, each.ms + SEEN),
    );
  }

  #isClearlySpurious({ id, type, spurious, ms }: At<EventFact>): boolean {
    const happens = this.#when(id, type);
    return spurious && (happens === null || happens > ms + SEEN) && this.#isClear(ms - SEEN, ms + SEEN);
  }

  #isClearlyUnannounced(each: At<TransitionFact>): boolean {
    const { id, ms, silent, transition, isSandbox } = each;
    if (silent !== 'profile' || isSandbox || transition !== 'stopped') return false;
    const failed = this.#when(id, 'STARTED') === null;
    return failed && this.#isSteadyAfter(id, ms) && this.#isClear(ms - 3_000, ms + CONFIRM + 5_000);
  }

  #isSteadyAfter(id: string, ms: number): boolean {
    return this.#transitions.every((each) => each.id !== id || each.ms <= ms || each.ms > ms + SEEN);
  }

  #isClearlyBack({ id, shown, ms }: At<{ readonly id: string; readonly shown: Shown | null }>): boolean {
    const stopped = this.#when(id, 'STOPPED');
    return (
      shown === 'running' && stopped !== null && stopped < ms - SEEN && this.#isClear(ms - SEEN, ms + SEEN)
    );
  }

  /** Two of one pod and name that ran at the same time for longer than this. */
  #pairs(least: number): { readonly name: string; readonly from: number; readonly to: number }[] {
    const running = this.#transitions.filter(({ transition }) => transition === 'started');
    return running.flatMap((one) =>
      running.flatMap((other) => {
        const same =
          one !== other &&
          one.pod.uid === other.pod.uid &&
          one.container === other.container &&
          one.isSandbox === other.isSandbox;
        const from = Math.max(one.ms, other.ms);
        const to = Math.min(...[one, other].map(({ id }) => this.#when(id, 'STOPPED') ?? this.#end));
        const [first, second] = [one.id, other.id].sort();
        return same && to - from > least
          ? [{ name: `duplicate_container ${first} and ${second}`, from, to }]
          : [];
      }),
    );
  }
}

/** Between which stages each cause of a short life lies. */
const SHORT: Readonly<Record<string, readonly [EventType, EventType]>> = {
  life: ['CREATED', 'DELETED'],
  start: ['STARTED', 'STOPPED'],
  exit: ['STOPPED', 'DELETED'],
};

const keyOf = ({ id, transition }: TransitionFact): string => `${id} ${STAGE_OF[transition]}`;

const named =
  (kind: Kind) =>
  ({ id, type }: EventFact): string =>
    `${kind} ${id} ${type}`;

function nameOf({ kind, id, type, proof }: Finding): string {
  if (kind === 'duplicate_container') return `${kind} ${[id, String(proof['other'])].sort().join(' and ')}`;
  return [kind, id, type].filter(Boolean).join(' ');
}
