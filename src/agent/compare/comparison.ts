/*
 * The comparison holds what the event stream announced against what relisting found.
 *
 * Its inputs are sessions, events, relists, status answers, what the kubelet shows and the passing of time. relisting.ts concludes from lists, events.ts
 * from events, which stages each id has reached; expectations.ts knows which events are due, and judgements.ts what becomes of
 * those that do not come.
 *
 * It has no clock, no I/O and no randomness of its own: times are passed in, ids are minted by the caller, and its output waits
 * for {@link Comparison.take}.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type {
  KubeletPodAnswer,
  KubeletSight,
  ReceivedEvent,
  Relist,
  StatusAnswer,
} from '../../protocol/observation.ts';
import type { KubeletLagMinute } from '../../protocol/record.ts';
import type { Mono } from '../../protocol/units.ts';
import type { ComparisonOptions, ComparisonParts } from './comparisonParts.ts';
import { Coverage, type OpenSession } from './coverage.ts';
import { Decided } from './decided.ts';
import { type ComparisonOutput, Emitter } from './emitter.ts';
import { Events } from './events.ts';
import { Expectations } from './expectations.ts';
import { FirstLists } from './firstLists.ts';
import { Judgements } from './judgements.ts';
import { type KubeletCounters, KubeletLag } from './kubeletLag.ts';
import { MonotonicTimes } from './monotonicTimes.ts';
import { Relisting } from './relisting.ts';
import { Starvation, type StarvedStream } from './starvation.ts';
import { TrackedContainers } from './trackedContainers.ts';
import type { UnobservableCause } from './unobservableReason.ts';

/** State of an open stream by the evidence. */
export type ProvenStreamState = 'Arming' | 'Active' | 'Silent' | 'Starved';

/** Counted since the start, in transitions. */
export interface ComparisonCounters {
  readonly expected: number;
  readonly matched: number;
  readonly missed: number;
  readonly unobservable: number;
  /** Covered time in microseconds. */
  readonly covered: number;
  readonly untracked: number;
  /** Overdue starts and stops that were not reported because of the rate limit. */
  readonly overdueSuppressed: number;
}

export class Comparison {
  readonly #parts: ComparisonParts;
  readonly #relisting: Relisting;
  readonly #events: Events;
  readonly #judgements: Judgements;
  readonly #decided: Decided;

  constructor(options: ComparisonOptions) {
    const emitter = new Emitter(options.epochStart, options.mintId);
    const parts = {
      emitter,
      coverage: new Coverage(options.epochStart),
      containers: new TrackedContainers(emitter),
      firstLists: new FirstLists(emitter),
      times: new MonotonicTimes(options.epochStart),
    };
    const expectations = new Expectations(parts, options.profile);
    const starvation = new Starvation({ ...parts, expectations }, options.overdueAfter);
    const kubelet = new KubeletLag(parts, options.kubeletLateAfter);
    this.#parts = { ...parts, options, expectations, starvation, kubelet };
    this.#relisting = new Relisting(this.#parts);
    this.#events = new Events(this.#parts);
    this.#judgements = new Judgements(this.#parts);
    this.#decided = new Decided(this.#parts, options.epochStart);
  }

  get counters(): ComparisonCounters {
    const { containers, coverage, expectations } = this.#parts;
    return {
      ...expectations.counters,
      covered: coverage.coveredTime,
      untracked: containers.untracked,
      overdueSuppressed: this.#judgements.overdueSuppressed,
    };
  }

  /** Transitions whose event has not come and that are not judged yet. */
  get pending(): number {
    return this.#parts.expectations.pending;
  }

  /** Once what was handed over until now is known, everything that happened before then is decided. */
  get decidedUntil(): Mono {
    return this.#decided.until;
  }

  /** Ids that are remembered: those that exist, and those whose last sign is less than 15 minutes old. */
  get tracked(): number {
    return this.#parts.containers.size;
  }

  get kubeletCounters(): KubeletCounters {
    return this.#parts.kubelet.counters;
  }

  /** Hands over what was counted of the kubelet's lag since the last call; null where that is nothing. */
  takeKubeletLag(): KubeletLagMinute | null {
    return this.#parts.kubelet.takeMinute();
  }

  /** Whether the next {@link take} hands over a record. */
  get hasRecords(): boolean {
    return this.#parts.emitter.hasEmissions;
  }

  /** Hands over the output since the last call. */
  take(): ComparisonOutput {
    return this.#parts.emitter.take();
  }

  /** The runtime was replaced by another: from now on the events are due that this one announces. */
  runtimeReplaced(profile: PlegProfile): void {
    this.#parts.expectations.replaceProfile(profile);
  }

  /** There is no subscription any more: one is wanted (`down`), or policy forbids it and nothing is due (`absent`). */
  unsubscribed(at: Mono, state: 'down' | 'absent'): void {
    this.#parts.emitter.reach(at);
    this.#parts.starvation.sessionEnded();
    this.#parts.expectations.sessionEnded();
    this.#parts.coverage.close(state);
  }

  /** A new session began at `at`; `wallNs` is the wall clock at that moment. */
  subscribed(session: number, at: Mono, wallNs: bigint): void {
    this.unsubscribed(at, 'down');
    this.#parts.coverage.open(session, at, wallNs);
    this.#parts.expectations.sessionBegan();
  }

  /** Nobody watched for a while until this moment, although the session is still open. */
  streamGap(until: Mono, cause: UnobservableCause): void {
    // After a stall its end may be known before the next tick, and what it leaves unobservable may have happened during it.
    this.#parts.emitter.reach(until);
    this.#parts.expectations.streamGap(until, cause);
    if (cause === 'agent_stalled') this.#parts.kubelet.stalled(until);
  }

  /** Something came until this moment that nobody could read: the stream flows, and an event that is due may be lost. */
  eventsLost(until: Mono, cause: UnobservableCause): void {
    this.streamGap(until, cause);
    this.#parts.coverage.eventLost(until);
    this.#parts.starvation.eventReceived(until);
  }

  /** The reader had drained the socket by then. */
  drained(session: number, watermark: Mono): void {
    this.#parts.coverage.drained(session, watermark);
  }

  /** Time has passed. `wallMicros` is the wall clock at `now`. */
  tick(now: Mono, wallMicros: number): void {
    const { containers, coverage, emitter, expectations, kubelet, times } = this.#parts;
    emitter.reach(now);
    const stepped = times.tick(now, wallMicros);
    emitter.releaseUnsure(stepped);
    if (stepped) expectations.clockStepped();
    // While ids are left out nobody can say that everything was watched.
    coverage.tick(now, !containers.isLeavingOut);
    kubelet.tick(now, stepped);
    this.#judgements.tick();
    containers.forget(now, (container) => expectations.isWaitingFor(container));
  }

  /** The state of the stream, by the evidence; null where there is no session. */
  streamState(): ProvenStreamState | null {
    const session = this.session();
    if (session === null) return null;
    if (session.silent) return 'Silent';
    if (this.starved !== null) return 'Starved';
    return session.armed === null ? 'Arming' : 'Active';
  }

  get starved(): StarvedStream | null {
    return this.#parts.starvation.present;
  }

  session(): OpenSession | null {
    return this.#parts.coverage.session;
  }

  /** A list call failed: the time between the lists around it is longer than a period. */
  listFailed(): void {
    this.#relisting.failed();
  }

  relisted(relist: Relist): void {
    this.#parts.emitter.reach(relist.containers.end);
    this.#relisting.compare(relist);
    this.#decided.relisted(relist);
  }

  received(event: ReceivedEvent): void {
    this.#events.received(event);
  }

  answered(answer: StatusAnswer): void {
    this.#events.answered(answer);
    if (answer.found) this.#relisting.statusReceived(answer.id);
  }

  /** The watch of the kubelet's own status reported this. */
  kubeletShowed(sight: KubeletSight): void {
    this.#parts.kubelet.showed(sight);
  }

  /** The kubelet was asked for a pod. */
  kubeletAnswered(answer: KubeletPodAnswer): void {
    this.#parts.kubelet.answered(answer);
  }
}
