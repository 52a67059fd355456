/*
 * Events: what an event and the statuses it carries prove of each id, and what a queried status proves.
 *
 * An event says that its own stage was reached, and so every earlier one, where the id ran at all. Its statuses show the pod
 * as it was before the event was sent. A replayed event only discharges: it is about a time that nobody watched.
 */

import type { ExactTimes, ReceivedEvent, ShownStatus, StatusAnswer } from '../../protocol/observation.ts';
import { type ContainerExit, EVENT_TYPES, EXIT_REASONS } from '../../protocol/record.ts';
import { type Mono, since } from '../../protocol/units.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import { classifyEvent, type EventClassification } from './eventClassifier.ts';
import type { Showing } from './expectation.ts';
import { eventFinding, type Judgement } from './findings.ts';
import { CREATED, STARTED, STOPPED, type Stage, stageOf } from './stages.ts';
import { completed, type TrackedContainer } from './trackedContainer.ts';

const MAX_EXIT_CODE = 255;

/** The statement of a container's status, and when it was received. */
type QueriedTimes = Pick<Extract<StatusAnswer, { found: true }>, 'times' | 'at'>;

export class Events {
  readonly #parts: ComparisonParts;

  constructor(parts: ComparisonParts) {
    this.#parts = parts;
  }

  received(event: ReceivedEvent): void {
    const { coverage, emitter, expectations, firstLists, starvation } = this.#parts;
    const replayed = coverage.received(event);
    // An event of another session.
    if (replayed === null) return;
    emitter.reach(event.received);
    starvation.eventReceived(event.received);
    if (coverage.session?.events === 1) firstLists.watchedAgain(event.received);
    const container = this.#containerOf(event, replayed);
    this.#recordEvent(event, replayed, container);
    const stage = stageOf(event.type);
    if (stage === undefined) {
      if (container === undefined) expectations.streamGap(event.received, 'unknown_event_type');
      else expectations.taint(container);
      return;
    }
    if (container === undefined) {
      expectations.announceEarly(event.id, stage, event.received);
      return;
    }
    if (event.times !== null) this.#learn(container, event.times);
    if (!replayed) this.#reportClassification(container, stage, event);
    expectations.announce(container, stage, event.received);
    if (replayed) return;
    this.#concludeFromEvent(container, stage, event);
    for (const other of event.others) {
      this.#concludeFromStatus(other, {
        to: event.received,
        cause: 'sequence',
        evidence: `${other.state} in the ${EVENT_TYPES[stage]} of ${event.id}`,
      });
    }
  }

  answered(answer: StatusAnswer): void {
    const container = this.#parts.containers.forUpdate(answer.id);
    if (container === undefined) return;
    container.statusAsked = answer.asked;
    if (!answer.found) {
      container.statusAnswer = answer.reason;
    } else if (answer.sandbox === null) {
      container.statusAnswer = 'found';
      this.#learn(container, answer.times);
      this.#concludeFromTimes(container, answer);
    } else {
      container.statusAnswer = 'created_at_and_state_only';
      const { id, at, times, sandbox: state } = answer;
      const evidence = `${state} in its status`;
      this.#concludeFromStatus({ id, state, times }, { to: at, cause: 'unannounced_by_list', evidence });
    }
  }

  #learn(container: TrackedContainer, times: ExactTimes): void {
    this.#parts.expectations.learn(container, times);
    this.#parts.kubelet.dated(container);
  }

  #containerOf(event: ReceivedEvent, replayed: boolean): TrackedContainer | undefined {
    const { containers, expectations } = this.#parts;
    const known = containers.forUpdate(event.id);
    if (known === undefined) {
      const unusable = replayed || event.object === null;
      return unusable ? undefined : expectations.track(event.object, event.received);
    }
    known.lastSign = event.received;
    if (event.object !== null) containers.identify(known, completed(known.identity, event.object));
    return known;
  }

  #recordEvent(event: ReceivedEvent, replayed: boolean, container: TrackedContainer | undefined): void {
    const { emitter } = this.#parts;
    const object = container?.identity ?? event.object;
    const exit = exitOf(event.times);
    emitter.emit(object, {
      type: 'container_event',
      t: since(emitter.epochStart, event.received),
      containerId: event.id,
      eventType: event.type,
      createdNs: String(event.createdNs),
      isSandbox: object?.isSandbox ?? false,
      replayed,
      hasSandboxStatus: event.hasSandboxStatus,
      ...(exit === null ? {} : { exit }),
    });
  }

  #reportClassification(container: TrackedContainer, stage: Stage, event: ReceivedEvent): void {
    const classification = this.#classify(container, stage, event);
    if (classification === null) return;
    const { kind, cause, byWallClock } = classification;
    const { emitter } = this.#parts;
    const standing = container.stages.standing(stage);
    const overdueId = standing.is === 'expected' ? standing.expectation.findingId : null;
    const details = { ...this.#detailsOf(container, stage, kind), ...this.#hintFor(kind, event) };
    const judgement = emitter.judgement(kind, cause, details, overdueId);
    const finding = eventFinding(judgement, container, stage, event.received, classification);
    if (byWallClock) emitter.emitUnlessStepped(container.identity, finding);
    else emitter.emit(container.identity, finding);
  }

  #classify(
    container: TrackedContainer,
    stage: Stage,
    { received, createdNs }: ReceivedEvent,
  ): EventClassification | null {
    if (container.hasRegressed) return null;
    const { coverage, emitter, options, times } = this.#parts;
    const { overdueAfter, lateAfter } = options;
    const built = times.place(createdNs, emitter.now);
    const coveredSince = (at: Mono) => times.holdsSince(at) && coverage.covers(at);
    const drained = coverage.session?.watermark ?? received;
    const context = { stage, received, built, overdueAfter, lateAfter, drained, coveredSince };
    return classifyEvent(container, context);
  }

  /** Being held back explains why an event comes after others, not why it comes twice or out of order. */
  #hintFor(kind: EventClassification['kind'], { createdNs }: ReceivedEvent): Judgement['details'] {
    const { emitter, starvation, times } = this.#parts;
    if (kind !== 'late' && kind !== 'stale') return {};
    return starvation.hintForDelay(times.place(createdNs, emitter.now));
  }

  /** The evidence of a finding on an event, beside the event and the exact times. */
  #detailsOf(
    { events, isSandbox, lists, stages }: TrackedContainer,
    stage: Stage,
    kind: EventClassification['kind'],
  ): Judgement['details'] {
    const { emitter, expectations } = this.#parts;
    const standing = stages.standing(stage);
    switch (kind) {
      case 'duplicate':
        return { firstReceived: this.#offset(events.first(stage)) };
      case 'late':
        return standing.is === 'missed' ? { missed: standing.findingId } : {};
      case 'out_of_order': {
        const after = events.furthest;
        if (after === -1) return {};
        const short = !isSandbox && stage === STARTED && after === STOPPED;
        return {
          after: EVENT_TYPES[after],
          afterReceived: this.#offset(events.first(after)),
          habitOfRuntime: short && expectations.profile.stoppedMayComeFirst,
        };
      }
      case 'stale': {
        const passed = lists.passed(stage);
        return { list: passed === null ? null : emitter.span(passed) };
      }
    }
  }

  #offset(at: Mono | null): number | null {
    return at === null ? null : since(this.#parts.emitter.epochStart, at);
  }

  /** An event of a later stage proves the earlier ones, where the id ran at all. */
  #concludeFromEvent(container: TrackedContainer, stage: Stage, event: ReceivedEvent): void {
    const { expectations } = this.#parts;
    const { confirmations, events, lists, stages } = container;
    if (events.first(stage) === null || confirmations.isUnconfirmed(stage)) {
      confirmations.await(stage, event.received);
    }
    events.record(stage, event.received);
    if (stage === STARTED || (stage === STOPPED && this.#provesRun(container, event))) stages.ran = true;
    const evidence = `${EVENT_TYPES[stage]} received`;
    const prove = (earlier: Stage) =>
      expectations.prove(container, earlier, { by: stage, to: event.received, cause: 'sequence', evidence });
    // A sandbox that never came up is deleted with an event although no event announced it before.
    const provesCreated = !container.isSandbox || stages.ran;
    if (stage > CREATED && provesCreated) prove(CREATED);
    if (stage > STARTED && stages.ran) prove(STARTED);
    if (stage > STOPPED && stages.ran) prove(STOPPED);
    stages.reach(stage);
    // A list showed that it had ended before anything proved that it ever ran.
    if (stage === STARTED && lists.shown === 'exited') {
      expectations.prove(container, STOPPED, {
        by: stage,
        to: lists.exited?.end ?? event.received,
        cause: 'unannounced_by_list',
        evidence: 'listed exited',
      });
    }
  }

  /**
   * Whether a STOPPED proves that the id ran. A runtime may announce the end of a container whose start failed; the status of
   * the ended container says so. Without that, as the container may have been removed already or the runtime's own query failed,
   * only a runtime that never announces failed starts proves it. If the payload was dropped its contents are unknown.
   */
  #provesRun({ isSandbox, times }: TrackedContainer, event: ReceivedEvent): boolean {
    if (isSandbox) return true;
    if (event.object === null) return false;
    if (times.proveFailedStart) return false;
    const { failedStartsMayBeUnknown, failedStartsUnannounced } = this.#parts.expectations.profile;
    return failedStartsUnannounced && !failedStartsMayBeUnknown;
  }

  /**
   * A status shows an id as it was when it was made: before the answer where it was queried, before the event was sent where it
   * came in one.
   */
  #concludeFromStatus({ id, state, times }: ShownStatus, shown: Omit<Showing, 'by'>): void {
    const { containers, expectations } = this.#parts;
    const container = containers.forUpdate(id);
    if (container === undefined || state === 'unknown') return;
    const { stages } = container;
    this.#learn(container, times);
    if (state === 'running') stages.ran = true;
    const prove = (stage: Stage) => expectations.prove(container, stage, { by: null, ...shown });
    if (!container.isSandbox || stages.ran) prove(CREATED);
    if (state === 'created' || !stages.ran) return;
    prove(STARTED);
    if (state === 'exited') prove(STOPPED);
  }

  /** An answer proves by its time only what it shows itself: what an event has shown besides may have happened after it. */
  #concludeFromTimes(container: TrackedContainer, { times, at: to }: QueriedTimes): void {
    if (container.isSandbox) return;
    const { expectations, kubelet } = this.#parts;
    const evidence = 'started_at in its status';
    const prove = (stage: Stage) => {
      kubelet.proven(container, stage, { ...expectations.lowerBound(container, stage), to, evidence });
      expectations.prove(container, stage, { by: null, to, cause: 'unannounced_by_list', evidence });
    };
    const ended = times.finishedNs > 0n && container.lists.shown === 'exited';
    prove(CREATED);
    if (times.startedNs > 0n && container.times.proveRun) prove(STARTED);
    // The end of a failed start is proven too; the judgement knows the difference.
    if (ended) prove(STOPPED);
  }
}

/**
 * How a container ended, from the status that its event carries; null where that is of another id, or knows of no end. No status says it of
 * a sandbox. A queried status is not used: it is not what the event said.
 */
export function exitOf(times: ExactTimes | null): ContainerExit | null {
  if (times === null || times.finishedNs <= 0n) return null;
  const { exitCode, reason } = times;
  return {
    code: exitCode >= 0 && exitCode <= MAX_EXIT_CODE ? exitCode : null,
    reason: EXIT_REASONS.find((each) => each === reason) ?? 'Other',
  };
}
