/*
 * A story: what happened to a simulated runtime, what the store says of it, and how the two agree.
 *
 * Of each kind of finding none may be wrong, and none overlooked that was clearly to be seen. Clearly: by the relists that the
 * runtime answered, with no gap near it that the agent itself has told of. Where a rule asks for relists that come often, a busy
 * machine may leave nothing to ask for. All times are milliseconds of the machine's wall clock.
 */

import type {
  EventFact,
  LifecycleTransition,
  TransitionFact,
  ViewFact,
} from '../../devtools/simulator/groundTruth.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { alteredChanges, BLUR, lostDeliveries, untoldBreaks, untoldStops } from './completeness.ts';
import { type At, type Happened, keyOf, type Stretch } from './groundTruth.ts';
import type { SeenRelist } from './relists.ts';
import type { Evidence, Finding, Gap, Kind } from './storedEvidence.ts';

/** The system's short times (support/system.ts), in milliseconds. */
const CONFIRM = 4_000;
const LATE_LIMIT = 1_000;
const GRACE = 3_000;
/** How long before a sandbox disappears its DELETED may be announced, and a little more. */
const LEAD = 11_000;
/** More than three relists: what lasts so long is in two lists at least. */
const SEEN = 1_800;
/** A busy machine may take so long to ask about what a list has shown. */
const ASKED = 1_500;
/** Lists that are further apart than this, on a busy machine, show too little to ask for anything. */
const RARE = 1_200;
/** Between which stages a relist shows that the next one is still to come, and that it has come. */
const SHOWN_BY: Readonly<Record<LifecycleTransition, readonly [EventType | null, EventType | null]>> = {
  created: [null, 'DELETED'],
  started: [null, 'STOPPED'],
  stopped: ['STARTED', 'DELETED'],
  deleted: ['CREATED', null],
};

export interface Circumstances {
  /** So many transitions come before the agent does. */
  readonly before?: number;
  /** Lists take long, fail or never come: what they show is judged by each of them, and nothing else. */
  readonly blind?: boolean;
  /** Lists never come again: not everything gets its verdict before the end. */
  readonly hangs?: boolean;
  /** How long the agent was told to wait for an event before it asks, in milliseconds. Default 3000. */
  readonly graceMs?: number;
  /** A container that is removed may have gone with its sandbox, without a word. */
  readonly removedTogether?: boolean;
}

/** What happened, and what was told of it. */
export class Story {
  readonly #happened: Happened;
  readonly #evidence: Evidence;
  readonly #circumstances: Circumstances;
  /** Stretches with too few lists. */
  readonly #rare: readonly Stretch[];

  constructor(happened: Happened, evidence: Evidence, circumstances: Circumstances) {
    this.#happened = happened;
    this.#evidence = evidence;
    this.#circumstances = circumstances;
    const { relists } = happened;
    this.#rare = relists
      .map(({ from: to }, i) => ({ from: relists[i - 1]?.from ?? to, to }))
      .filter(({ from, to }) => to - from > RARE);
  }

  /** What is told and not so. */
  wrong(): string[] {
    return [
      ...this.#evidence.findings.filter((each) => !this.#isSo(each)).map(nameOf),
      ...lostDeliveries(this.#happened, this.#evidence),
      ...alteredChanges(this.#happened, this.#evidence.changes),
      ...untoldBreaks(this.#happened, this.#evidence.sessions),
      ...untoldStops(this.#happened, this.#evidence.gaps),
    ];
  }

  overlooked(): string[] {
    const kinds: readonly Kind[] = ['missed', 'late', 'out_of_order', 'duplicate', 'spurious', 'unannounced'];
    const all: readonly Kind[] = [
      ...kinds,
      'short_life',
      'duplicate_container',
      'regression',
      'silent_stream',
      'unobservable',
    ];
    return all.flatMap((kind) => {
      const told = new Set(this.#evidence.findings.filter((each) => each.kind === kind).map(nameOf));
      return this.#due(kind).filter((name) => !told.has(name));
    });
  }

  /** What was clearly to be seen of a kind. */
  #due(kind: Kind): string[] {
    if (this.#circumstances.blind && kind !== 'missed' && kind !== 'unobservable') return [];
    switch (kind) {
      case 'missed':
        return this.#happened.transitions
          .filter((each) => this.#isClearlyMissed(each))
          .map((each) => `missed ${keyOf(each)}`);
      case 'late':
        return this.#happened.transitions
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
        return this.#happened.deliveries.filter((each) => this.#isClearlySpurious(each)).map(named(kind));
      case 'unannounced':
        return this.#happened.transitions
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
        return this.#happened.views
          .filter((each) => this.#isClearlyBack(each))
          .map(({ id }) => `regression ${id}`);
      case 'silent_stream':
        return this.#happened.deliveries.length === 0 ? ['silent_stream'] : [];
      case 'unobservable':
        return this.#happened.transitions
          .filter((each) => this.#isClearlyUnobservable(each))
          .map((each) => `unobservable ${keyOf(each)}`);
    }
  }

  #isSo(told: Finding): boolean {
    const { kind, id, type, detected } = told;
    const mine = this.#happened.deliveries.filter((each) => each.id === id);
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
        return mine.some((each) => each.type === type && each.spurious) || this.#happened.isDoubtful(id);
      case 'unannounced':
        return this.#happened.transitions.some(
          (each) => each.silent === 'profile' && keyOf(each) === `${id} ${type}`,
        );
      case 'short_life':
        return this.#happened.isDoubtful(id) || this.#isShort(told);
      case 'duplicate_container':
        return this.#happened.isDoubtful(id) || this.#pairs(0).some(({ name }) => name === nameOf(told));
      case 'regression':
        return this.#happened.views.some((each) => each.id === id && each.shown === 'running');
      case 'silent_stream':
        return this.#happened.deliveries.length === 0;
      case 'stale':
        return this.#happened.isDoubtful(id) || this.#cameStale(told);
      case 'unobservable':
        // Where the stream is down it is told by the first list that shows it.
        return this.#isSuspect(id) || (this.#happened.when(id, type) ?? Infinity) <= detected + BLUR;
    }
  }

  /** What the runtime said of it was not always so. */
  #isSuspect(id: string): boolean {
    return (
      this.#happened.isDoubtful(id) || this.#happened.events.some((each) => each.id === id && each.spurious)
    );
  }

  /**
   * It happened and was announced to us while we listened, and has not come before the time to confirm was over; and all that
   * time we listened, by our own word.
   */
  #isMissed({ id, type, detected, resolved }: Finding): boolean {
    const happened = this.#happened.when(id, type);
    // A list that leaves out what is there misleads anybody; it is taken back.
    if (happened === null || happened > detected) return this.#happened.isDoubtful(id) && resolved !== null;
    const announced = this.#happened.events.filter(
      (each) => each.id === id && each.type === type && !each.spurious,
    );
    const came = announced.some((each) => each.delivered && each.ms < happened + CONFIRM - BLUR);
    const listened = this.#happened.isDoubtful(id) || this.#isHeard(happened, happened + CONFIRM - BLUR);
    return announced.some(({ live }) => live) && !came && listened;
  }

  #wasMissed({ id, type }: Finding): boolean {
    return this.#evidence.findings.some(
      (each) => each.kind === 'missed' && each.id === id && each.type === type,
    );
  }

  /** What came late only because the reader stood still is not late. */
  #cameLate({ id, type }: Finding): boolean {
    const happened = this.#happened.when(id, type);
    if (happened === null || (type !== 'STARTED' && type !== 'STOPPED')) return false;
    return this.#waits(id, type, happened).some((ms) => ms > LATE_LIMIT - BLUR);
  }

  /** It was received more than the grace after something that comes later in the same life. */
  #cameStale({ id, type }: Finding): boolean {
    const { graceMs = GRACE } = this.#circumstances;
    const later = EVENT_TYPES.slice(type === null ? EVENT_TYPES.length : EVENT_TYPES.indexOf(type) + 1);
    const passed = later.flatMap((each) => this.#happened.when(id, each) ?? []);
    return this.#waits(id, type, Math.min(...passed)).some((ms) => ms > graceMs - BLUR);
  }

  /** How long after a moment the events of a type were received, less the time in which nobody could. */
  #waits(id: string, type: EventType | null, since: number): number[] {
    return this.#evidence.events
      .filter((each) => each.id === id && each.type === type)
      .map(({ received }) => received - since - this.#happened.readerStoodStill(since, received));
  }

  #isShort({ id, cause, proof }: Finding): boolean {
    const [from, to] = SHORT[cause] ?? ['CREATED', 'DELETED'];
    const [begun, ended] = [this.#happened.when(id, from), this.#happened.when(id, to)];
    if (begun === null || ended === null) return false;
    const lasted = ended - begun;
    return Number(proof['lifeMinMs']) <= lasted + BLUR && lasted <= Number(proof['lifeMaxMs']) + BLUR;
  }

  /** Somebody listened and lists came often, and no gap touches the stretch, nor a step of the wall clock. */
  #isClear(from: number, to: number): boolean {
    const steps = this.#happened.steps.map(({ at }) => ({ from: at, to: at }));
    const holes = [...this.#evidence.gaps, ...this.#rare, ...steps];
    return from > this.#happened.begun && this.#isFree(holes, from, to);
  }

  /** Somebody listened, and nothing that the agent itself calls a gap of the stream touches the stretch. */
  #isWatched(from: number, to: number): boolean {
    return from > this.#happened.begun && this.#isFree(this.#streamGaps, from, to);
  }

  /** Watched, and a relist has said since the last gap where everything stood: there somebody can be accused. */
  #isCovered(from: number, to: number): boolean {
    const gone = this.#streamGaps.map((gap) => gap.to ?? this.#happened.end).filter((end) => end < to);
    const since = Math.max(this.#happened.begun, ...gone) + BLUR;
    const said = this.#happened.relists.some((each) => each.from > since && each.to + SEEN < to);
    return said && this.#isWatched(from, to);
  }

  #isStepped(from: number, to: number): boolean {
    return this.#happened.steps.some(({ at }) => at > from && at < to);
  }

  /** The same, to the moment. */
  #isHeard(from: number, to: number): boolean {
    return this.#streamGaps.every(
      (gap) => from > (gap.to ?? this.#happened.end) - BLUR || to < gap.from + BLUR,
    );
  }

  #isFree(holes: readonly Stretch[], from: number, to: number): boolean {
    return holes.every((hole) => from > (hole.to ?? this.#happened.end) + SEEN || to < hole.from);
  }

  get #streamGaps(): readonly Gap[] {
    return this.#evidence.gaps.filter(({ scope }) => scope === 'stream');
  }

  /** The relists around a transition, where the one before shows that it was to come and the one after that it has come. */
  #seenAround({ id, ms, transition }: At<TransitionFact>): SeenRelist | null {
    const before = this.#happened.relistBefore(ms);
    const after = this.#happened.relistAfter(ms);
    if (before === undefined || after === undefined) return null;
    const [shown, gone] = SHOWN_BY[transition];
    const since = shown === null ? Number.NEGATIVE_INFINITY : this.#happened.when(id, shown);
    const until = gone === null ? null : this.#happened.when(id, gone);
    const isSeen = since !== null && since < before.from && after.to < (until ?? Number.POSITIVE_INFINITY);
    return isSeen ? { from: before.from, to: after.to } : null;
  }

  /** Since when the stream must have been watched for an accusation: a sandbox's DELETED may be announced long before. */
  #boundOf({ id, transition }: TransitionFact, from: number): number {
    if (transition !== 'deleted') return from;
    const created = this.#happened.when(id, 'CREATED');
    const lacking = created === null ? undefined : this.#happened.relistBefore(created);
    return Math.max(from - LEAD, lacking?.from ?? Number.NEGATIVE_INFINITY);
  }

  /** Its event is lost, and everything from the relist that lacks it until after the verdict was watched. */
  #isClearlyMissed(each: At<TransitionFact>): boolean {
    const seen = this.#seenAround(each);
    if (seen === null || !this.#isLost(each) || this.#isExcused(each)) return false;
    const [from, to] = [this.#boundOf(each, seen.from), seen.to + CONFIRM + 5_000];
    const isOver = this.#circumstances.hangs !== true || to < this.#happened.end;
    return isOver && this.#isWatched(from, to) && !this.#isVoidedByStep(each, from, to);
  }

  /** It ended while the runtime was down: one relist shows it running, the next that it has ended. */
  #isClearlyUnobservable(each: At<TransitionFact>): boolean {
    const { id, silent, transition } = each;
    return (
      silent === 'down' && transition === 'stopped' && !this.#isSuspect(id) && this.#seenAround(each) !== null
    );
  }

  #isLost(each: At<TransitionFact>): boolean {
    const announced = this.#happened.events.filter(
      (one) => keyOf(each) === `${one.id} ${one.type}` && !one.spurious,
    );
    return announced.some(({ live }) => live) && announced.every(({ delivered }) => !delivered);
  }

  #isExcused(each: At<TransitionFact>): boolean {
    const { id, isSandbox, silent, transition } = each;
    // A removed container of a CRI-O may have gone with its sandbox.
    const crio = this.#circumstances.removedTogether === true && transition === 'deleted';
    return (
      silent !== null ||
      crio ||
      this.#isSuspect(id) ||
      (transition === 'stopped' && !this.#isOfSession(each)) ||
      (transition === 'deleted' && isSandbox && this.#happened.when(id, 'STARTED') === null)
    );
  }

  /** Since when an id that no list has shown was there only the wall clock tells. */
  #isVoidedByStep({ transition }: TransitionFact, from: number, to: number): boolean {
    const byWallClock = transition === 'created' || transition === 'started';
    return byWallClock && this.#isStepped(from - SEEN, to);
  }

  /** What ran before a session may have ended before it too, for all that its first minutes tell. */
  #isOfSession({ id, ms }: At<TransitionFact>): boolean {
    const opened = this.#happened.openings.findLast((at) => at < ms) ?? this.#happened.end;
    return (this.#happened.when(id, 'STARTED') ?? 0) > opened + SEEN;
  }

  #isTooLate({ id, type, ms, isSandbox }: At<EventFact>): boolean {
    const happened = this.#happened.when(id, type);
    const timed = !isSandbox && (type === 'STARTED' || type === 'STOPPED');
    return timed && happened !== null && ms - happened > LATE_LIMIT / 2;
  }

  #isClearlyLate(each: At<TransitionFact>): boolean {
    const { id, ms, isSandbox, transition } = each;
    if (isSandbox || (transition !== 'started' && transition !== 'stopped') || this.#happened.isDoubtful(id))
      return false;
    const came = this.#happened.deliveries.filter((one) => keyOf(each) === `${one.id} ${one.type}`);
    const first = came[0];
    return (
      came.length === 1 &&
      first !== undefined &&
      first.ms - ms > LATE_LIMIT + 300 &&
      this.#isCovered(ms - SEEN, first.ms) &&
      !this.#isStepped(ms - SEEN, first.ms + SEEN) &&
      !this.#happened.isShownAgain(ms)
    );
  }

  /** One kind tells an event: where it came after its verdict, and is told to, nothing else is due. */
  #isToldAsMissed({ id, type, ms }: At<EventFact>): boolean {
    const happened = this.#happened.when(id, type);
    if (happened === null || ms < happened + CONFIRM - BLUR) return false;
    return this.#evidence.findings.some(
      (each) => each.kind === 'late' && each.cause === 'after_missed' && each.id === id && each.type === type,
    );
  }

  /** Deliveries before this one of the same id. */
  #earlier(delivery: At<EventFact>): readonly At<EventFact>[] {
    return this.#happened.deliveries
      .slice(0, this.#happened.deliveries.indexOf(delivery))
      .filter(({ id }) => id === delivery.id);
  }

  #overtaken(delivery: At<EventFact>): boolean {
    return this.#earlier(delivery).some(
      ({ type }) => EVENT_TYPES.indexOf(type) > EVENT_TYPES.indexOf(delivery.type),
    );
  }

  #clearDeliveries(condition: (delivery: At<EventFact>) => boolean): At<EventFact>[] {
    return this.#happened.deliveries.filter(
      (each) =>
        condition(each) &&
        !this.#happened.isDoubtful(each.id) &&
        this.#happened.events.every((one) => one.id !== each.id || !(one.spurious || one.replayed)) &&
        this.#isWatched((this.#earlier(each)[0]?.ms ?? each.ms) - SEEN, each.ms + SEEN),
    );
  }

  #isClearlySpurious({ id, type, spurious, ms }: At<EventFact>): boolean {
    const happens = this.#happened.when(id, type);
    return spurious && (happens === null || happens > ms + SEEN) && this.#isClear(ms - SEEN, ms + SEEN);
  }

  /** A start that failed, and was listed for long enough to be asked about. */
  #isClearlyUnannounced(each: At<TransitionFact>): boolean {
    const { id, ms, silent, transition, isSandbox } = each;
    const failed = this.#happened.when(id, 'STARTED') === null;
    if (silent !== 'profile' || isSandbox || transition !== 'stopped' || !failed) return false;
    const before = this.#happened.relistBefore(this.#happened.when(id, 'CREATED') ?? ms);
    const after = this.#happened.relistAfter(ms);
    if (before === undefined || after === undefined) return false;
    const isAsked = after.to + ASKED < (this.#happened.when(id, 'DELETED') ?? Number.POSITIVE_INFINITY);
    return isAsked && this.#isWatched(before.from, after.to + ASKED + CONFIRM + 5_000);
  }

  /** A relist shows it ended, and a later one that it runs. */
  #isClearlyBack({ id, shown, ms }: At<ViewFact>): boolean {
    const stopped = this.#happened.when(id, 'STOPPED');
    if (shown !== 'running' || stopped === null) return false;
    const next = this.#happened.views.find((each) => each.id === id && each.ms > ms)?.ms;
    const until = next ?? this.#happened.when(id, 'DELETED') ?? this.#happened.end;
    const isShown = (from: number, to: number) =>
      this.#happened.relists.some((each) => each.from > from && each.to < to);
    return isShown(stopped, ms) && isShown(ms, until) && this.#isWatched(stopped - SEEN, until);
  }

  /** Two of one pod and name that ran at the same time for longer than this. */
  #pairs(least: number): { readonly name: string; readonly from: number; readonly to: number }[] {
    const running = this.#happened.transitions.filter(({ transition }) => transition === 'started');
    return running.flatMap((one) =>
      running.flatMap((other) => {
        const same =
          one !== other &&
          one.pod.uid === other.pod.uid &&
          one.container === other.container &&
          one.isSandbox === other.isSandbox;
        const from = Math.max(one.ms, other.ms);
        const to = Math.min(
          ...[one, other].map(({ id }) => this.#happened.when(id, 'STOPPED') ?? this.#happened.end),
        );
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

const named =
  (kind: Kind) =>
  ({ id, type }: EventFact): string =>
    `${kind} ${id} ${type}`;

function nameOf({ kind, id, type, proof }: Finding): string {
  if (kind === 'duplicate_container') return `${kind} ${[id, String(proof['other'])].sort().join(' and ')}`;
  return [kind, id, type].filter(Boolean).join(' ');
}
