/*
 * Relisting: what two list answers, held against the ones before, prove of each id.
 *
 * A list shows a state, and so a stage; what it lacks is gone, where it could be read whole and nothing newer is known. The
 * two calls of a relist are two moments, and each is compared with the last whole answer of its own kind. What lists did not
 * show in between, and what they show twice, is told here too.
 */

import type { ListAnswer, ListedItem, Relist, ShownState } from '../../protocol/observation.ts';
import type { PlegState } from '../../protocol/record.ts';
import { between, type Mono, millis, mono, shift } from '../../protocol/units.ts';
import { covers } from './coverage.ts';
import { findTwins, Namesakes, notTwins } from './duplicateContainers.ts';
import type { Outbox } from './emitter.ts';
import { confirmAll, examine, hasOpen } from './eventConfirmation.ts';
import { eventFinding, plainFinding, shortLifeFinding, since, timesOf } from './findings.ts';
import { type Ledger, waiveUpTo } from './ledger.ts';
import { type ShortLife, unseenExit, unseenRun, wholeLife } from './shortLife.ts';
import {
  type Between,
  CREATED,
  completed,
  DELETED,
  everRan,
  type Life,
  type Showing,
  type Span,
  STAGES,
  STARTED,
  STOPPED,
  type Stage,
  startFailed,
} from './trackedContainer.ts';
import { REMEMBER } from './trackedContainers.ts';
import { Quiet } from './unchangedLists.ts';
import { hadHappened } from './unobservableReason.ts';

/** The last whole answers before the present ones; null before the first. */
interface Previous {
  readonly sandboxes: ListAnswer | null;
  readonly containers: ListAnswer | null;
}

export class Relisting {
  readonly #ledger: Ledger;
  readonly #outbox: Outbox;
  #previous: Previous = { sandboxes: null, containers: null };
  /** Whether no list call failed since the answers before. */
  #consecutive = true;
  readonly #quietSandboxes = new Quiet();
  readonly #quietContainers = new Quiet();
  readonly #namesakes = new Namesakes();

  constructor(ledger: Ledger, outbox: Outbox) {
    this.#ledger = ledger;
    this.#outbox = outbox;
  }

  /** A list call failed: what lies between the lists around it is longer than a period. */
  failed(): void {
    this.#consecutive = false;
  }

  compare(relist: Relist): void {
    const { sandboxes, containers } = relist;
    this.#compare(sandboxes, this.#previous.sandboxes, true);
    this.#judgeAbsences(sandboxes);
    this.#compare(containers, this.#previous.containers, false);
    this.#recordTwins(relist);
    this.#consecutive = sandboxes.whole && containers.whole;
    this.#previous = {
      sandboxes: sandboxes.whole ? sandboxes : this.#previous.sandboxes,
      containers: containers.whole ? containers : this.#previous.containers,
    };
  }

  #compare(answer: ListAnswer, previous: ListAnswer | null, sandboxes: boolean): void {
    const { lives } = this.#ledger;
    const quiet = sandboxes ? this.#quietSandboxes : this.#quietContainers;
    const asTheyWere = quiet.livesOf(answer, lives.stirrings);
    if (asTheyWere !== null) {
      for (const life of asTheyWere) stillShown(life, answer);
      return;
    }
    const resting: Life[] = [];
    for (const item of answer.items.values()) {
      const life = lives.resting(item);
      if (life === undefined) {
        this.#compareItem(item, answer, previous);
        continue;
      }
      stillShown(life, answer);
      resting.push(life);
    }
    const absent = answer.whole ? this.#compareAbsences(answer, previous, sandboxes) : null;
    quiet.compared(answer, lives.stirrings, resting, absent);
  }

  /** Returns how many lives a whole answer lacks. */
  #compareAbsences(answer: ListAnswer, previous: ListAnswer | null, sandboxes: boolean): number {
    let absent = 0;
    for (const life of this.#ledger.lives) {
      if (life.object.isSandbox !== sandboxes || answer.items.has(life.object.id)) continue;
      absent += 1;
      this.#compareAbsent(life, answer, previous);
    }
    return absent;
  }

  #compareItem(item: ListedItem, answer: ListAnswer, previous: ListAnswer | null): void {
    const life = this.#ledger.lives.get(item.object.id) ?? this.#ledger.follow(item.object, answer.end);
    if (life === undefined) return;
    if (life.item !== item) {
      life.item = item;
      // A list knows best what it lists.
      const { isSandbox } = item.object;
      this.#ledger.lives.identify(life, { ...completed(life.object, item.object), isSandbox });
    }
    life.lastSign = answer.end;
    this.#change(life, plegState(item.state), answer, previous);
    this.#noteListed(life, previous);
    if (hasOpen(life)) this.#examineClaims(life, { ...spanOf(answer), shown: item.state });
    if (item.state === 'unknown') return;
    if (life.shown === 'exited' && item.state === 'running') this.#regress(life, answer);
    if (item.state === 'exited' && life.shown !== 'exited') this.#noteExited(life, answer, previous);
    life.shown = item.state;
    if (item.state === 'running') life.ran = true;
    passedBefore(life, stageShown(item.state), answer);
    if (previous === null) waiveUpTo(life, stageShown(item.state));
    else this.#proveShown(life, item.state, answer.end);
    stillShown(life, answer);
    this.#recordUnseenRun(life);
    // A claim waits for what the next list shows, were it the same; and without a whole one before, this one could prove nothing yet.
    if (previous !== null && !hasOpen(life)) life.rest = item;
  }

  /** What it means that a list shows an id at all, in whatever state. */
  #noteListed(life: Life, previous: ListAnswer | null): void {
    const first = !life.listed;
    life.listed = true;
    life.absence = null;
    if (first && previous === null) waiveUpTo(life, CREATED);
    if (first && previous !== null && this.#saysSinceWhen(previous, life.object.id)) {
      raiseFloors(life, CREATED, previous.start);
    }
    const gone = life.standings[DELETED].is;
    if (gone !== 'expected' && gone !== 'missed') return;
    this.#ledger.retract(life, DELETED, 'listed_again');
    life.reached = life.shown === null ? CREATED : stageShown(life.shown);
  }

  #noteExited(life: Life, answer: ListAnswer, previous: ListAnswer | null): void {
    life.exited = spanOf(answer);
    const cameSince = life.shown === null && previous?.items.has(life.object.id) === false;
    if (cameSince) life.unseen = this.#unseen(life, answer, previous);
  }

  /**
   * An answer that lacked an id says since when it can be there, unless it was there and not followed. One from before what is
   * remembered says nothing: the events of the id may have come since, and be forgotten.
   */
  #saysSinceWhen({ start, items }: ListAnswer, id: string): boolean {
    return !items.has(id) && start >= shift(this.#outbox.now, -REMEMBER);
  }

  /** An id that a list shows is at least at the shown stage; whether it ever ran is another matter. */
  #proveShown(life: Life, state: Exclude<ShownState, 'unknown'>, to: Mono): void {
    // A sandbox first seen NOTREADY may never have come up.
    if (life.object.isSandbox && state === 'exited' && !life.ran) return;
    this.#proveListed(life, CREATED, state, to);
    if (state === 'created') return;
    if (life.ran) this.#proveListed(life, STARTED, state, to);
    if (state === 'running') return;
    if (life.ran) this.#proveListed(life, STOPPED, state, to);
    else this.#question(life);
  }

  #proveListed(life: Life, stage: Stage, state: ShownState, to: Mono): void {
    if (!this.#ledger.isProvable(life, stage)) return;
    this.#ledger.prove(life, stage, {
      ...this.#ledger.lowerBound(life, stage),
      by: null,
      to,
      cause: 'unannounced_by_list',
      evidence: `listed ${state}`,
    });
  }

  #compareAbsent(life: Life, answer: ListAnswer, previous: ListAnswer | null): void {
    life.rest = null;
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
  #judgeAbsences(sandboxes: ListAnswer): void {
    if (this.#ledger.profile.announcesRemovedWithSandbox) return;
    for (const life of this.#ledger.lives) {
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
    const bound = this.#ledger.lowerBound(life, DELETED);
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

  #change(life: Life, to: PlegState, answer: ListAnswer, previous: ListAnswer | null): void {
    const old = life.state;
    life.state = to;
    if (old === to || previous === null) return;
    const from = life.floors[DELETED] ?? previous.start;
    this.#outbox.emit(life.object, {
      type: 'relist_change',
      t: since(this.#outbox.epochStart, answer.end),
      containerId: life.object.id,
      isSandbox: life.object.isSandbox,
      window: { from: since(this.#outbox.epochStart, from), to: since(this.#outbox.epochStart, answer.end) },
      oldState: old,
      newState: to,
    });
  }

  /**
   * EXITED -> RUNNING of one id: recorded. Lists that contradict each other prove neither that it started nor that it
   * stopped, so from now on neither is due.
   */
  #regress(life: Life, answer: ListAnswer): void {
    const verdict = this.#outbox.verdict('regression', 'state_went_back', {
      listedExited: life.exited && this.#outbox.span(life.exited),
      listedRunning: this.#outbox.span(answer),
      exactTimes: timesOf(life),
    });
    this.#outbox.emit(life.object, plainFinding(verdict, life.object));
    life.regressed = true;
    life.unseen = null;
    for (const stage of [STARTED, STOPPED] as const) {
      const standing = life.standings[stage];
      if (standing.is === 'announced') {
        // Were that event spurious, the next one would not be due either.
        this.#ledger.settle(life, stage, { ...standing, waived: true });
        continue;
      }
      this.#ledger.retract(life, stage, 'state_went_back');
      this.#ledger.settle(life, stage, { is: 'waived' });
    }
    life.reached = STARTED;
  }

  /** Exited, and nothing shows that it ever ran: only its exact times can tell whether events were due. */
  #question(life: Life): void {
    if (life.object.isSandbox || life.questioned || life.standings[STARTED].is !== 'none') return;
    life.questioned = true;
    this.#outbox.ask(life.object);
  }

  /** More became known of an id: what lists did not show of it may be told now. */
  reconsider(id: string): void {
    const life = this.#ledger.lives.get(id);
    if (life !== undefined) this.#recordUnseenRun(life);
  }

  // What lists did not show, or show too much of.

  #examineClaims(life: Life, list: Showing): void {
    const shown = list.shown === 'unknown' ? null : stageShown(list.shown);
    const lead = life.object.isSandbox ? this.#ledger.profile.lead : millis(0);
    for (const { stage, received, lists, again } of examine(life, shown, list, lead)) {
      // Where its exact time says that it had happened when the event came, it is the lists that are wrong.
      if (hadHappened(life, stage, received)) continue;
      const verdict = this.#outbox.verdict('spurious', 'lists_contradict', {
        lists: lists.map((each) => ({ ...this.#outbox.span(each), shown: each.shown })),
      });
      this.#outbox.emit(life.object, eventFinding(verdict, life, stage, received, NO_TIMES));
      // The same was said once more since, and nothing contradicts that yet.
      if (again) continue;
      this.#ledger.unannounce(life, stage, { received, finding: verdict.finding });
      if (shown !== null) life.reached = shown;
      // Only a list or a status can say now that it ran.
      life.ran = life.shown === 'running' || (life.times !== null && everRan(life.times));
    }
  }

  /** The stretch between the present answer and the one right before it, where everything in it was watched. */
  #unseen(life: Life, answer: ListAnswer, previous: ListAnswer | null): Between | null {
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

  #recordShortLife(life: Life, answer: ListAnswer, previous: ListAnswer | null): void {
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
    const verdict = this.#outbox.verdict('short_life', short.cause, {});
    this.#outbox.emit(life.object, shortLifeFinding(verdict, life, short));
  }

  #recordTwins(relist: Relist): void {
    const before = this.#previous;
    const runs = (id: string) => ({
      before: runningIn(before, id)?.end ?? null,
      now: runningIn(relist, id)?.start ?? null,
    });
    for (const { one, other, cause, together } of findTwins(
      this.#namesakes.among(this.#ledger.lives),
      runs,
    )) {
      const listed = ({ object: { id } }: Life) =>
        [runningIn(before, id), runningIn(relist, id)].map((list) => list && this.#outbox.span(list));
      const verdict = this.#outbox.verdict('duplicate_container', cause, {
        other: other.object.id,
        together: together && this.#outbox.span(together),
        exactTimes: timesOf(one),
        exactTimesOfOther: timesOf(other),
        listedRunning: listed(one),
        listedRunningOfOther: listed(other),
      });
      const finding = plainFinding(verdict, one.object);
      if (together === null) this.#outbox.emit(one.object, finding);
      else this.#outbox.emitUnlessStepped(one.object, finding, () => notTwins(one, other));
    }
  }
}

/** What is said of an event that announced nothing. */
const NO_TIMES = { occurred: null, lateness: null, delivery: null };

/** What every list says of an id that shows it in a known state. */
function stillShown(life: Life, answer: ListAnswer): void {
  life.lastSign = answer.end;
  const next = life.shown === null ? undefined : STAGES[stageShown(life.shown) + 1];
  if (next !== undefined) raiseFloors(life, next, answer.start);
}

/** Every stage from `from` on was still to come at that moment. */
function raiseFloors(life: Life, from: Stage, at: Mono): void {
  for (const stage of STAGES) {
    if (stage >= from) life.floors[stage] = at;
  }
}

/** A list shows that every stage before this one has been passed. */
function passedBefore(life: Life, reached: Stage, answer: ListAnswer): void {
  for (const stage of STAGES) {
    if (stage < reached) life.passed[stage] ??= spanOf(answer);
  }
}

/** The answer that shows an id running; null where none does. */
const runningIn = ({ sandboxes, containers }: Previous, id: string): ListAnswer | null =>
  [containers, sandboxes].find((answer) => answer?.items.get(id)?.state === 'running') ?? null;

const spanOf = ({ start, end }: ListAnswer): Span => ({ start, end });

function stageShown(state: Exclude<ShownState, 'unknown'>): Stage {
  if (state === 'created') return CREATED;
  return state === 'running' ? STARTED : STOPPED;
}

/** The kubelet's word for a shown state (pkg/kubelet/pleg/generic.go, convertState: CREATED is `unknown`). */
const plegState = (state: ShownState): PlegState => (state === 'created' ? 'unknown' : state);
