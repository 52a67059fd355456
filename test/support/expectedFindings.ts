/*
 * The findings that a run must have led to: what was clearly to be seen, by the relists that the runtime answered, with no gap
 * near it that the agent itself reports.
 */
import type { EventFact, TransitionFact, ViewFact } from '../../devtools/simulator/groundTruth.ts';
import { HEARTBEAT } from '../../src/agent/observe/stream/frames.ts';
import type { EventType } from '../../src/protocol/record.ts';
import { BLUR } from './completeness.ts';
import { keyOf, type RuntimeTruth, type Timed } from './groundTruth.ts';
import { LISTED_TWICE_MS, type Observability } from './observability.ts';
import { LATE_AFTER, MISSED_AFTER, type OracleConditions } from './oracleConditions.ts';
import type { CheckedKind, StoredEvidence } from './storedEvidence.ts';

/** A sandbox's DELETED may be announced up to ten seconds before the sandbox disappears. */
const LEAD = 11_000;
/** How long the turns of a busy reader's loop may take with which it reports a heartbeat: it reads a burst in one turn. */
const SENT = 1_000;
/** How long a busy machine may take to ask for the status of what a list showed: a longer stall of the agent is a gap. */
const ASKED = 2_500;
/** How long a finding that is due may take: a list that is answered later than 5 s, and a longer stall, are gaps. */
const JUDGED = 6_000;

export class ExpectedFindings {
  readonly #truth: RuntimeTruth;
  readonly #evidence: StoredEvidence;
  readonly #observability: Observability;
  readonly #conditions: OracleConditions;

  constructor(
    truth: RuntimeTruth,
    evidence: StoredEvidence,
    observability: Observability,
    conditions: OracleConditions,
  ) {
    this.#truth = truth;
    this.#evidence = evidence;
    this.#observability = observability;
    this.#conditions = conditions;
  }

  /** The names of the findings of one kind. */
  of(kind: CheckedKind): string[] {
    if (this.#conditions.blind && kind !== 'missed' && kind !== 'unobservable') return [];
    switch (kind) {
      case 'missed':
        return this.#truth.transitions
          .filter((each) => this.#isClearlyMissed(each))
          .map((each) => `missed ${keyOf(each)}`);
      case 'late':
        return this.#truth.transitions
          .filter((each) => this.#isClearlyLate(each))
          .map((each) => `late ${keyOf(each)}`);
      case 'out_of_order':
        return this.#clearDeliveries(
          (each) => this.#truth.isOvertaken(each) && !this.#isTooLate(each) && !this.#isStoredAsMissed(each),
        ).map(named(kind));
      case 'duplicate':
        return this.#clearDeliveries((each) =>
          this.#truth.earlierOf(each).some((one) => one.type === each.type),
        ).map(named(kind));
      case 'spurious':
        return this.#truth.deliveries.filter((each) => this.#isClearlySpurious(each)).map(named(kind));
      case 'unannounced':
        return this.#truth.transitions
          .filter((each) => this.#isClearlyUnannounced(each))
          .map((each) => `unannounced ${keyOf(each)}`);
      case 'short_life':
        // Only the agent knows between which two lists it fell.
        return [];
      case 'duplicate_container':
        return this.#truth
          .duplicatePairs(LISTED_TWICE_MS)
          .filter(({ from, to }) => this.#observability.isClear(from - LISTED_TWICE_MS, to))
          .map(({ name }) => name);
      case 'regression':
        return this.#truth.views
          .filter((each) => this.#isClearlyBack(each))
          .map(({ id }) => `regression ${id}`);
      case 'silent_stream':
        return this.#truth.deliveries.length === 0 ? ['silent_stream'] : [];
      case 'unobservable':
        return this.#truth.transitions
          .filter((each) => this.#isClearlyUnobservable(each))
          .map((each) => `unobservable ${keyOf(each)}`);
    }
  }

  /** From when on the stream must have been watched: a sandbox's DELETED may be announced long before. */
  #boundOf({ id, transition }: TransitionFact, from: number): number {
    if (transition !== 'deleted') return from;
    const created = this.#truth.when(id, 'CREATED');
    const lacking = created === null ? undefined : this.#truth.relistBefore(created);
    return Math.max(from - LEAD, lacking?.after ?? Number.NEGATIVE_INFINITY);
  }

  #isClearlyMissed(each: Timed<TransitionFact>): boolean {
    return this.#isClearlyLost(each) && !this.#mayBePartOfRemoval(each);
  }

  /** Its event is lost, and the stream was watched from the relist that lacks it until after the finding. */
  #isClearlyLost(each: Timed<TransitionFact>): boolean {
    const seen = this.#observability.relistsAround(each);
    if (seen === null || !this.#isLost(each) || this.#isExcused(each)) return false;
    const [from, to] = [this.#boundOf(each, seen.after), seen.to + MISSED_AFTER + JUDGED];
    const isOver = this.#conditions.hangs !== true || to < this.#truth.end;
    return (
      isOver &&
      !this.#mayBeRestored(each, seen.to) &&
      this.#observability.isWatched(from, to) &&
      this.#observability.isSinceFirstLists(seen.from, to) &&
      !this.#isVoidedByStep(each, from, to)
    );
  }

  /** CRI-O announces neither the creation nor the start of what it restores: only a status, or a CREATED, shows that it did not. */
  #mayBeRestored({ id, isSandbox, transition }: TransitionFact, shownAt: number): boolean {
    const silently = !isSandbox && (transition === 'created' || transition === 'started');
    if (this.#conditions.restoresSilently !== true || !silently) return false;
    return !this.#isAnnounced(id, ['CREATED']) && !this.#isAsked(id, shownAt);
  }

  /** Whether it existed for long enough after a list showed it that its status was read. */
  #isAsked(id: string, shownAt: number): boolean {
    return shownAt + ASKED < (this.#truth.when(id, 'DELETED') ?? Number.POSITIVE_INFINITY);
  }

  /** CRI-O may have stopped a sandbox, or removed a container, only to remove the sandbox. */
  #mayBePartOfRemoval({ isSandbox, transition }: TransitionFact): boolean {
    const silently = isSandbox ? transition === 'stopped' : transition === 'deleted';
    return this.#conditions.removesSilently === true && silently;
  }

  /** Nobody knows what ended it; or it ended while the runtime was down: one relist shows it running, the next one exited. */
  #isClearlyUnobservable(each: Timed<TransitionFact>): boolean {
    const { id, silent, transition } = each;
    if (this.#mayBePartOfRemoval(each) && this.#isClearlyLost(each)) return true;
    return (
      silent === 'down' &&
      transition === 'stopped' &&
      !this.#truth.isSuspect(id) &&
      this.#observability.relistsAround(each) !== null
    );
  }

  #isLost(each: Timed<TransitionFact>): boolean {
    const announced = this.#truth.events.filter(
      (one) => keyOf(each) === `${one.id} ${one.type}` && !one.spurious,
    );
    return announced.some(({ live }) => live) && announced.every(({ delivered }) => !delivered);
  }

  #isExcused(each: Timed<TransitionFact>): boolean {
    const { id, isSandbox, silent, transition } = each;
    return (
      silent !== null ||
      // CRI-O removes what failed to start by itself.
      (transition === 'deleted' && this.#mayBePartOfRemoval(each) && !this.#isShownUp(id)) ||
      this.#truth.isSuspect(id) ||
      (transition === 'stopped' && !this.#isOfSession(each)) ||
      (isSandbox && (transition === 'created' || transition === 'deleted') && !this.#isShownUp(id)) ||
      (transition === 'deleted' && isSandbox && this.#truth.when(id, 'STARTED') === null)
    );
  }

  /** Only the wall clock dates what no list has shown. */
  #isVoidedByStep({ transition }: TransitionFact, from: number, to: number): boolean {
    const byWallClock = transition === 'created' || transition === 'started';
    return byWallClock && this.#observability.isStepped(from - LISTED_TWICE_MS, to);
  }

  /** A container that ran before a session may also have ended before it: an event or a list of the session shows that it started since. */
  #isOfSession({ id, ms }: Timed<TransitionFact>): boolean {
    const opened = this.#truth.openings.findLast((at) => at < ms) ?? this.#truth.end;
    const started = this.#truth.when(id, 'STARTED') ?? 0;
    if (started <= opened + LISTED_TWICE_MS) return false;
    const before = this.#truth.relistBefore(started);
    const isListed = before !== undefined && before.from > opened + LISTED_TWICE_MS;
    return (
      this.#isAnnounced(id, ['CREATED', 'STARTED']) ||
      (isListed && this.#observability.isSinceFirstLists(before.from, started))
    );
  }

  /** A sandbox that nothing shows up may never have come up: nobody can date it, or say how it is removed. */
  #isShownUp(id: string): boolean {
    const started = this.#truth.when(id, 'STARTED') ?? Number.POSITIVE_INFINITY;
    const stopped = this.#truth.when(id, 'STOPPED') ?? Number.POSITIVE_INFINITY;
    const isListed = this.#truth.relists.some(({ from, to }) => from > started && to < stopped);
    return isListed || this.#isAnnounced(id, ['STARTED', 'STOPPED']);
  }

  #isAnnounced(id: string, types: readonly EventType[]): boolean {
    return this.#truth.deliveries.some((each) => each.id === id && types.includes(each.type));
  }

  #isTooLate({ id, type, ms, isSandbox }: Timed<EventFact>): boolean {
    const happened = this.#truth.when(id, type);
    const timed = !isSandbox && (type === 'STARTED' || type === 'STOPPED');
    return timed && happened !== null && ms - happened > LATE_AFTER / 2;
  }

  #isClearlyLate(each: Timed<TransitionFact>): boolean {
    const { id, ms, isSandbox, transition } = each;
    if (isSandbox || (transition !== 'started' && transition !== 'stopped') || this.#truth.isDoubtful(id))
      return false;
    const came = this.#truth.deliveries.filter((one) => keyOf(each) === `${one.id} ${one.type}`);
    const stored = this.#evidence.events.find((one) => keyOf(each) === `${one.id} ${one.type}`);
    const first = came[0];
    return (
      came.length === 1 &&
      first !== undefined &&
      stored !== undefined &&
      this.#wasReadBetween(ms + LATE_AFTER + HEARTBEAT / 1000 + BLUR, stored.received - SENT) &&
      this.#observability.isCovered(ms - LISTED_TWICE_MS, first.ms) &&
      !this.#observability.isStepped(ms - LISTED_TWICE_MS, first.ms + LISTED_TWICE_MS) &&
      !this.#truth.isShownAgain(ms)
    );
  }

  /**
   * On a busy machine a reader may have caused the delay itself. A heartbeat after the event was late says that it did not: a reader that
   * took another event later than that had one, and reported it with the next turns of its loop.
   */
  #wasReadBetween(from: number, to: number): boolean {
    return this.#evidence.events.some(({ received }) => received > from && received < to);
  }

  /** An event is reported by one kind only: one stored as late after missed needs no other finding. */
  #isStoredAsMissed({ id, type, ms }: Timed<EventFact>): boolean {
    const happened = this.#truth.when(id, type);
    if (happened === null || ms < happened + MISSED_AFTER - BLUR) return false;
    return this.#evidence.findings.some(
      (each) => each.kind === 'late' && each.cause === 'after_missed' && each.id === id && each.type === type,
    );
  }

  #clearDeliveries(condition: (delivery: Timed<EventFact>) => boolean): Timed<EventFact>[] {
    return this.#truth.deliveries.filter(
      (each) =>
        condition(each) &&
        !this.#truth.isDoubtful(each.id) &&
        this.#truth.events.every((one) => one.id !== each.id || !(one.spurious || one.replayed)) &&
        this.#observability.isWatched(
          (this.#truth.earlierOf(each)[0]?.ms ?? each.ms) - LISTED_TWICE_MS,
          each.ms + LISTED_TWICE_MS,
        ),
    );
  }

  #isClearlySpurious({ id, type, spurious, ms }: Timed<EventFact>): boolean {
    const happens = this.#truth.when(id, type);
    return (
      spurious &&
      (happens === null || happens > ms + LISTED_TWICE_MS) &&
      this.#observability.isClear(ms - LISTED_TWICE_MS, ms + LISTED_TWICE_MS)
    );
  }

  /** A start that failed, and was listed for long enough that its status was read. */
  #isClearlyUnannounced(each: Timed<TransitionFact>): boolean {
    const { id, ms, silent, transition, isSandbox } = each;
    const failed = this.#truth.when(id, 'STARTED') === null;
    if (silent !== 'profile' || isSandbox || transition !== 'stopped' || !failed) return false;
    const before = this.#truth.relistBefore(this.#truth.when(id, 'CREATED') ?? ms);
    const after = this.#truth.relistAfter(ms);
    if (before === undefined || after === undefined) return false;
    const until = after.to + ASKED + MISSED_AFTER + JUDGED;
    return (
      this.#isAsked(id, after.to) &&
      this.#observability.isWatched(before.from, until) &&
      this.#observability.isSinceFirstLists(before.from, until)
    );
  }

  /** A relist shows it ended, and a later one that it runs. */
  #isClearlyBack({ id, shown, ms }: Timed<ViewFact>): boolean {
    const stopped = this.#truth.when(id, 'STOPPED');
    if (shown !== 'running' || stopped === null) return false;
    const next = this.#truth.views.find((each) => each.id === id && each.ms > ms)?.ms;
    const until = next ?? this.#truth.when(id, 'DELETED') ?? this.#truth.end;
    const isShown = (from: number, to: number) =>
      this.#truth.relists.some((each) => each.from > from && each.to < to);
    return (
      isShown(stopped, ms) &&
      isShown(ms, until) &&
      this.#observability.isWatched(stopped - LISTED_TWICE_MS, until)
    );
  }
}

const named =
  (kind: CheckedKind) =>
  ({ id, type }: EventFact): string =>
    `${kind} ${id} ${type}`;
