/*
 * The comparison: holds what the event stream announced against what relisting found.
 *
 * It is told of sessions, events, relists, exact times and the passing of time, concludes which stages each id has
 * reached, and enters them into the ledger, which knows what is due and what becomes of it.
 *
 * No clock, no I/O, no randomness of its own: times are handed in, ids are minted by the caller, and what comes out waits
 * in {@link Comparison.take}.
 */
import { EVENT_TYPES, type PlegState } from '../../evidence/record.ts';
import { between, type Mono, millis, mono } from '../../evidence/units.ts';
import { claim, confirmAll, examine, isOpen } from './claims.ts';
import { covers, type OpenSession } from './coverage.ts';
import {
  type Bound,
  type ComparisonOptions,
  type Figures,
  hadHappened,
  Ledger,
  type Output,
  type Proof,
  waiveUpTo,
} from './ledger.ts';
import {
  CREATED,
  completed,
  DELETED,
  everRan,
  type Life,
  type Span,
  STAGES,
  STARTED,
  STOPPED,
  type Stage,
  stageOf,
  startFailed,
} from './life.ts';
import type {
  Answer,
  ExactTimes,
  ListedItem,
  ReceivedEvent,
  Relist,
  ShownState,
  ShownStatus,
  StatusAnswer,
} from './observation.ts';
import type { PlegProfile } from './profile.ts';
import { type Between, type ShortLife, unseenExit, unseenRun, wholeLife } from './shortLife.ts';
import { findTwins } from './twins.ts';
import { eventFinding, plainFinding, shortLifeFinding, since } from './verdict.ts';

/** The last whole answers before the present ones; null before the first. */
interface Previous {
  readonly sandboxes: Answer | null;
  readonly containers: Answer | null;
}

export class Comparison {
  readonly #ledger: Ledger;
  readonly #epochStart: Mono;
  #previous: Previous = { sandboxes: null, containers: null };
  /** Whether no list call failed since the answers before. */
  #consecutive = true;

  constructor(options: ComparisonOptions) {
    this.#ledger = new Ledger(options);
    this.#epochStart = options.epochStart;
  }

  get figures(): Readonly<Figures> {
    return this.#ledger.figures;
  }

  /** Transitions whose event has not come and that have no verdict yet. */
  get awaited(): number {
    return this.#ledger.awaited;
  }

  /** Ids that are remembered: those that are there, and those that ended or were heard of less than 15 minutes ago. */
  get remembered(): number {
    return this.#ledger.remembered;
  }

  /** Hands over what has come out since the last call. */
  take(): Output {
    return this.#ledger.take();
  }

  /** The runtime was replaced by another: from now on it is due what the new one announces. */
  profiled(profile: PlegProfile): void {
    this.#ledger.profile = profile;
  }

  /** There is no subscription: one is wanted (`down`), or policy forbids it and nothing is due (`absent`). */
  unsubscribed(state: 'down' | 'absent'): void {
    this.#ledger.unsubscribed(state);
  }

  /** A new session began at `at`; `wallNs` is the wall clock at that moment. */
  subscribed(session: number, at: Mono, wallNs: bigint): void {
    this.#ledger.subscribed(session, at, wallNs);
  }

  /** Nobody watched for a while until this moment, although the session lives on. */
  hole(until: Mono, why: string): void {
    this.#ledger.hole(until, why);
  }

  /** The reader had taken everything from the socket by then. */
  drained(session: number, watermark: Mono): void {
    const { coverage } = this.#ledger;
    if (coverage.is === 'open' && coverage.session === session && watermark > coverage.watermark) {
      coverage.watermark = watermark;
    }
  }

  /** Time has passed. `wallMicros` is the wall clock at `now`. */
  tick(now: Mono, wallMicros: number): void {
    this.#ledger.tick(now, wallMicros);
  }

  /** What the evidence says of the stream; null where there is no session. */
  streamState(): 'Arming' | 'Active' | 'Silent' | null {
    const { coverage } = this.#ledger;
    if (coverage.is !== 'open') return null;
    if (coverage.silent) return 'Silent';
    return coverage.armed === null ? 'Arming' : 'Active';
  }

  /** The present session's own figures, for its record. */
  session(): Pick<OpenSession, 'armed' | 'events' | 'replayed'> | null {
    return this.#ledger.coverage.is === 'open' ? this.#ledger.coverage : null;
  }

  /** A list call failed: what lies between the lists around it is longer than a period. */
  listFailed(): void {
    this.#consecutive = false;
  }

  relisted(relist: Relist): void {
    this.#ledger.reach(relist.containers.end);
    const { sandboxes, containers } = relist;
    this.#compare(sandboxes, this.#previous.sandboxes, true);
    this.#judgeAbsences(sandboxes);
    this.#compare(containers, this.#previous.containers, false);
    this.#recordTwins(relist);
    this.#ledger.relisted(containers.end);
    this.#consecutive = sandboxes.whole && containers.whole;
    this.#previous = {
      sandboxes: sandboxes.whole ? sandboxes : this.#previous.sandboxes,
      containers: containers.whole ? containers : this.#previous.containers,
    };
    const { coverage } = this.#ledger;
    if (coverage.is === 'open' && coverage.armed !== null) {
      const first = Math.min(sandboxes.start, containers.start);
      if (first > coverage.armed) coverage.baseline = true;
    }
  }

  received(event: ReceivedEvent): void {
    const { coverage } = this.#ledger;
    if (coverage.is !== 'open' || coverage.session !== event.session) return;
    this.#ledger.reach(event.received);
    const replayed = countEvent(coverage, event);
    const life = this.#lifeOf(event, replayed);
    this.#recordEvent(event, replayed, life);
    const stage = stageOf(event.type);
    if (stage === undefined) {
      if (life !== undefined) this.#ledger.taint(life);
      return;
    }
    if (life === undefined) {
      this.#ledger.unplaced(event.id, stage, event.received);
      return;
    }
    if (event.times !== null) this.#learn(life, event.times);
    if (!replayed) this.#recordVerdict(life, stage, event);
    this.#ledger.announce(life, stage, event.received);
    if (replayed) return;
    this.#concludeFromEvent(life, stage, event);
    for (const other of event.others) {
      this.#concludeFromStatus(other, {
        to: event.received,
        cause: 'sequence',
        evidence: `${other.state} in the ${EVENT_TYPES[stage]} of ${event.id}`,
      });
    }
  }

  /** What its status said of an id that was asked about. */
  answered(answer: StatusAnswer): void {
    const life = this.#ledger.lives.get(answer.id);
    if (life === undefined) return;
    if (!answer.found) {
      life.answer = answer.reason;
    } else if (answer.sandbox === null) {
      life.answer = 'found';
      this.#learn(life, answer.times);
      this.#concludeFromTimes(life, answer.at);
    } else {
      life.answer = 'created_at_and_state_only';
      const { id, at, times, sandbox: state } = answer;
      const evidence = `${state} in its status`;
      this.#concludeFromStatus({ id, state, times }, { to: at, cause: 'unannounced_by_list', evidence });
    }
  }

  // What lists show.

  #compare(answer: Answer, previous: Answer | null, sandboxes: boolean): void {
    for (const item of answer.items.values()) this.#compareItem(item, answer, previous);
    if (!answer.whole) return;
    for (const [id, life] of this.#ledger.lives) {
      if (life.object.isSandbox === sandboxes && !answer.items.has(id)) {
        this.#compareAbsent(life, answer, previous);
      }
    }
  }

  #compareItem(item: ListedItem, answer: Answer, previous: Answer | null): void {
    const life = this.#ledger.lives.get(item.object.id) ?? this.#ledger.follow(item.object, answer.end);
    if (life === undefined) return;
    // A list knows best what it lists.
    life.object = { ...completed(life.object, item.object), isSandbox: item.object.isSandbox };
    life.lastSign = answer.end;
    this.#change(life, plegState(item.state), answer, previous);
    this.#noteListed(life, previous);
    this.#examineClaims(life, item.state === 'unknown' ? null : stageShown(item.state), answer.start);
    if (item.state === 'unknown') return;
    if (life.shown === 'exited' && item.state === 'running') this.#regress(life);
    if (item.state === 'exited' && previous?.items.has(life.object.id) === false && life.shown === null) {
      life.unseen = this.#unseen(life, answer, previous);
    }
    life.shown = item.state;
    if (item.state === 'running') life.ran = true;
    passedBefore(life, stageShown(item.state), answer);
    if (previous === null) waiveUpTo(life, stageShown(item.state));
    else this.#proveShown(life, item.state, answer.end);
    const next = STAGES[stageShown(item.state) + 1];
    if (next !== undefined) raiseFloors(life, next, answer.start);
    this.#recordUnseenRun(life);
  }

  /** What it means that a list shows an id at all, in whatever state. */
  #noteListed(life: Life, previous: Answer | null): void {
    const first = !life.listed;
    life.listed = true;
    life.absence = null;
    if (first && previous === null) waiveUpTo(life, CREATED);
    // An answer that lacked it says since when it can be there, unless it was there and not followed.
    if (first && previous !== null && !previous.items.has(life.object.id)) {
      raiseFloors(life, CREATED, previous.start);
    }
    const gone = life.standings[DELETED].is;
    if (gone !== 'expected' && gone !== 'missed') return;
    this.#ledger.retract(life, DELETED, 'listed_again');
    life.reached = life.shown === null ? CREATED : stageShown(life.shown);
  }

  /** An id that a list shows is at least at the shown stage; whether it ever ran is another matter. */
  #proveShown(life: Life, state: Exclude<ShownState, 'unknown'>, to: Mono): void {
    // A sandbox first seen NOTREADY may never have come up.
    if (life.object.isSandbox && state === 'exited' && !life.ran) return;
    const proof = (stage: Stage): Proof => ({
      ...floorOf(life, stage),
      by: null,
      to,
      cause: 'unannounced_by_list',
      evidence: `listed ${state}`,
    });
    this.#ledger.prove(life, CREATED, proof(CREATED));
    if (state === 'created') return;
    if (life.ran) this.#ledger.prove(life, STARTED, proof(STARTED));
    if (state === 'running') return;
    if (life.ran) this.#ledger.prove(life, STOPPED, proof(STOPPED));
    else this.#question(life);
  }

  #compareAbsent(life: Life, answer: Answer, previous: Answer | null): void {
    this.#recordShortLife(life, answer, previous);
    // Heard of while the list was being made: the answer may be older than the event.
    const older = life.heard !== null && answer.start <= life.heard;
    if (!older) confirmAll(life);
    if (life.state !== 'non-existent') this.#change(life, 'non-existent', answer, previous);
    if (life.reached === DELETED || (life.reached === -1 && !life.listed)) return;
    if (older) return;
    life.absence ??= spanOf(answer);
    if (life.listed) passedBefore(life, DELETED, answer);
    if (life.object.isSandbox || this.#ledger.profile.announcesRemovedWithSandbox) this.#proveGone(life);
  }

  /**
   * Where a removed sandbox takes its containers along without a word, the removal of a container is only judged when a
   * later list shows that its sandbox is still up (one on its way out may have been taking it along), and when it ran.
   */
  #judgeAbsences(sandboxes: Answer): void {
    if (this.#ledger.profile.announcesRemovedWithSandbox) return;
    for (const life of this.#ledger.lives.values()) {
      if (life.absence === null || life.object.isSandbox || life.standings[DELETED].is !== 'none') continue;
      const up = sandboxes.items.get(life.object.sandbox)?.state === 'running';
      if (up && life.ran && sandboxes.start > life.absence.end) this.#proveGone(life);
      else {
        life.reached = DELETED;
        this.#ledger.settle(life, DELETED, { is: 'waived' });
      }
    }
  }

  #proveGone(life: Life): void {
    if (life.absence === null) return;
    const bound = this.#lowerBound(life);
    // A list shows a sandbox for a while after its DELETED, which comes after its creation all the same.
    const lead = life.object.isSandbox && life.listed ? this.#ledger.profile.lead : 0;
    const created = life.floors[CREATED] ?? Number.NEGATIVE_INFINITY;
    // Nobody knows how a sandbox that never came up is taken away.
    const doubtful = life.object.isSandbox && !life.ran;
    this.#ledger.prove(life, DELETED, {
      from: bound.from === null || doubtful ? null : mono(Math.max(bound.from - lead, created)),
      byWallClock: bound.byWallClock,
      by: null,
      to: life.absence.end,
      cause: 'unannounced_by_list',
      evidence: 'no longer listed',
    });
  }

  #change(life: Life, to: PlegState, answer: Answer, previous: Answer | null): void {
    const old = life.state;
    life.state = to;
    if (old === to || previous === null) return;
    const from = life.floors[DELETED] ?? previous.start;
    this.#ledger.emit(life.object, {
      kind: 'change',
      t: since(this.#epochStart, answer.end),
      id: life.object.id,
      isSandbox: life.object.isSandbox,
      window: { from: since(this.#epochStart, from), to: since(this.#epochStart, answer.end) },
      old,
      new: to,
    });
  }

  /**
   * EXITED -> RUNNING of one id: recorded. Lists that contradict each other prove neither that it started nor that it
   * stopped, so from now on neither is due.
   */
  #regress(life: Life): void {
    const verdict = this.#ledger.verdict('regression', 'state_went_back', {});
    this.#ledger.emit(life.object, plainFinding(verdict, life.object));
    life.regressed = true;
    life.unseen = null;
    for (const stage of [STARTED, STOPPED] as const) {
      if (life.standings[stage].is === 'announced') continue;
      this.#ledger.retract(life, stage, 'state_went_back');
      this.#ledger.settle(life, stage, { is: 'waived' });
    }
    life.reached = STARTED;
  }

  /** Exited, and nothing shows that it ever ran: only its exact times can tell whether events were due. */
  #question(life: Life): void {
    if (life.object.isSandbox || life.questioned || life.standings[STARTED].is !== 'none') return;
    life.questioned = true;
    this.#ledger.ask(life);
  }

  // What lists did not show, or show too much of.

  #examineClaims(life: Life, shown: Stage | null, start: Mono): void {
    const lead = life.object.isSandbox ? this.#ledger.profile.lead : millis(0);
    for (const { stage, received, again } of examine(life, shown, start, lead)) {
      // Where its exact time says that it had happened when the event came, it is the lists that are wrong.
      if (hadHappened(life, stage, received)) continue;
      const verdict = this.#ledger.verdict('spurious', 'lists_contradict', {});
      this.#ledger.emit(life.object, eventFinding(verdict, life, stage, received, NO_TIMES));
      // The same was said once more since, and nothing contradicts that yet.
      if (again) continue;
      this.#ledger.unannounce(life, stage, { received, finding: verdict.finding });
      if (shown !== null) life.reached = shown;
      // Only a list or a status can say now that it ran.
      life.ran = life.shown === 'running' || (life.times !== null && everRan(life.times));
    }
  }

  /** The stretch between the present answer and the one right before it, where everything in it was watched. */
  #unseen(life: Life, answer: Answer, previous: Answer | null): Between | null {
    if (life.object.isSandbox || !answer.whole || previous === null || !this.#consecutive) return null;
    if (!covers(this.#ledger.coverage, previous.start)) return null;
    return {
      before: previous.end,
      after: answer.start,
      longest: between(previous.start, answer.end),
      end: answer.end,
    };
  }

  #recordUnseenRun(life: Life): void {
    const failed = life.times !== null && startFailed(life.times);
    if (life.unseen === null || !life.ran || failed) return;
    this.#recordShort(life, unseenRun(life, life.unseen));
    life.unseen = null;
  }

  #recordShortLife(life: Life, answer: Answer, previous: Answer | null): void {
    const stretch = this.#unseen(life, answer, previous);
    if (stretch === null || previous === null) return;
    const ranInListBefore = previous.items.get(life.object.id)?.state === 'running';
    if (ranInListBefore) this.#recordShort(life, unseenExit(life, stretch));
    else if (!life.listed) {
      const short = wholeLife(life, stretch);
      if (short !== null) this.#recordShort(life, short);
    }
  }

  #recordShort(life: Life, short: ShortLife): void {
    const verdict = this.#ledger.verdict('short_life', short.cause, {});
    this.#ledger.emit(life.object, shortLifeFinding(verdict, life, short));
  }

  #recordTwins(relist: Relist): void {
    const runs = (id: string) => isRunning(relist, id) && isRunning(this.#previous, id);
    for (const { one, other, cause } of findTwins(this.#ledger.lives.values(), runs)) {
      const verdict = this.#ledger.verdict('duplicate_container', cause, { other: other.object.id });
      this.#ledger.emit(one.object, plainFinding(verdict, one.object));
    }
  }

  // What events and exact times show.

  #recordVerdict(life: Life, stage: Stage, event: ReceivedEvent): void {
    const judged = this.#ledger.judgeEvent(life, stage, event.received, event.createdNs);
    if (judged === null) return;
    const verdict = this.#ledger.verdict(judged.kind, judged.cause, {});
    const finding = eventFinding(verdict, life, stage, event.received, judged);
    if (judged.byWallClock) this.#ledger.emitUnlessStepped(life.object, finding);
    else this.#ledger.emit(life.object, finding);
  }

  /**
   * A status shows an id as it was when it was made: one that was asked for before the answer, one in an event before that
   * was sent.
   */
  #concludeFromStatus(
    { id, state, times }: ShownStatus,
    shown: Pick<Proof, 'to' | 'cause' | 'evidence'>,
  ): void {
    const life = this.#ledger.lives.get(id);
    if (life === undefined || state === 'unknown' || life.regressed) return;
    this.#learn(life, times);
    if (state === 'running') life.ran = true;
    const proof = (stage: Stage): Proof => ({
      ...this.#lowerBound(life, stage),
      by: null,
      ...shown,
    });
    if (!life.object.isSandbox || life.ran) this.#ledger.prove(life, CREATED, proof(CREATED));
    if (state === 'created' || !life.ran) return;
    this.#ledger.prove(life, STARTED, proof(STARTED));
    if (state === 'exited') this.#ledger.prove(life, STOPPED, proof(STOPPED));
  }

  #lifeOf(event: ReceivedEvent, replayed: boolean): Life | undefined {
    const known = this.#ledger.lives.get(event.id);
    if (known === undefined) {
      const unusable = replayed || event.object === null;
      return unusable ? undefined : this.#ledger.follow(event.object, event.received);
    }
    known.lastSign = event.received;
    if (event.object !== null) known.object = completed(known.object, event.object);
    return known;
  }

  /** An event of a later stage proves the earlier ones, where the id ran at all. */
  #concludeFromEvent(life: Life, stage: Stage, event: ReceivedEvent): void {
    if (life.heardAt[stage] === null || isOpen(life, stage)) claim(life, stage, event.received);
    life.heard = event.received;
    life.heardAt[stage] ??= event.received;
    if (stage > life.furthest) life.furthest = stage;
    if (stage === STARTED || (stage === STOPPED && saysItRan(life, event))) life.ran = true;
    const proof = (earlier: Stage): Proof => ({
      ...this.#lowerBound(life, earlier),
      by: stage,
      to: event.received,
      cause: 'sequence',
      evidence: `${EVENT_TYPES[stage]} received`,
    });
    // A sandbox that never came up is deleted with an event and was never announced before.
    const provesCreated = !life.object.isSandbox || life.ran;
    if (stage > CREATED && provesCreated) this.#ledger.prove(life, CREATED, proof(CREATED));
    if (stage > STARTED && life.ran) this.#ledger.prove(life, STARTED, proof(STARTED));
    if (stage > STOPPED && life.ran) this.#ledger.prove(life, STOPPED, proof(STOPPED));
    if (stage > life.reached) life.reached = stage;
  }

  #concludeFromTimes(life: Life, at: Mono): void {
    if (life.object.isSandbox || life.times === null) return;
    const proof = (stage: Stage): Proof => ({
      ...this.#lowerBound(life, stage),
      by: null,
      to: at,
      cause: 'unannounced_by_list',
      evidence: 'started_at in its status',
    });
    const ended = life.times.finishedNs > 0n && life.shown === 'exited';
    if (everRan(life.times)) this.#ledger.prove(life, STARTED, proof(STARTED));
    // Of a start that failed the end is proven all the same; the verdict knows the difference.
    if (ended) this.#ledger.prove(life, STOPPED, proof(STOPPED));
    this.#recordUnseenRun(life);
  }

  #learn(life: Life, times: ExactTimes): void {
    this.#ledger.learn(life, times);
    if (!life.object.isSandbox && life.times !== null && everRan(life.times)) life.ran = true;
  }

  /**
   * Since when an id can have reached a stage. Where no list ever showed the id, the list that lacked it is no bound: it
   * may have come and gone before. Its own `created_at` is one.
   */
  #lowerBound(life: Life, stage: Stage = DELETED): Bound {
    return life.listed ? floorOf(life, stage) : this.#ledger.createdBound(life);
  }

  #recordEvent(event: ReceivedEvent, replayed: boolean, life: Life | undefined): void {
    const object = life?.object ?? event.object;
    this.#ledger.emit(object, {
      kind: 'event',
      t: since(this.#epochStart, event.received),
      id: event.id,
      type: event.type,
      createdNs: String(event.createdNs),
      isSandbox: object?.isSandbox ?? false,
      replayed,
      hasSandboxStatus: event.hasSandboxStatus,
    });
  }
}

/** What is said of an event that announced nothing. */
const NO_TIMES = { occurred: null, lateness: null, delivery: null };

/** Counts an event of a session and says whether it was replayed. */
function countEvent(session: OpenSession, event: ReceivedEvent): boolean {
  session.armed ??= event.received;
  session.silent = false;
  session.events += 1;
  if (event.createdNs >= session.openedNs) session.replaying = false;
  if (session.replaying) session.replayed += 1;
  return session.replaying;
}

/**
 * Whether a STOPPED says that the id ran. A runtime may announce the end of a container whose start failed; it says so in the
 * status. Where the payload was dropped nobody knows what it said.
 */
function saysItRan({ object, times }: Life, event: ReceivedEvent): boolean {
  if (object.isSandbox) return true;
  return event.object !== null && (times === null || !startFailed(times));
}

/** Every stage from `from` on was still to come at that moment. */
function raiseFloors(life: Life, from: Stage, at: Mono): void {
  for (const stage of STAGES) {
    if (stage >= from) life.floors[stage] = at;
  }
}

/** A list shows that every stage before this one has been passed. */
function passedBefore(life: Life, reached: Stage, answer: Answer): void {
  for (const stage of STAGES) {
    if (stage < reached) life.passed[stage] ??= spanOf(answer);
  }
}

const isRunning = ({ sandboxes, containers }: Previous, id: string): boolean =>
  (containers?.items.get(id) ?? sandboxes?.items.get(id))?.state === 'running';

const spanOf = ({ start, end }: Answer): Span => ({ start, end });

const floorOf = (life: Life, stage: Stage): Bound => ({ from: life.floors[stage], byWallClock: false });

function stageShown(state: Exclude<ShownState, 'unknown'>): Stage {
  if (state === 'created') return CREATED;
  return state === 'running' ? STARTED : STOPPED;
}

/** The kubelet's word for a shown state (pkg/kubelet/pleg/generic.go, convertState: CREATED is `unknown`). */
const plegState = (state: ShownState): PlegState => (state === 'created' ? 'unknown' : state);
