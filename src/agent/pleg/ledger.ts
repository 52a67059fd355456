/*
 * The ledger: every id that is followed, what is due of it, and what became of that.
 *
 *   proven ──► expected ── grace ──► overdue (the exact times are asked for) ── confirm ──► missed, or unobservable
 *                 └── its event, any time in the session ──► announced
 *
 * `missed` is an accusation and needs all of: the same session still, watched without a hole from the start of the window
 * until now, the reader drained past the deadline, and the exact time, where it is known, inside that stretch too.
 * Everything else that did not come is `unobservable`.
 */
import {
  EVENT_TYPES,
  type EventType,
  type EvidenceObject,
  type EvidenceRecord,
  type RecordOf,
} from '../../evidence/record.ts';
import { type Micros, type Mono, millis, shift } from '../../evidence/units.ts';
import { isOpen } from './claims.ts';
import { ABSENT, type Coverage, covers, DOWN, isCovered, type OpenSession, openSession } from './coverage.ts';
import { type EventVerdict, judgeEvent } from './heard.ts';
import {
  type Cause,
  DELETED,
  type Expectation,
  type Life,
  newLife,
  type Refutation,
  STAGES,
  STARTED,
  STOPPED,
  type Stage,
  type Standing,
  startFailed,
} from './life.ts';
import type { Ask, ExactTimes } from './observation.ts';
import type { PlegProfile } from './profile.ts';
import { plainFinding, since, stageFinding, type Verdict } from './verdict.ts';
import { STEP, WallClock } from './wallClock.ts';

/** Ended ids are remembered this long, so that an event that limps in still finds its verdict. */
const REMEMBER: Micros = millis(15 * 60_000);
/** So many transitions without a single event make a stream silent. */
const SILENT_AFTER = 10;
/** A verdict waits this long for a list that confirms the event which it rests on. */
const PATIENCE: Micros = millis(5 * 60_000);
/** No more ids than this are followed: a runtime that invents them by the million cannot grow the agent. */
const MAX_LIVES = 50_000;

export interface ComparisonOptions {
  readonly epochStart: Mono;
  readonly grace: Micros;
  readonly confirm: Micros;
  /** How long after its true time an event may be received without being late. */
  readonly lateLimit: Micros;
  readonly profile: PlegProfile;
  /** A fresh random UUID at every call. */
  readonly mintId: () => string;
}

/** A record for the spool, with the identity that it mentions. */
export interface Emission {
  readonly record: EvidenceRecord;
  readonly object: EvidenceObject | null;
}

export interface Output {
  readonly emissions: readonly Emission[];
  readonly asks: readonly Ask[];
}

/** Counted since the start, in transitions; `covered` in microseconds. */
export interface Figures {
  expected: number;
  matched: number;
  missed: number;
  unobservable: number;
  covered: number;
  /** Ids that were not followed because too many were. */
  shed: number;
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

interface Shedding {
  readonly gap: string;
  readonly from: Mono;
  /** When an id was last not followed. */
  last: Mono;
}

export class Ledger {
  readonly figures: Figures = { expected: 0, matched: 0, missed: 0, unobservable: 0, covered: 0, shed: 0 };
  readonly lives = new Map<string, Life>();
  coverage: Coverage = ABSENT;
  profile: PlegProfile;
  readonly #options: ComparisonOptions;
  /** Lives with at least one open expectation, so that a tick costs nothing on a quiet node. */
  readonly #waiting = new Set<Life>();
  /** Events of ids that nobody knows yet: they count as soon as a list shows the id. */
  readonly #unplaced = new Map<string, { readonly stages: Set<Stage>; at: Mono }>();
  readonly #wallClock = new WallClock();
  /** The stretch in which ids are not followed because too many are; null where all are. */
  #shedding: Shedding | null = null;
  /** When the last relist that was compared ended; null before the first. */
  #relisted: Mono | null = null;
  #emissions: Emission[] = [];
  /** Findings that wait for the next look at the wall clock. */
  #unsure: Emission[] = [];
  #asks: Ask[] = [];
  /** Lives whose times were put on the monotonic clock since the last look at the wall clock. */
  readonly #placed = new Set<Life>();
  /** When the wall clock was last found to have been stepped. */
  #stepped: Mono;
  #now: Mono;
  #lastTick: Mono;

  constructor(options: ComparisonOptions) {
    this.#options = options;
    this.profile = options.profile;
    this.#now = options.epochStart;
    this.#stepped = options.epochStart;
    this.#lastTick = options.epochStart;
  }

  /** Stages whose event has not come and that have no verdict yet. */
  get awaited(): number {
    let count = 0;
    this.#eachOpen(() => {
      count += 1;
    });
    return count;
  }

  /** Ids that are remembered in one way or another. */
  get remembered(): number {
    return this.lives.size + this.#unplaced.size;
  }

  take(): Output {
    const output = { emissions: this.#emissions, asks: this.#asks };
    this.#emissions = [];
    this.#asks = [];
    return output;
  }

  emit(object: EvidenceObject | null, record: EvidenceRecord): void {
    this.#emissions.push({ record, object });
  }

  ask({ object: { id, isSandbox } }: Life): void {
    this.#asks.push({ id, isSandbox });
  }

  /** Hands out a finding that rests on the wall clock, unless the next tick shows that the clock was stepped just before. */
  emitUnlessStepped(object: EvidenceObject | null, record: EvidenceRecord): void {
    this.#unsure.push({ record, object });
  }

  /** A moment has been reached; time never goes back. */
  reach(at: Mono): void {
    if (at > this.#now) this.#now = at;
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
    for (const life of this.lives.values()) waiveUpTo(life, life.reached);
  }

  hole(until: Mono, why: string): void {
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

  follow(object: EvidenceObject, at: Mono): Life | undefined {
    if (this.lives.size >= MAX_LIVES) {
      this.#shed(at);
      return undefined;
    }
    const life = newLife(object, at);
    this.lives.set(object.id, life);
    const early = this.#unplaced.get(object.id);
    this.#unplaced.delete(object.id);
    for (const stage of early?.stages ?? []) this.announce(life, stage, at);
    return life;
  }

  /** A relist has been compared that ended at `end`. An id that is in no list for long is over, were they never whole. */
  relisted(end: Mono): void {
    this.#relisted = end;
    if (this.#shedding !== null && this.#shedding.last < end) this.#endShedding(this.#shedding, end);
  }

  /** An event came of an id that is not followed: it may be shown yet by a list, and then nothing is due that came. */
  unplaced(id: string, stage: Stage, at: Mono): void {
    const known = this.#unplaced.get(id);
    if (known !== undefined) {
      known.stages.add(stage);
      known.at = at;
    } else if (this.#unplaced.size < MAX_LIVES) this.#unplaced.set(id, { stages: new Set([stage]), at });
    else this.hole(at, 'too_many_ids');
  }

  /** An event of this id came that nobody understands: it may have been any that is due, now or later. */
  taint(life: Life): void {
    life.tainted = true;
    for (const stage of STAGES) {
      const standing = life.standings[stage];
      if (standing.is === 'expected') this.#giveUp(life, stage, standing.expectation, 'unknown_event_type');
    }
  }

  /** Takes in exact times. One that was known before stays known: an event may carry older statuses than the last did. */
  learn(life: Life, times: ExactTimes): void {
    const known = life.times;
    const newer = (key: 'createdNs' | 'startedNs' | 'finishedNs') =>
      times[key] > 0n ? times[key] : (known?.[key] ?? 0n);
    const { exitCode, reason } = times.finishedNs > 0n ? times : (known ?? times);
    life.times = {
      createdNs: newer('createdNs'),
      startedNs: newer('startedNs'),
      finishedNs: newer('finishedNs'),
      exitCode,
      reason,
    };
    this.#placed.add(life);
    life.moments[0] ??= this.#wallClock.place(life.times.createdNs, this.#now);
    life.moments[1] ??= this.#wallClock.place(life.times.startedNs, this.#now);
    life.moments[2] ??= this.#wallClock.place(life.times.finishedNs, this.#now);
    if (!life.listed) this.#boundByCreation(life);
  }

  /**
   * Since when an id that no list showed can have reached any stage: since it was created. Not where that was so long ago
   * that it may have been followed before, and forgotten.
   */
  createdBound(life: Life): Bound {
    const created = life.moments[0];
    const forgotten = created !== null && created < shift(this.#now, -REMEMBER);
    return { from: created === null || forgotten ? null : shift(created, -STEP), byWallClock: true };
  }

  /** Of events that came out of order the first may have proven a stage before another said when it was created. */
  #boundByCreation(life: Life): void {
    const created = this.createdBound(life);
    for (const standing of life.standings) {
      if (standing.is === 'expected') bind(standing.expectation, created);
    }
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
    };
    this.figures.expected += 1;
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
      this.figures.unobservable += 1;
      this.#takeBack(life, standing.finding, this.#now);
    }
    this.settle(life, stage, { is: 'none' });
  }

  /** The event of a stage came. */
  announce(life: Life, stage: Stage, at: Mono): void {
    const standing = life.standings[stage];
    if (standing.is === 'announced') return;
    if (standing.is === 'expected') this.figures.matched += 1;
    if (standing.is === 'missed') {
      this.figures.matched += 1;
      this.#takeBack(life, standing.finding, at);
    }
    const countedNow = standing.is === 'none' && isCovered(this.coverage);
    if (countedNow) {
      this.figures.expected += 1;
      this.figures.matched += 1;
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
        this.figures.expected -= 1;
        this.figures.matched -= 1;
      }
      // What was not due before it came is not due for its sake.
      this.settle(life, stage, { is: standing.waived ? 'waived' : 'none' });
    }
    for (const earlier of STAGES) {
      const concluded = life.standings[earlier];
      const byIt = concluded.is === 'expected' && concluded.expectation.by === stage;
      if (byIt || (concluded.is === 'missed' && concluded.by === stage))
        this.retract(life, earlier, 'spurious');
    }
  }

  /** What is to be said of an event that came, before it counts as announced. */
  judgeEvent(life: Life, stage: Stage, received: Mono, createdNs: bigint): EventVerdict | null {
    if (life.regressed) return null;
    const { grace, lateLimit } = this.#options;
    const built = this.#wallClock.place(createdNs, this.#now);
    // A step voids what it spans.
    const watchedSince = (at: Mono) => at >= this.#stepped && covers(this.coverage, at);
    return judgeEvent(life, { stage, received, built, grace, lateLimit, watchedSince });
  }

  settle(life: Life, stage: Stage, standing: Standing): void {
    life.standings[stage] = standing;
    if (!isWaiting(life)) this.#waiting.delete(life);
  }

  /** A verdict with its id, its time and the epoch filled in. */
  verdict(kind: Verdict['kind'], cause: string, details: Verdict['details']): Verdict {
    const { epochStart, mintId } = this.#options;
    return { finding: mintId(), kind, at: this.#now, cause, epochStart, details };
  }

  // Time.

  tick(now: Mono, wallMicros: number): void {
    this.reach(now);
    if (this.#wallClock.tick(now, wallMicros)) this.#clockStepped();
    else this.#emissions.push(...this.#unsure);
    this.#unsure = [];
    this.#placed.clear();
    this.figures.covered += Math.max(0, now - Math.max(this.#lastTick, coveredSince(this.coverage, now)));
    this.#lastTick = now;
    this.#eachOpen((life, stage, expectation) => this.#judge(life, stage, expectation));
    this.#forget();
  }

  // Verdicts.

  #judge(life: Life, stage: Stage, expectation: Expectation): void {
    if (!expectation.asked && this.#now >= shift(expectation.to, this.#options.grace)) {
      expectation.asked = true;
      const unknown = stage !== DELETED && exactTime(life, stage) === null;
      if (unknown) this.ask(life);
    }
    const deadline = shift(expectation.to, this.#options.confirm);
    if (this.#now >= deadline) this.#decide(life, stage, expectation, deadline);
  }

  #decide(life: Life, stage: Stage, expectation: Expectation, deadline: Mono): void {
    const coverage = this.coverage;
    // Until the reader has drained past the deadline the event may be in the socket still.
    if (coverage.is !== 'open' || coverage.watermark < deadline) return;
    // Nor is anything decided on the word of an event before lists have confirmed it, or contradicted it.
    const unconfirmed = expectation.by !== null && isOpen(life, expectation.by);
    if (unconfirmed && this.#now < shift(deadline, PATIENCE)) return;
    const excuse = unconfirmed ? 'unconfirmed' : this.#excuse(life, stage, expectation);
    if (this.#cameAfterAll(life, stage)) this.announce(life, stage, this.#now);
    else if (excuse === null) this.#accuse(life, stage, expectation, coverage);
    else if (excuse === 'start_failed') this.#failedStart(life, stage, expectation);
    else {
      this.#giveUp(life, stage, expectation, excuse);
      this.#countUnheard(coverage, expectation);
    }
  }

  /** Why this event cannot be held against the runtime; null where it can. */
  #excuse(life: Life, stage: Stage, expectation: Expectation): string | null {
    const exact = exactTime(life, stage);
    if (!expectation.coverable) return 'before_baseline';
    if (expectation.from === null) return 'no_lower_bound';
    if (!covers(this.coverage, expectation.from)) return 'window_not_covered';
    // An event came, and lists contradicted it: only the exact time could tell which of both was wrong.
    if (exact === null && life.refuted[stage] !== null) return 'contradicted';
    if ((stage === STARTED || stage === STOPPED) && life.times !== null && startFailed(life.times)) {
      // Its times may all be that of its creation, and say nothing of when it ended.
      return 'start_failed';
    }
    if (exact !== null && !covers(this.coverage, exact)) return 'exact_time_not_covered';
    return null;
  }

  /** An event that lists contradicted was right: what it announced had happened when it came. */
  #cameAfterAll(life: Life, stage: Stage): boolean {
    const refuted = life.refuted[stage];
    if (refuted === null || !hadHappened(life, stage, refuted.received)) return false;
    this.#resolve(life, refuted.finding, this.#now);
    return true;
  }

  #accuse(life: Life, stage: Stage, expectation: Expectation, session: OpenSession): void {
    const { epochStart } = this.#options;
    const exact = exactTime(life, stage);
    const verdict = this.verdict('missed', this.#causeOf(expectation, exact), {
      session: session.session,
      armedAt: since(epochStart, session.armed ?? session.opened),
      coveredSince: since(epochStart, session.since),
      drainedTo: since(epochStart, session.watermark),
      eventsInSession: session.events,
    });
    this.figures.missed += 1;
    this.settle(life, stage, { is: 'missed', finding: verdict.finding, by: expectation.by });
    this.emit(life.object, stageFinding(verdict, life, stage, expectation, exact));
  }

  /** Lists may go on showing what has long been over: then the runtime's own state was late too. */
  #causeOf({ cause, from }: Expectation, exact: Mono | null): string {
    const lagged = exact !== null && from !== null && shift(exact, this.#options.grace) < from;
    return lagged ? 'runtime_state_late' : cause;
  }

  /** A start that failed is announced by no runtime: a blind spot, nothing that was due. */
  #failedStart(life: Life, stage: Stage, expectation: Expectation): void {
    this.figures.expected -= 1;
    this.settle(life, stage, { is: 'waived' });
    // One start that failed is one finding, on the end that nobody announced.
    if (stage !== STOPPED) return;
    const verdict = this.verdict('unannounced', 'failed_start', {});
    this.emit(life.object, stageFinding(verdict, life, stage, expectation, exactTime(life, stage)));
  }

  #neverSent(life: Life, stage: Stage, proof: Proof): void {
    const expectation: Expectation = { ...proof, coverable: true, asked: false };
    const verdict = this.verdict('unannounced', 'never_sent', {});
    this.emit(life.object, stageFinding(verdict, life, stage, expectation, exactTime(life, stage)));
  }

  /** Told as a gap of the stream: what happened to ids that are not followed is not known. */
  #shed(at: Mono): void {
    this.figures.shed += 1;
    if (this.#shedding !== null) {
      this.#shedding.last = at;
      return;
    }
    this.#shedding = { gap: this.#options.mintId(), from: at, last: at };
    this.emit(null, this.#shedGap(this.#shedding, null));
  }

  #endShedding(shedding: Shedding, at: Mono): void {
    this.#shedding = null;
    this.emit(null, this.#shedGap(shedding, at));
  }

  #shedGap({ gap, from }: Shedding, to: Mono | null): RecordOf<'gap'> {
    const at = (position: Mono) => since(this.#options.epochStart, position);
    return {
      kind: 'gap',
      t: at(this.#now),
      gap,
      scope: 'stream',
      cause: 'too_many_ids',
      from: at(from),
      to: to === null ? null : at(to),
    };
  }

  #giveUp(life: Life, stage: Stage, expectation: Expectation, why: string): void {
    this.figures.unobservable += 1;
    this.settle(life, stage, { is: 'unobservable' });
    const verdict = this.verdict('unobservable', why, {});
    this.emit(life.object, stageFinding(verdict, life, stage, expectation, exactTime(life, stage)));
  }

  #takeBack(life: Life, finding: string, at: Mono): void {
    this.figures.missed -= 1;
    this.#resolve(life, finding, at);
  }

  #resolve(life: Life, finding: string, at: Mono): void {
    const t = since(this.#options.epochStart, at);
    this.emit(life.object, { kind: 'resolution', t, finding, what: 'resolved' });
  }

  /** Counted when the event had its time to come: the first one of a stream may be slow. */
  #countUnheard(session: OpenSession, { from }: Expectation): void {
    if (session.events > 0 || session.silent || from === null || from < session.opened) return;
    session.unheard += 1;
    if (session.unheard < SILENT_AFTER) return;
    session.silent = true;
    const verdict = this.verdict('silent_stream', 'no_event_at_all', { transitions: session.unheard });
    this.emit(null, plainFinding(verdict, null));
  }

  // Helpers.

  #announces(life: Life, stage: Stage): boolean {
    const { sandboxEvents, containerEvents } = this.profile;
    const sent: readonly EventType[] = life.object.isSandbox ? sandboxEvents : containerEvents;
    return sent.includes(EVENT_TYPES[stage]);
  }

  /** What was read off the wall clock holds no longer where the step may have come before it was read. */
  #clockStepped(): void {
    this.#stepped = this.#now;
    for (const life of this.#placed) life.moments.fill(null);
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

  #forget(): void {
    const horizon = shift(this.#now, -REMEMBER);
    for (const [id, life] of this.lives) {
      const unlisted = this.#relisted !== null && this.#relisted > shift(life.lastSign, REMEMBER);
      const ended = (life.state === 'non-existent' || unlisted) && !this.#waiting.has(life);
      if (ended && life.lastSign < horizon) this.lives.delete(id);
    }
    for (const [id, { at }] of this.#unplaced) if (at < horizon) this.#unplaced.delete(id);
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

/** The exact time at which a container reached a stage, where it is known. */
const exactTime = (life: Life, stage: Stage): Mono | null =>
  life.object.isSandbox || stage === DELETED ? null : life.moments[stage];

/** Whether its exact time says that a stage had been reached by then, within what the wall clock is trusted with. */
export function hadHappened(life: Life, stage: Stage, at: Mono): boolean {
  const exact = exactTime(life, stage);
  return exact !== null && exact <= shift(at, STEP);
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
