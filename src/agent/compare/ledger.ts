/*
 * The ledger: what is due of every id that is followed, and what became of that.
 *
 *   proven ──► expected ── grace ──► overdue (told, the exact times are asked for) ── confirm ──► missed, or unobservable
 *                 └── its event, any time in the session ──► announced
 *
 * `missed` is an accusation and needs all of: the same session still, watched without a hole from the start of the window
 * until now, the reader drained past the deadline, and the exact time, where it is known, inside that stretch too.
 * Everything else that did not come is `unobservable`.
 */

import { TokenBucket } from '../../platform/tokenBucket.ts';
import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { ExactTimes, Relist } from '../../protocol/observation.ts';
import { type ContainerIdentity, EVENT_TYPES, type EventType } from '../../protocol/record.ts';
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { ABSENT, type Coverage, covers, DOWN, isCovered, type OpenSession, openSession } from './coverage.ts';
import type { Outbox } from './emitter.ts';
import { type EventVerdict, judgeEvent } from './eventClassifier.ts';
import { isOpen } from './eventConfirmation.ts';
import { overdueRecord, plainFinding, since, stageFinding } from './findings.ts';
import { Moments } from './monotonicTimes.ts';
import {
  type Cause,
  CREATED,
  DELETED,
  type Expectation,
  type Life,
  type Refutation,
  STAGES,
  STARTED,
  STOPPED,
  type Stage,
  type Standing,
} from './trackedContainer.ts';
import { Lives } from './trackedContainers.ts';
import { causeOf, exactTime, excuseOf, hadHappened } from './unobservableReason.ts';

/** So many transitions without a single event make a stream silent. */
const SILENT_AFTER = 10;
/** A verdict waits this long for a list that confirms the event which it rests on. */
const PATIENCE: Micros = millis(5 * 60_000);
/** Limits overdue reports: a runtime that stopped announcing anything must not double what is written. */
const OVERDUE_LIMIT = { capacity: 20, interval: millis(1000) };

export interface ComparisonOptions {
  readonly epochStart: Mono;
  readonly overdueAfter: Micros;
  readonly missedAfter: Micros;
  /** How long after its true time an event may be received without being late. */
  readonly lateAfter: Micros;
  readonly profile: PlegProfile;
  /** A fresh random UUID at every call. */
  readonly mintId: () => string;
}

/** Counted since the start, in transitions; `covered` in microseconds. */
export interface ComparisonCounters {
  expected: number;
  matched: number;
  missed: number;
  unobservable: number;
  covered: number;
  /** Ids that were not followed because too many were. */
  untracked: number;
  /** Starts and ends that were overdue and were not told to be, because too many were. */
  overdueSuppressed: number;
}

/** A lower bound for the moment at which a stage was reached; null where none is known. */
export interface Bound {
  readonly from: Mono | null;
  readonly byWallClock: boolean;
}

/** One proof that a stage was reached; `by` is the stage whose event is the proof, null for a list or an exact time. */
export interface Proof extends Bound {
  readonly by: Stage | null;
  readonly to: Mono;
  readonly cause: Cause;
  readonly evidence: string;
}

export class Ledger {
  readonly #counters = { expected: 0, matched: 0, missed: 0, unobservable: 0, covered: 0 };
  readonly lives: Lives;
  coverage: Coverage = ABSENT;
  profile: PlegProfile;
  readonly #options: ComparisonOptions;
  readonly #outbox: Outbox;
  /** Lives with at least one open expectation, so that a tick costs nothing on a quiet node. */
  readonly #waiting = new Set<Life>();
  readonly #moments: Moments;
  readonly #overdue = new TokenBucket(OVERDUE_LIMIT);
  #lastTick: Mono;

  constructor(options: ComparisonOptions, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
    this.lives = new Lives(outbox);
    this.profile = options.profile;
    this.#moments = new Moments(options.epochStart);
    this.#lastTick = options.epochStart;
  }

  get counters(): ComparisonCounters {
    return { ...this.#counters, untracked: this.lives.untracked, overdueSuppressed: this.#overdue.denied };
  }

  /** Stages whose event has not come and that have no verdict yet. */
  get pending(): number {
    let count = 0;
    this.#eachOpen(() => {
      count += 1;
    });
    return count;
  }

  // Sessions.

  unsubscribed(state: 'down' | 'absent'): void {
    if (this.coverage.is === 'open') {
      this.#eachOpen((life, stage, expectation) => this.#giveUp(life, stage, expectation, 'stream_gap'));
    }
    this.coverage = state === 'down' ? DOWN : ABSENT;
  }

  subscribed(session: number, at: Mono, wallNs: bigint): void {
    this.unsubscribed('down');
    this.coverage = openSession(session, at, wallNs);
    for (const life of this.lives) waiveUpTo(life, life.reached);
  }

  streamGap(until: Mono, why: string): void {
    if (this.coverage.is !== 'open') return;
    // An expectation is about everything from its window until now, so any hole after its start touches it.
    this.#eachOpen((life, stage, expectation) => {
      if (expectation.from === null || until >= expectation.from) {
        this.#giveUp(life, stage, expectation, why);
      }
    });
    if (until > this.coverage.since) this.coverage.since = until;
  }

  // Lives.

  follow(object: ContainerIdentity, at: Mono): Life | undefined {
    const followed = this.lives.follow(object, at);
    if (followed === undefined) return undefined;
    for (const stage of followed.early) this.announce(followed.life, stage, at);
    return followed.life;
  }

  /** A relist has been compared. */
  relisted({ sandboxes, containers }: Relist): void {
    this.lives.relisted(containers.end);
    const { coverage } = this;
    if (coverage.is === 'open' && coverage.armed !== null) {
      const first = Math.min(sandboxes.start, containers.start);
      if (first > coverage.armed) coverage.baseline = true;
    }
  }

  /** An event came of an id that is not followed: it may be shown yet by a list, and then nothing is due that came. */
  unplaced(id: string, stage: Stage, at: Mono): void {
    if (!this.lives.keepUnplaced(id, stage, at)) this.streamGap(at, 'too_many_ids');
  }

  /** An event of this id came that nobody understands: it may have been any that is due, now or later. */
  taint(life: Life): void {
    life.tainted = true;
    for (const stage of STAGES) {
      const standing = life.standings[stage];
      if (standing.is === 'expected') this.#giveUp(life, stage, standing.expectation, 'unknown_event_type');
    }
  }

  /** Takes in exact times. */
  learn(life: Life, times: ExactTimes): void {
    this.#moments.learn(life, times, this.#outbox.now);
    if (!life.listed) this.#boundByCreation(life);
  }

  /**
   * Of events that came out of order the first may have proven a stage before another said when it was created. What lists
   * prove they bound themselves, or leave unbounded on purpose.
   */
  #boundByCreation(life: Life): void {
    const created = this.lowerBound(life, CREATED);
    for (const standing of life.standings) {
      if (standing.is === 'expected' && standing.expectation.by !== null) bind(standing.expectation, created);
    }
  }

  /**
   * Since when an id can have reached a stage. Where no list ever showed the id, the list that lacked it is no bound: it
   * may have come and gone before. Its own `created_at` is one.
   */
  lowerBound(life: Life, stage: Stage): Bound {
    if (life.listed) return { from: life.floors[stage], byWallClock: false };
    return { from: this.#moments.createdBound(life, this.#outbox.now), byWallClock: true };
  }

  /** Whether a proof of the stage would say anything new: most of what a list shows was known before. */
  isProvable(life: Life, stage: Stage): boolean {
    const { is } = life.standings[stage];
    return stage > life.reached || is === 'none' || is === 'expected';
  }

  /** A stage was reached: from now on its event is due, unless it came, was waived, or is never sent. */
  prove(life: Life, stage: Stage, proof: Proof): void {
    if (stage > life.reached) life.reached = stage;
    const standing = life.standings[stage];
    if (standing.is === 'expected') renew(standing.expectation, proof);
    if (standing.is !== 'none') return;
    const coverage = this.coverage;
    if (coverage.is === 'absent' || !this.#announces(life, stage)) {
      life.standings[stage] = { is: 'waived' };
      if (proof.from !== null && covers(coverage, proof.from)) this.#neverSent(life, stage, proof);
      return;
    }
    const expectation: Expectation = {
      ...proof,
      coverable: isCovered(coverage) && !life.tainted,
      asked: false,
      finding: null,
    };
    this.#counters.expected += 1;
    life.standings[stage] = { is: 'expected', expectation };
    if (coverage.is === 'down') {
      this.#giveUp(life, stage, expectation, 'stream_down');
      return;
    }
    this.#waiting.add(life);
  }

  /** What a list had shown turned out not to be so: what was said of the stage is taken back, and may be due again. */
  retract(life: Life, stage: Stage, why: string): void {
    const standing = life.standings[stage];
    if (standing.is === 'expected') this.#giveUp(life, stage, standing.expectation, why);
    if (standing.is === 'missed') {
      this.#counters.unobservable += 1;
      this.#takeBack(life, standing.finding, this.#outbox.now);
    }
    this.settle(life, stage, { is: 'none' });
  }

  /** The event of a stage came. */
  announce(life: Life, stage: Stage, at: Mono): void {
    const standing = life.standings[stage];
    if (standing.is === 'announced') return;
    if (standing.is === 'expected') this.#counters.matched += 1;
    if (standing.is === 'missed') {
      this.#counters.matched += 1;
      this.#takeBack(life, standing.finding, at);
    }
    const countedNow = standing.is === 'none' && isCovered(this.coverage);
    if (countedNow) {
      this.#counters.expected += 1;
      this.#counters.matched += 1;
    }
    const counted = countedNow || standing.is === 'expected' || standing.is === 'missed';
    this.settle(life, stage, { is: 'announced', counted, waived: standing.is === 'waived' });
  }

  /** The event of a stage is spurious: it discharged nothing, and what was concluded from it does not hold. */
  unannounce(life: Life, stage: Stage, refutation: Refutation): void {
    life.refuted[stage] = refutation;
    life.heardAt[stage] = null;
    life.furthest = STAGES.findLast((each) => life.heardAt[each] !== null) ?? -1;
    const standing = life.standings[stage];
    if (standing.is === 'announced') {
      if (standing.counted) {
        this.#counters.expected -= 1;
        this.#counters.matched -= 1;
      }
      // What was not due before it came is not due for its sake.
      this.settle(life, stage, { is: standing.waived ? 'waived' : 'none' });
    }
    for (const earlier of STAGES) {
      const concluded = life.standings[earlier];
      // Nothing is missed on its word alone, as long as that may turn out to be wrong.
      const byIt = concluded.is === 'expected' && concluded.expectation.by === stage;
      if (byIt) this.retract(life, earlier, 'spurious');
    }
  }

  /** What is to be said of an event that came, before it counts as announced. */
  judgeEvent(life: Life, stage: Stage, received: Mono, createdNs: bigint): EventVerdict | null {
    if (life.regressed) return null;
    const { overdueAfter, lateAfter } = this.#options;
    const built = this.#moments.place(createdNs, this.#outbox.now);
    const watchedSince = (at: Mono) => this.#moments.holdsSince(at) && covers(this.coverage, at);
    const drained = this.coverage.is === 'open' ? this.coverage.watermark : received;
    return judgeEvent(life, { stage, received, built, overdueAfter, lateAfter, drained, watchedSince });
  }

  settle(life: Life, stage: Stage, standing: Standing): void {
    life.standings[stage] = standing;
    if (!isWaiting(life)) this.#waiting.delete(life);
  }

  // Time.

  tick(now: Mono, wallMicros: number): void {
    this.#outbox.reach(now);
    const stepped = this.#moments.tick(now, wallMicros);
    this.#outbox.settleUnsure(stepped);
    if (stepped) this.#clockStepped();
    // While ids are left out nobody can say that all was watched.
    if (!this.lives.isShedding)
      this.#counters.covered += Math.max(0, now - Math.max(this.#lastTick, coveredSince(this.coverage, now)));
    this.#lastTick = now;
    this.#eachOpen((life, stage, expectation) => this.#judge(life, stage, expectation));
    this.lives.forget(now, (life) => this.#waiting.has(life));
  }

  // Verdicts.

  #judge(life: Life, stage: Stage, expectation: Expectation): void {
    if (!expectation.asked && this.#outbox.now >= shift(expectation.to, this.#options.overdueAfter)) {
      expectation.asked = true;
      this.#tellOverdue(life, stage, expectation);
      const unknown = stage !== DELETED && exactTime(life, stage) === null;
      if (unknown) this.#outbox.ask(life.object);
    }
    const deadline = shift(expectation.to, this.#options.missedAfter);
    if (this.#outbox.now >= deadline) this.#decide(life, stage, expectation, deadline);
  }

  /** Of a sandbox's start and end nothing is published, nor of the other two stages of a container. */
  #tellOverdue(life: Life, stage: Stage, expectation: Expectation): void {
    if (life.object.isSandbox || (stage !== STARTED && stage !== STOPPED)) return;
    const { now, epochStart } = this.#outbox;
    if (!this.#overdue.tryTake(now)) return;
    const finding = this.#outbox.mintId();
    expectation.finding = finding;
    const told = { finding, at: now, epochStart };
    this.#outbox.emit(life.object, overdueRecord(told, life, stage, expectation, exactTime(life, stage)));
  }

  #decide(life: Life, stage: Stage, expectation: Expectation, deadline: Mono): void {
    const coverage = this.coverage;
    // Until the reader has drained past the deadline the event may be in the socket still.
    if (coverage.is !== 'open' || coverage.watermark < deadline) return;
    // Nor is anything decided on the word of an event before lists have confirmed it, or contradicted it.
    const unconfirmed = expectation.by !== null && isOpen(life, expectation.by);
    if (unconfirmed && this.#outbox.now < shift(deadline, PATIENCE)) return;
    const excuse = unconfirmed ? 'unconfirmed' : excuseOf(life, stage, expectation, coverage);
    if (this.#cameAfterAll(life, stage)) this.announce(life, stage, this.#outbox.now);
    else if (excuse === null) this.#accuse(life, stage, expectation, coverage);
    else if (excuse === 'start_failed') this.#failedStart(life, stage, expectation);
    else {
      this.#giveUp(life, stage, expectation, excuse);
      this.#countUnheard(coverage, expectation);
    }
  }

  /** An event that lists contradicted was right: what it announced had happened when it came. */
  #cameAfterAll(life: Life, stage: Stage): boolean {
    const refuted = life.refuted[stage];
    if (refuted === null || !hadHappened(life, stage, refuted.received)) return false;
    this.#resolve(life, refuted.finding, this.#outbox.now);
    return true;
  }

  #accuse(life: Life, stage: Stage, expectation: Expectation, session: OpenSession): void {
    const { epochStart } = this.#outbox;
    const exact = exactTime(life, stage);
    const details = {
      session: session.session,
      armedAt: since(epochStart, session.armed ?? session.opened),
      coveredSince: since(epochStart, session.since),
      drainedTo: since(epochStart, session.watermark),
      eventsInSession: session.events,
    };
    const cause = causeOf(expectation, exact, this.#options.overdueAfter);
    const verdict = this.#outbox.verdict('missed', cause, details, expectation.finding);
    this.#counters.missed += 1;
    this.settle(life, stage, { is: 'missed', finding: verdict.finding });
    this.#outbox.emit(life.object, stageFinding(verdict, life, stage, expectation, exact));
  }

  /** A start that failed is announced by no runtime: a blind spot, nothing that was due. */
  #failedStart(life: Life, stage: Stage, expectation: Expectation): void {
    this.#counters.expected -= 1;
    this.settle(life, stage, { is: 'waived' });
    // One start that failed is one finding, on the end that nobody announced.
    if (stage !== STOPPED) return;
    const verdict = this.#outbox.verdict('unannounced', 'failed_start', {}, expectation.finding);
    this.#outbox.emit(life.object, stageFinding(verdict, life, stage, expectation, exactTime(life, stage)));
  }

  /** Of a runtime that nothing is known of it is not known either what it never sends. */
  #neverSent(life: Life, stage: Stage, proof: Proof): void {
    const { sandboxEvents, containerEvents } = this.profile;
    if (sandboxEvents.length === 0 && containerEvents.length === 0) return;
    const expectation: Expectation = { ...proof, coverable: true, asked: false, finding: null };
    const verdict = this.#outbox.verdict('unannounced', 'never_sent', {});
    this.#outbox.emit(life.object, stageFinding(verdict, life, stage, expectation, exactTime(life, stage)));
  }

  #giveUp(life: Life, stage: Stage, expectation: Expectation, why: string): void {
    this.#counters.unobservable += 1;
    this.settle(life, stage, { is: 'unobservable' });
    const verdict = this.#outbox.verdict('unobservable', why, {}, expectation.finding);
    this.#outbox.emit(life.object, stageFinding(verdict, life, stage, expectation, exactTime(life, stage)));
  }

  #takeBack(life: Life, finding: string, at: Mono): void {
    this.#counters.missed -= 1;
    this.#resolve(life, finding, at);
  }

  #resolve(life: Life, finding: string, at: Mono): void {
    const t = since(this.#outbox.epochStart, at);
    this.#outbox.emit(life.object, { type: 'finding_resolved', t, findingId: finding, what: 'resolved' });
  }

  /** Counted when the event had its time to come: the first one of a stream may be slow. */
  #countUnheard(session: OpenSession, { from }: Expectation): void {
    if (session.events > 0 || session.silent || from === null || from < session.opened) return;
    session.unheard += 1;
    if (session.unheard < SILENT_AFTER) return;
    session.silent = true;
    const { epochStart } = this.#outbox;
    const verdict = this.#outbox.verdict('silent_stream', 'no_event_at_all', {
      transitions: session.unheard,
      session: session.session,
      openedAt: since(epochStart, session.opened),
      drainedTo: since(epochStart, session.watermark),
    });
    this.#outbox.emit(null, plainFinding(verdict, null));
  }

  // Helpers.

  #announces(life: Life, stage: Stage): boolean {
    const { sandboxEvents, containerEvents } = this.profile;
    const sent: readonly EventType[] = life.object.isSandbox ? sandboxEvents : containerEvents;
    return sent.includes(EVENT_TYPES[stage]);
  }

  /** A bound that was read off the wall clock holds no longer. */
  #clockStepped(): void {
    this.#eachOpen((life, stage, expectation) => {
      if (expectation.byWallClock) this.#giveUp(life, stage, expectation, 'clock_step');
    });
  }

  #eachOpen(visit: (life: Life, stage: Stage, expectation: Expectation) => void): void {
    for (const life of [...this.#waiting]) {
      for (const stage of STAGES) {
        const standing = life.standings[stage];
        if (standing.is === 'expected') visit(life, stage, standing.expectation);
      }
    }
  }
}

/**
 * An event may prove a stage before a list says since when it can have been reached. One that comes again leaves open which
 * of both is true: the later one is the later bound.
 */
function renew(expectation: Expectation, proof: Proof): void {
  const { by, to } = proof;
  if (by !== null && by === expectation.by && to > expectation.to) expectation.to = to;
  bind(expectation, proof);
}

/** The first lower bound that becomes known holds. */
function bind(expectation: Expectation, { from, byWallClock }: Bound): void {
  if (expectation.from !== null) return;
  expectation.from = from;
  expectation.byWallClock = byWallClock;
}

/** Since when everything was watched; `now` where it is not. */
function coveredSince(coverage: Coverage, now: Mono): Mono {
  return coverage.is === 'open' && isCovered(coverage) ? coverage.since : now;
}

/** What was reached before a baseline is not due after it. */
export function waiveUpTo(life: Life, reached: Life['reached']): void {
  for (const stage of STAGES) {
    if (stage <= reached && life.standings[stage].is === 'none') life.standings[stage] = { is: 'waived' };
  }
  if (reached > life.reached) life.reached = reached;
}

const isWaiting = (life: Life): boolean => life.standings.some((standing) => standing.is === 'expected');
