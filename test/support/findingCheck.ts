/*
 * Decides whether a stored finding is true.
 */
import type { EventFact } from '../../devtools/simulator/groundTruth.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { BLUR } from './completeness.ts';
import { keyOf, type RuntimeTruth, type Timed } from './groundTruth.ts';
import type { Observability } from './observability.ts';
import { LATE_AFTER, MISSED_AFTER, type OracleConditions, OVERDUE_AFTER } from './oracleConditions.ts';
import { nameOf, type StoredEvidence, type StoredFinding } from './storedEvidence.ts';

/** The two stages between which a short life of each cause lies. */
const SHORT: Readonly<Record<string, readonly [EventType, EventType]>> = {
  life: ['CREATED', 'DELETED'],
  start: ['STARTED', 'STOPPED'],
  exit: ['STOPPED', 'DELETED'],
};

export class FindingCheck {
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

  isTrue(finding: StoredFinding): boolean {
    const { kind, id, type, detected } = finding;
    const mine = this.#truth.deliveries.filter((each) => each.id === id);
    switch (kind) {
      case 'missed':
        return this.#isMissed(finding) && (finding.proof['hint'] === undefined || this.#isStarved(finding));
      case 'late':
        return finding.cause === 'after_missed' ? this.#wasMissed(finding) : this.#arrivedLate(finding);
      case 'out_of_order':
        return mine.some((each) => each.type === type && this.#truth.isOvertaken(each));
      case 'duplicate':
        return mine.filter((each) => each.type === type).length > 1;
      case 'spurious':
        return mine.some((each) => each.type === type && each.spurious) || this.#truth.isDoubtful(id);
      case 'unannounced':
        return this.#truth.transitions.some(
          (each) => each.silent === 'profile' && keyOf(each) === `${id} ${type}`,
        );
      case 'short_life':
        return this.#truth.isDoubtful(id) || this.#isShort(finding);
      case 'duplicate_container':
        return (
          this.#truth.isDoubtful(id) ||
          this.#truth.duplicatePairs(0).some(({ name }) => name === nameOf(finding))
        );
      case 'regression':
        return this.#truth.views.some((each) => each.id === id && each.shown === 'running');
      case 'silent_stream':
        return finding.cause === 'starved' ? this.#isStarved(finding) : this.#truth.deliveries.length === 0;
      case 'stale':
        return this.#truth.isDoubtful(id) || this.#arrivedStale(finding);
      case 'unobservable':
        // While the stream is down, the first list that shows it reports it.
        return this.#truth.isSuspect(id) || (this.#truth.when(id, type) ?? Infinity) <= detected + BLUR;
    }
  }

  /**
   * It happened, was announced while the agent was subscribed, and did not arrive before the finding was due; and no gap of
   * the stream is recorded for that time.
   */
  #isMissed({ id, type, detected, resolved }: StoredFinding): boolean {
    const happened = this.#truth.when(id, type);
    // A list that leaves out what is there misleads the agent, which resolves the finding later.
    if (happened === null || happened > detected) return this.#truth.isDoubtful(id) && resolved !== null;
    const announced = this.#truth.events.filter(
      (each) => each.id === id && each.type === type && !each.spurious,
    );
    const isReceived = this.#arrivals(announced, id, type).some((ms) => ms < happened + MISSED_AFTER - BLUR);
    const listened =
      this.#truth.isDoubtful(id) || this.#observability.hasNoGap(happened, happened + MISSED_AFTER - BLUR);
    return announced.some(({ live }) => live) && !isReceived && listened;
  }

  /**
   * When the deliveries among these events arrived. Held-up events leave in a burst that a busy machine takes long to write: the runtime dates all of
   * it by the beginning, so only the receipt says when each event was there to be read.
   */
  #arrivals(announced: readonly Timed<EventFact>[], id: string, type: EventType | null): number[] {
    const delivered = announced.filter((each) => each.delivered);
    if (!announced.some(({ queued }) => queued)) return delivered.map(({ ms }) => ms);
    return this.#evidence.events
      .filter((each) => each.id === id && each.type === type)
      .map(({ received }) => received);
  }

  /**
   * Nothing at all arrived for as long as it takes until an event is missed, up to the moment up to which the reader had read when it
   * was judged: on a busy machine the judgement comes later, and the next events before it.
   */
  #isStarved({ drained }: StoredFinding): boolean {
    if (drained === null) return false;
    const since = drained - MISSED_AFTER + BLUR;
    return !this.#evidence.events.some(({ received }) => received > since && received < drained);
  }

  #wasMissed({ id, type }: StoredFinding): boolean {
    return this.#evidence.findings.some(
      (each) => each.kind === 'missed' && each.id === id && each.type === type,
    );
  }

  /** An event that is late only because the reader was stopped is not late. */
  #arrivedLate({ id, type }: StoredFinding): boolean {
    const happened = this.#truth.when(id, type);
    if (happened === null || (type !== 'STARTED' && type !== 'STOPPED')) return false;
    return this.#waits(id, type, happened).some((ms) => ms > LATE_AFTER - BLUR);
  }

  /** It was received long after a later stage of the same container. */
  #arrivedStale({ id, type }: StoredFinding): boolean {
    const { overdueAfterMs = OVERDUE_AFTER } = this.#conditions;
    const later = EVENT_TYPES.slice(type === null ? EVENT_TYPES.length : EVENT_TYPES.indexOf(type) + 1);
    const passed = later.flatMap((each) => this.#truth.when(id, each) ?? []);
    return this.#waits(id, type, Math.min(...passed)).some((ms) => ms > overdueAfterMs - BLUR);
  }

  /** How long after a moment the events of a type were received, less the time for which the reader was stopped. */
  #waits(id: string, type: EventType | null, since: number): number[] {
    return this.#evidence.events
      .filter((each) => each.id === id && each.type === type)
      .map(({ received }) => received - since - this.#truth.readerStoppedFor(since, received));
  }

  #isShort({ id, cause, proof }: StoredFinding): boolean {
    const [from, to] = SHORT[cause] ?? ['CREATED', 'DELETED'];
    const [firstSubscribed, ended] = [this.#truth.when(id, from), this.#truth.when(id, to)];
    if (firstSubscribed === null || ended === null) return false;
    const lasted = ended - firstSubscribed;
    return Number(proof['lifeMinMs']) <= lasted + BLUR && lasted <= Number(proof['lifeMaxMs']) + BLUR;
  }
}
