/*
 * Judges expectations whose event has not come.
 *
 *   expected ── overdueAfter ──► overdue (reported; the exact times are queried) ── missedAfter ──► missed, or unobservable
 *      └── its event, any time in the session ──► announced
 *
 * `missed` is an accusation and needs all of: the same session still, covered from the start of the window until now, the
 * reader drained past the deadline, and the exact time, where it is known, covered too. Everything else that did not come is
 * `unobservable`.
 */

import { TokenBucket } from '../../platform/tokenBucket.ts';
import { type Micros, type Mono, millis, mono, shift, since } from '../../protocol/units.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import type { OpenSession } from './coverage.ts';
import type { Expectation } from './expectation.ts';
import { overdueRecord, plainFinding } from './findings.ts';
import { DELETED, STARTED, STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import {
  causeOf,
  exactTime,
  hadHappened,
  mayBeUnannounced,
  unobservableReason,
} from './unobservableReason.ts';

/** A judgement waits this long for a list that confirms the event which it rests on. */
const CONFIRMATION_TIMEOUT: Micros = millis(5 * 60_000);
/** A runtime that stopped announcing anything must not double what is written. At once, as many as the controller watches of a node. */
const OVERDUE_LIMIT = { capacity: 200, interval: millis(1000) };

export class Judgements {
  readonly #parts: ComparisonParts;
  readonly #overdueLimit = new TokenBucket(OVERDUE_LIMIT);

  constructor(parts: ComparisonParts) {
    this.#parts = parts;
  }

  get overdueSuppressed(): number {
    return this.#overdueLimit.denied;
  }

  tick(): void {
    this.#parts.expectations.forEachOpen((container, stage, expectation) =>
      this.#judge(container, stage, expectation),
    );
  }

  #judge(container: TrackedContainer, stage: Stage, expectation: Expectation): void {
    const { emitter, options } = this.#parts;
    if (!expectation.isOverdue && emitter.now >= shift(expectation.proof.to, options.overdueAfter)) {
      expectation.isOverdue = true;
      this.#reportOverdue(container, stage, expectation);
      const unknown = stage !== DELETED && exactTime(container, stage) === null;
      if (unknown) emitter.query(container.identity);
    }
    const deadline = shift(provenAt(container, expectation), options.missedAfter);
    this.#parts.kubelet.missIsNear(container, stage, expectation.proof, deadline);
    if (emitter.now >= deadline) this.#decide(container, stage, expectation, deadline);
  }

  /** Only the start and the stop of containers are published while they are overdue. */
  #reportOverdue(container: TrackedContainer, stage: Stage, expectation: Expectation): void {
    if (container.isSandbox || (stage !== STARTED && stage !== STOPPED)) return;
    const { emitter } = this.#parts;
    const { now, epochStart } = emitter;
    if (!this.#overdueLimit.tryTake(now)) return;
    const findingId = emitter.mintId();
    expectation.findingId = findingId;
    const overdue = { findingId, at: now, epochStart };
    const exact = exactTime(container, stage);
    emitter.emit(container.identity, overdueRecord(overdue, container, stage, expectation.proof, exact));
  }

  #decide(container: TrackedContainer, stage: Stage, expectation: Expectation, deadline: Mono): void {
    const { coverage, emitter, expectations } = this.#parts;
    const { session } = coverage;
    // Until the reader has drained past the deadline the event may still be in the socket.
    if (session === null || session.watermark < deadline) return;
    // Nothing is decided because of an event before lists have confirmed or contradicted it.
    const { by } = expectation.proof;
    const isOfEvent = by !== null && container.confirmations.isUnconfirmed(by);
    const mustBeConfirmed = isOfEvent && !expectation.withoutEvent();
    const reason = mustBeConfirmed
      ? 'unconfirmed'
      : unobservableReason(container, stage, expectation, {
          coverage,
          session,
          profile: expectations.profile,
        });
    if (mustBeConfirmed && emitter.now < shift(deadline, CONFIRMATION_TIMEOUT)) return;
    if (this.#cameAfterAll(container, stage)) expectations.announce(container, stage, emitter.now);
    else if (reason === null) this.#reportMissed(container, stage, expectation, session);
    else if (reason === 'start_failed' && !this.#endOfFailureIsAnnounced(stage)) {
      this.#reportFailedStart(container, stage, expectation);
    } else {
      expectations.becomeUnobservable(container, stage, expectation, reason);
      this.#countUnannounced(container, stage, expectation, session);
    }
  }

  /** An event that lists contradicted was right: what it announced had happened when it came. */
  #cameAfterAll(container: TrackedContainer, stage: Stage): boolean {
    const contradiction = container.events.contradicted(stage);
    if (contradiction === null || !hadHappened(container, stage, contradiction.received)) return false;
    this.#parts.emitter.resolve(container, contradiction.findingId, this.#parts.emitter.now);
    return true;
  }

  #reportMissed(
    container: TrackedContainer,
    stage: Stage,
    expectation: Expectation,
    session: OpenSession,
  ): void {
    const { emitter, expectations, options } = this.#parts;
    const { epochStart } = emitter;
    const proven = provenAt(container, expectation);
    const kubelet = this.#parts.kubelet.proofOf(container, stage, expectation.proof, proven);
    const details = {
      session: session.session,
      armedAt: since(epochStart, session.armed ?? session.opened),
      coveredSince: since(epochStart, session.since),
      drainedTo: since(epochStart, session.watermark),
      eventsInSession: session.events,
      lastEvent: session.lastEvent === null ? null : since(epochStart, session.lastEvent),
      ...this.#parts.starvation.missed(container, expectation),
      ...(kubelet === null ? {} : { kubelet }),
    };
    const cause = causeOf(expectation.proof, exactTime(container, stage), options.overdueAfter);
    const judgement = emitter.judgement('missed', cause, details, expectation.findingId);
    expectations.missed(container, stage, judgement.findingId);
    emitter.emitStageFinding(judgement, container, stage, expectation.proof);
    if (stage === DELETED) expectations.endNotShown(container, expectation.proof);
  }

  /** Events that a runtime may never have announced are not due. */
  #countUnannounced(
    container: TrackedContainer,
    stage: Stage,
    { proof }: Expectation,
    session: OpenSession,
  ): void {
    const { coverage, expectations } = this.#parts;
    if (mayBeUnannounced(container, stage, expectations.profile)) return;
    if (coverage.countUnannounced(proof.from)) this.#reportSilentStream(session);
  }

  /** Some runtimes announce the end of what failed to start; none announces the start. */
  #endOfFailureIsAnnounced(stage: Stage): boolean {
    return stage === STOPPED && !this.#parts.expectations.profile.failedStartsUnannounced;
  }

  /** A failed start that is not announced is a blind spot, nothing that was due. */
  #reportFailedStart(container: TrackedContainer, stage: Stage, expectation: Expectation): void {
    const { emitter, expectations } = this.#parts;
    expectations.waive(container, stage);
    // One failed start is one finding, on the end that nobody announced.
    if (stage !== STOPPED) return;
    const judgement = emitter.judgement('unannounced', 'failed_start', {}, expectation.findingId);
    emitter.emitStageFinding(judgement, container, stage, expectation.proof);
  }

  #reportSilentStream(session: OpenSession): void {
    const { emitter } = this.#parts;
    const judgement = emitter.judgement('silent_stream', 'no_event_at_all', {
      transitions: session.unannounced,
      session: session.session,
      openedAt: since(emitter.epochStart, session.opened),
      drainedTo: since(emitter.epochStart, session.watermark),
    });
    emitter.emit(null, plainFinding(judgement, null));
  }
}

/**
 * When the whole proof was there. An event proves nothing before a list confirms it or shows the same, and what it announced may have
 * happened at any time until then.
 */
function provenAt({ confirmations }: TrackedContainer, { proof: { by, to }, shownAt }: Expectation): Mono {
  if (by === null) return to;
  const confirmed = confirmations.confirmedAt(by) ?? shownAt ?? to;
  return mono(Math.max(to, Math.min(confirmed, shownAt ?? confirmed)));
}
