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
} from '../../evidence/record.ts';
import { type Micros, type Mono, millis, mono, shift } from '../../evidence/units.ts';
import { ABSENT, type Coverage, covers, DOWN, isCovered, type OpenSession, openSession } from './coverage.ts';
import {
  type Cause,
  DELETED,
  type Expectation,
  type Life,
  newLife,
  STAGES,
  type Stage,
  type Standing,
} from './life.ts';
import type { Ask } from './observation.ts';
import type { PlegProfile } from './profile.ts';
import { plainFinding, since, stageFinding, type Verdict } from './verdict.ts';

/** Ended ids are remembered this long, so that an event that limps in still finds its verdict. */
const REMEMBER: Micros = millis(15 * 60_000);
/** So many transitions without a single event make a stream silent. */
const SILENT_AFTER = 10;
/** No more ids than this are followed: a runtime that invents them by the million cannot grow the agent. */
const MAX_LIVES = 50_000;
/** The wall clock was stepped where its distance to the monotonic clock moved by more than this between two ticks. */
const STEP: Micros = millis(500);

export interface ComparisonOptions {
  readonly epochStart: Mono;
  readonly grace: Micros;
  readonly confirm: Micros;
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

/** One proof that a stage was reached. */
export interface Proof extends Bound {
  readonly to: Mono;
  readonly cause: Cause;
  readonly evidence: string;
}

export class Ledger {
  readonly figures: Figures = { expected: 0, matched: 0, missed: 0, unobservable: 0, covered: 0, shed: 0 };
  readonly lives = new Map<string, Life>();
  coverage: Coverage = ABSENT;
  profile: PlegProfile;
  readonly #options: ComparisonOptions;
  /** Lives with at least one open expectation, so that a tick costs nothing on a quiet node. */
  readonly #waiting = new Set<Life>();
  #emissions: Emission[] = [];
  #asks: Ask[] = [];
  #now: Mono;
  #lastTick: Mono;
  /** Wall clock less monotonic clock, in microseconds. */
  #distance: number | null = null;

  constructor(options: ComparisonOptions) {
    this.#options = options;
    this.profile = options.profile;
    this.#now = options.epochStart;
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

  take(): Output {
    const output = { emissions: this.#emissions, asks: this.#asks };
    this.#emissions = [];
    this.#asks = [];
    return output;
  }

  emit(object: EvidenceObject | null, record: EvidenceRecord): void {
    this.#emissions.push({ record, object });
  }

  ask(id: string): void {
    this.#asks.push({ id });
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
      this.figures.shed += 1;
      return undefined;
    }
    const life = newLife(object, at);
    this.lives.set(object.id, life);
    return life;
  }

  /** A stage was reached: from now on its event is due, unless it came, was waived, or is never sent. */
  prove(life: Life, stage: Stage, proof: Proof): void {
    if (stage > life.reached) life.reached = stage;
    if (life.standings[stage].is !== 'none') return;
    const coverage = this.coverage;
    if (coverage.is === 'absent' || !this.#announces(life, stage)) {
      life.standings[stage] = { is: 'waived' };
      return;
    }
    const expectation: Expectation = { ...proof, coverable: isCovered(coverage), asked: false };
    this.figures.expected += 1;
    life.standings[stage] = { is: 'expected', expectation };
    if (coverage.is === 'down') {
      this.#giveUp(life, stage, expectation, 'stream_down');
      return;
    }
    this.#waiting.add(life);
    this.#countUnheard(coverage, proof);
  }

  /** The event of a stage came. */
  announce(life: Life, stage: Stage, at: Mono): void {
    const standing = life.standings[stage];
    if (standing.is === 'announced') return;
    if (standing.is === 'expected') this.figures.matched += 1;
    if (standing.is === 'missed') this.#resolve(life, standing.finding, at);
    if (standing.is === 'none' && isCovered(this.coverage)) {
      this.figures.expected += 1;
      this.figures.matched += 1;
    }
    this.settle(life, stage, { is: 'announced' });
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
    this.#watchWallClock(wallMicros - now);
    if (isCovered(this.coverage)) this.figures.covered += Math.max(0, now - this.#lastTick);
    this.#lastTick = now;
    this.#eachOpen((life, stage, expectation) => this.#judge(life, stage, expectation));
    this.#forget();
  }

  /** Wall-clock nanoseconds as a position on the monotonic clock; null before the first tick. */
  monoOf(ns: bigint): Mono | null {
    return this.#distance === null ? null : mono(Number(ns / 1000n) - this.#distance);
  }

  // Verdicts.

  #judge(life: Life, stage: Stage, expectation: Expectation): void {
    if (!expectation.asked && this.#now >= shift(expectation.to, this.#options.grace)) {
      expectation.asked = true;
      if (!life.object.isSandbox && stage !== DELETED) this.ask(life.object.id);
    }
    const deadline = shift(expectation.to, this.#options.confirm);
    if (this.#now >= deadline) this.#decide(life, stage, expectation, deadline);
  }

  #decide(life: Life, stage: Stage, expectation: Expectation, deadline: Mono): void {
    const coverage = this.coverage;
    // Until the reader has drained past the deadline the event may be in the socket still.
    if (coverage.is !== 'open' || coverage.watermark < deadline) return;
    const exact = this.#exactTime(life, stage);
    const excuse = this.#excuse(expectation, exact);
    if (excuse === null) this.#accuse(life, stage, expectation, coverage, exact);
    else this.#giveUp(life, stage, expectation, excuse);
  }

  /** Why this event cannot be held against the runtime; null where it can. */
  #excuse(expectation: Expectation, exact: Mono | null): string | null {
    if (!expectation.coverable) return 'before_baseline';
    if (expectation.from === null) return 'no_lower_bound';
    if (!covers(this.coverage, expectation.from)) return 'window_not_covered';
    if (exact !== null && !covers(this.coverage, exact)) return 'exact_time_not_covered';
    return null;
  }

  #accuse(
    life: Life,
    stage: Stage,
    expectation: Expectation,
    session: OpenSession,
    exact: Mono | null,
  ): void {
    const { epochStart } = this.#options;
    const verdict = this.verdict('missed', expectation.cause, {
      session: session.session,
      armedAt: since(epochStart, session.armed ?? session.opened),
      coveredSince: since(epochStart, session.since),
      drainedTo: since(epochStart, session.watermark),
      eventsInSession: session.events,
    });
    this.figures.missed += 1;
    this.settle(life, stage, { is: 'missed', finding: verdict.finding });
    this.emit(life.object, stageFinding(verdict, life, stage, expectation, exact));
  }

  #giveUp(life: Life, stage: Stage, expectation: Expectation, why: string): void {
    this.figures.unobservable += 1;
    this.settle(life, stage, { is: 'unobservable' });
    const verdict = this.verdict('unobservable', why, {});
    this.emit(life.object, stageFinding(verdict, life, stage, expectation, this.#exactTime(life, stage)));
  }

  #resolve(life: Life, finding: string, at: Mono): void {
    this.figures.missed -= 1;
    this.figures.matched += 1;
    const t = since(this.#options.epochStart, at);
    this.emit(life.object, { kind: 'resolution', t, finding, what: 'resolved' });
  }

  #countUnheard(session: OpenSession, proof: Proof): void {
    if (session.events > 0 || session.silent || proof.from === null || proof.from < session.opened) return;
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

  #exactTime(life: Life, stage: Stage): Mono | null {
    if (life.times === null || life.object.isSandbox) return null;
    const { createdNs, startedNs, finishedNs } = life.times;
    const ns = [createdNs, startedNs, finishedNs, 0n][stage] ?? 0n;
    return ns > 0n ? this.monoOf(ns) : null;
  }

  /** After a step no time that was read off the wall clock can be placed any more. */
  #watchWallClock(distance: number): void {
    const stepped = this.#distance !== null && Math.abs(distance - this.#distance) > STEP;
    this.#distance = distance;
    if (!stepped) return;
    for (const life of this.lives.values()) life.times = null;
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
      const ended = life.state === 'non-existent' && !this.#waiting.has(life);
      if (ended && life.lastSign < horizon) this.lives.delete(id);
    }
  }
}

/** What was reached before a baseline is not due after it. */
export function waiveUpTo(life: Life, reached: Life['reached']): void {
  for (const stage of STAGES) {
    if (stage <= reached && life.standings[stage].is === 'none') life.standings[stage] = { is: 'waived' };
  }
  if (reached > life.reached) life.reached = reached;
}

const isWaiting = (life: Life): boolean => life.standings.some((standing) => standing.is === 'expected');
