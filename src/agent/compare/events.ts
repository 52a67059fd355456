/*
 * Events: what an event, and the statuses it carries, prove of each id, and what its own status says when it is asked for.
 *
 * An event says that its own stage was reached, and with that every earlier one, where the id ran at all. Its statuses show the
 * pod as it was before the event was sent. A replayed event only discharges: what it says is of a time that nobody watched.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { ExactTimes, ReceivedEvent, ShownStatus, StatusAnswer } from '../../protocol/observation.ts';
import { EVENT_TYPES } from '../../protocol/record.ts';
import type { Mono } from '../../protocol/units.ts';
import type { OpenSession } from './coverage.ts';
import type { Outbox } from './emitter.ts';
import type { EventVerdict } from './eventClassifier.ts';
import { claim, isOpen } from './eventConfirmation.ts';
import { eventFinding, since, type Verdict } from './findings.ts';
import type { Ledger, Proof } from './ledger.ts';
import {
  CREATED,
  completed,
  everRan,
  type Life,
  STARTED,
  STOPPED,
  type Stage,
  stageOf,
  startFailed,
} from './trackedContainer.ts';

export class Events {
  readonly #ledger: Ledger;
  readonly #outbox: Outbox;

  constructor(ledger: Ledger, outbox: Outbox) {
    this.#ledger = ledger;
    this.#outbox = outbox;
  }

  received(event: ReceivedEvent): void {
    const { coverage } = this.#ledger;
    if (coverage.is !== 'open' || coverage.session !== event.session) return;
    this.#outbox.reach(event.received);
    const replayed = countEvent(coverage, event);
    const life = this.#lifeOf(event, replayed);
    this.#recordEvent(event, replayed, life);
    const stage = stageOf(event.type);
    if (stage === undefined) {
      if (life === undefined) this.#ledger.streamGap(event.received, 'unknown_event_type');
      else this.#ledger.taint(life);
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

  #recordVerdict(life: Life, stage: Stage, event: ReceivedEvent): void {
    const judged = this.#ledger.judgeEvent(life, stage, event.received, event.createdNs);
    if (judged === null) return;
    const standing = life.standings[stage];
    const told = standing.is === 'expected' ? standing.expectation.finding : null;
    const verdict = this.#outbox.verdict(
      judged.kind,
      judged.cause,
      this.#basis(life, stage, judged.kind),
      told,
    );
    const finding = eventFinding(verdict, life, stage, event.received, judged);
    if (judged.byWallClock) this.#outbox.emitUnlessStepped(life.object, finding);
    else this.#outbox.emit(life.object, finding);
  }

  /** What a verdict on an event rests on, beside the event and the exact times. */
  #basis(life: Life, stage: Stage, kind: EventVerdict['kind']): Verdict['details'] {
    const standing = life.standings[stage];
    switch (kind) {
      case 'duplicate':
        return { firstReceived: this.#offset(life.heardAt[stage]) };
      case 'late':
        return standing.is === 'missed' ? { missed: standing.finding } : {};
      case 'out_of_order': {
        const after = life.furthest;
        if (after === -1) return {};
        const short = !life.object.isSandbox && stage === STARTED && after === STOPPED;
        return {
          after: EVENT_TYPES[after],
          afterReceived: this.#offset(life.heardAt[after]),
          habitOfRuntime: short && this.#ledger.profile.stoppedMayComeFirst,
        };
      }
      case 'stale': {
        const passed = life.passed[stage];
        return { list: passed === null ? null : this.#outbox.span(passed) };
      }
    }
  }

  #offset(at: Mono | null): number | null {
    return at === null ? null : since(this.#outbox.epochStart, at);
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
    if (life === undefined || state === 'unknown') return;
    this.#learn(life, times);
    if (state === 'running') life.ran = true;
    const proof = (stage: Stage): Proof => ({
      ...this.#ledger.lowerBound(life, stage),
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
    if (event.object !== null) this.#ledger.lives.identify(known, completed(known.object, event.object));
    return known;
  }

  /** An event of a later stage proves the earlier ones, where the id ran at all. */
  #concludeFromEvent(life: Life, stage: Stage, event: ReceivedEvent): void {
    if (life.heardAt[stage] === null || isOpen(life, stage)) claim(life, stage, event.received);
    life.heard = event.received;
    life.heardAt[stage] ??= event.received;
    if (stage > life.furthest) life.furthest = stage;
    if (stage === STARTED || (stage === STOPPED && saysItRan(life, event, this.#ledger.profile)))
      life.ran = true;
    const proof = (earlier: Stage): Proof => ({
      ...this.#ledger.lowerBound(life, earlier),
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
      ...this.#ledger.lowerBound(life, stage),
      by: null,
      to: at,
      cause: 'unannounced_by_list',
      evidence: 'started_at in its status',
    });
    const ended = life.times.finishedNs > 0n && life.shown === 'exited';
    if (everRan(life.times)) this.#ledger.prove(life, STARTED, proof(STARTED));
    // Of a start that failed the end is proven all the same; the verdict knows the difference.
    if (ended) this.#ledger.prove(life, STOPPED, proof(STOPPED));
  }

  #learn(life: Life, times: ExactTimes): void {
    this.#ledger.learn(life, times);
    if (!life.object.isSandbox && life.times !== null && everRan(life.times)) life.ran = true;
  }

  #recordEvent(event: ReceivedEvent, replayed: boolean, life: Life | undefined): void {
    const object = life?.object ?? event.object;
    this.#outbox.emit(object, {
      type: 'container_event',
      t: since(this.#outbox.epochStart, event.received),
      containerId: event.id,
      eventType: event.type,
      createdNs: String(event.createdNs),
      isSandbox: object?.isSandbox ?? false,
      replayed,
      hasSandboxStatus: event.hasSandboxStatus,
    });
  }
}

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
 * status. Where there is none, as its own question for it may have failed, only one that is known never to announce that says
 * it. Where the payload was dropped nobody knows what it said.
 */
function saysItRan(
  { object, times }: Life,
  event: ReceivedEvent,
  { failedStartsUnannounced }: PlegProfile,
): boolean {
  if (object.isSandbox) return true;
  if (event.object === null) return false;
  return times === null ? failedStartsUnannounced : !startFailed(times);
}
