/*
 * The events that are due of every tracked container: each proven stage whose event the runtime sends, until that comes, is judged (judgements.ts) or
 * turns out to be unobservable.
 */

import type { PlegProfile } from '../../protocol/eventProfile.ts';
import type { ExactTimes } from '../../protocol/observation.ts';
import { type ContainerIdentity, EVENT_TYPES, type EventType } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { Coverage } from './coverage.ts';
import type { Emitter } from './emitter.ts';
import type { EventContradiction } from './eventHistory.ts';
import { Expectation, type LowerBound, type Showing, type StageProof } from './expectation.ts';
import type { FirstLists } from './firstLists.ts';
import type { MonotonicTimes } from './monotonicTimes.ts';
import type { StageStanding } from './stageProgress.ts';
import { CREATED, DELETED, STAGES, STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import type { TrackedContainers } from './trackedContainers.ts';
import type { UnobservableCause } from './unobservableReason.ts';

export interface ExpectationsParts {
  readonly emitter: Emitter;
  readonly coverage: Coverage;
  readonly containers: TrackedContainers;
  readonly firstLists: FirstLists;
  readonly times: MonotonicTimes;
}

interface TransitionCounters {
  readonly expected: number;
  readonly matched: number;
  readonly missed: number;
  readonly unobservable: number;
}

/** By when an id was gone, and what shows that. */
type Removal = Pick<StageProof, 'to' | 'evidence'>;

/** A blind spot that is still seen is reported again after a day: each week of findings shows it, and it fills no list of them. */
const BLIND_SPOT_AGAIN: Micros = millis(24 * 3_600_000);

type Visit = (container: TrackedContainer, stage: Stage, expectation: Expectation) => void;

export class Expectations {
  readonly #parts: ExpectationsParts;
  readonly #counters = { expected: 0, matched: 0, missed: 0, unobservable: 0 };
  /** Containers with at least one open expectation, so that a tick costs nothing on a quiet node. */
  readonly #waiting = new Set<TrackedContainer>();
  /** When it was last reported what the runtime never announces: not for each pod. */
  readonly #blindSpots = new Map<string, Mono>();
  #profile: PlegProfile;
  #relists = 0;

  constructor(parts: ExpectationsParts, profile: PlegProfile) {
    this.#parts = parts;
    this.#profile = profile;
  }

  get counters(): TransitionCounters {
    return this.#counters;
  }

  /** The events that the present runtime announces. */
  get profile(): PlegProfile {
    return this.#profile;
  }

  /** Transitions whose event has not come and that are not judged yet. */
  get pending(): number {
    let count = 0;
    this.forEachOpen(() => {
      count += 1;
    });
    return count;
  }

  isWaitingFor(container: TrackedContainer): boolean {
    return this.#waiting.has(container);
  }

  forEachOpen(visit: Visit): void {
    for (const container of [...this.#waiting]) {
      for (const stage of STAGES) {
        const standing = container.stages.standing(stage);
        if (standing.is === 'expected') visit(container, stage, standing.expectation);
      }
    }
  }

  replaceProfile(profile: PlegProfile): void {
    this.#profile = profile;
    this.#blindSpots.clear();
  }

  /** Stages that are proven from now on are proven by another relist. */
  relistBegan(): void {
    this.#relists += 1;
  }

  // Sessions.

  sessionEnded(): void {
    this.forEachOpen((container, stage, expectation) =>
      this.becomeUnobservable(container, stage, expectation, 'stream_gap'),
    );
    // A list that would have proven the STOPPED of what its DELETED announced as gone has not been compared.
    for (const container of this.#parts.containers) {
      const deleted = container.events.first(DELETED);
      if (deleted === null) continue;
      this.#endNotAnnounced(container, { to: deleted, evidence: 'DELETED received' }, 'stream_gap');
    }
  }

  /**
   * Stages reached before a session are not due to it. But a container that is gone may yet turn out to have run, or its DELETED may yet come: then
   * its STOPPED was due, and nobody can say whether it was sent.
   */
  sessionBegan(): void {
    for (const { stages } of this.#parts.containers) {
      stages.waiveUpTo(stages.reached, stages.reached === DELETED ? STOPPED : null);
    }
  }

  /** Nobody watched for a while until this moment. */
  streamGap(until: Mono, cause: UnobservableCause): void {
    const { coverage, firstLists } = this.#parts;
    if (coverage.session === null) return;
    // An expectation is about everything from its window until now, so any gap after its start touches it.
    this.forEachOpen((container, stage, expectation) => {
      const { from } = expectation.proof;
      if (from === null || until >= from) {
        this.becomeUnobservable(container, stage, expectation, cause);
      }
    });
    coverage.streamGap(until);
    if (coverage.session.armed !== null) firstLists.watchedAgain(until);
  }

  /** A bound that was computed from the wall clock holds no longer. */
  clockStepped(): void {
    this.forEachOpen((container, stage, expectation) => {
      if (expectation.proof.byWallClock) this.becomeUnobservable(container, stage, expectation, 'clock_step');
    });
  }

  // Containers.

  /** Starts to track a container; undefined where too many are tracked. */
  track(identity: ContainerIdentity, at: Mono): TrackedContainer | undefined {
    const added = this.#parts.containers.add(identity, at);
    if (added === undefined) return undefined;
    for (const stage of added.early) this.announce(added.container, stage, at);
    return added.container;
  }

  /** An event came of an id that is not tracked. A list may show the id yet, and then what came is not due. */
  announceEarly(id: string, stage: Stage, at: Mono): void {
    if (!this.#parts.containers.keepEarly(id, stage, at)) this.streamGap(at, 'too_many_ids');
  }

  /** An event of an unknown type came: it may have been any that is due of this container, now or later. */
  taint(container: TrackedContainer): void {
    container.isTainted = true;
    for (const stage of STAGES) {
      const standing = container.stages.standing(stage);
      if (standing.is === 'expected') {
        this.becomeUnobservable(container, stage, standing.expectation, 'unknown_event_type');
      }
    }
  }

  learn(container: TrackedContainer, exact: ExactTimes): void {
    const { times, emitter } = this.#parts;
    times.learn(container.times, exact, this.#profile, emitter.now);
    if (!container.isSandbox && container.times.proveRun) container.stages.ran = true;
    if (!container.lists.isListed) this.#boundByCreation(container);
  }

  /**
   * When events come out of order, the first may prove a stage before another one carries the creation. A stage that lists prove is bounded by lists,
   * or left unbounded on purpose.
   */
  #boundByCreation(container: TrackedContainer): void {
    const created = this.lowerBound(container, CREATED);
    for (const stage of STAGES) {
      const standing = container.stages.standing(stage);
      if (standing.is === 'expected' && standing.expectation.proof.by !== null)
        standing.expectation.bind(created);
    }
  }

  /**
   * The earliest time at which an id can have reached a stage. Where no list ever showed the id, the list that lacked it is no
   * bound: the id may have come and gone before. Its own `created_at` is one.
   */
  lowerBound({ lists, times }: TrackedContainer, stage: Stage): LowerBound {
    if (lists.isListed) return { from: lists.lowerBound(stage), byWallClock: false };
    return { from: this.#parts.times.creationBound(times, this.#parts.emitter.now), byWallClock: true };
  }

  // Stages.

  /** A stage was reached: from now on its event is due, unless it came, was waived, or is never sent. */
  prove(
    container: TrackedContainer,
    stage: Stage,
    showing: Showing,
    bound: LowerBound = this.lowerBound(container, stage),
  ): void {
    const { coverage } = this.#parts;
    const proof = { ...bound, ...showing };
    container.stages.reach(stage);
    const standing = container.stages.standing(stage);
    if (standing.is === 'expected') standing.expectation.renew(proof);
    if (standing.is !== 'none') return;
    if (coverage.isAbsent || !this.#announces(container, stage)) {
      this.waive(container, stage);
      if (proof.from !== null && coverage.covers(proof.from)) this.#neverSent(container, stage, proof);
      return;
    }
    const expectation = new Expectation(proof, coverage.isCovered && !container.isTainted, this.#relists);
    this.#counters.expected += 1;
    container.stages.setStanding(stage, { is: 'expected', expectation });
    if (coverage.session === null) {
      this.becomeUnobservable(container, stage, expectation, 'stream_down');
      return;
    }
    this.#waiting.add(container);
  }

  /** The event of a stage came, which discharges it; a miss is resolved. */
  announce(container: TrackedContainer, stage: Stage, at: Mono): void {
    const standing = container.stages.standing(stage);
    if (standing.is === 'announced') return;
    if (standing.is === 'expected') this.#counters.matched += 1;
    if (standing.is === 'missed') {
      this.#counters.matched += 1;
      this.#resolveMissed(container, standing.findingId, at);
    }
    const countedNow = standing.is === 'none' && this.#parts.coverage.isCovered;
    if (countedNow) {
      this.#counters.expected += 1;
      this.#counters.matched += 1;
    }
    const counted = countedNow || standing.is === 'expected' || standing.is === 'missed';
    this.#setStanding(container, stage, { is: 'announced', counted, waived: standing.is === 'waived' });
  }

  /** Takes back that the event of a stage came, because it is spurious, and what was concluded from it. */
  retractEvent(container: TrackedContainer, stage: Stage, contradiction: EventContradiction): void {
    container.events.retract(stage, contradiction);
    const standing = container.stages.standing(stage);
    if (standing.is === 'announced') {
      if (standing.counted) {
        this.#counters.expected -= 1;
        this.#counters.matched -= 1;
      }
      // A stage that was not due before it came is not due because of it.
      this.#setStanding(container, stage, { is: standing.waived ? 'waived' : 'none' });
    }
    for (const earlier of STAGES) {
      const concluded = container.stages.standing(earlier);
      // An event alone proves no miss as long as it may turn out to be wrong.
      if (concluded.is !== 'expected' || concluded.expectation.proof.by !== stage) continue;
      if (!concluded.expectation.withoutEvent()) this.retractProof(container, earlier, 'spurious');
    }
  }

  /** Takes back that a stage was reached, because what showed it was wrong: it is not due any more, and may be due again later. */
  retractProof(container: TrackedContainer, stage: Stage, cause: UnobservableCause): void {
    const standing = container.stages.standing(stage);
    if (standing.is === 'expected') this.#reportUnobservable(container, stage, standing.expectation, cause);
    if (standing.is === 'missed') {
      this.#counters.unobservable += 1;
      this.#resolveMissed(container, standing.findingId, this.#parts.emitter.now);
    }
    this.#setStanding(container, stage, { is: 'none' });
  }

  /** The event of a stage is not due, also where it was expected. One that came stays announced. */
  waive(container: TrackedContainer, stage: Stage): void {
    const standing = container.stages.standing(stage);
    if (standing.is === 'expected') this.#counters.expected -= 1;
    // Were that event spurious, the next one would not be due either.
    const came = standing.is === 'announced';
    this.#setStanding(container, stage, came ? { ...standing, waived: true } : { is: 'waived' });
  }

  /**
   * Whether the event of a proven stage is owed. CRI-O removes what failed to start by itself, without a DELETED, so none is owed of a container
   * as long as nothing shows that it ran.
   */
  #isOwed({ isSandbox, stages }: TrackedContainer, stage: Stage): boolean {
    return stage !== DELETED || isSandbox || stages.ran || this.#profile.announcesSandboxRemoval;
  }

  /** Nobody can say any more whether the event of an expected stage was sent. */
  becomeUnobservable(
    container: TrackedContainer,
    stage: Stage,
    expectation: Expectation,
    cause: UnobservableCause,
  ): void {
    if (!this.#isOwed(container, stage)) {
      this.waive(container, stage);
      return;
    }
    this.#reportUnobservable(container, stage, expectation, cause);
    if (stage === DELETED) this.endNotShown(container, expectation.proof);
  }

  /**
   * It is gone, and no event will say more about that. Where it ran, and nothing has proven its end, its STOPPED has not come
   * either, and nobody can say whether that was sent: lists do not show how it ended.
   */
  endNotShown(container: TrackedContainer, removal: Removal): void {
    this.#endNotAnnounced(container, removal, 'end_not_shown');
  }

  #endNotAnnounced(container: TrackedContainer, { to, evidence }: Removal, cause: UnobservableCause): void {
    const { stages } = container;
    if (!stages.ran || stages.standing(STOPPED).is !== 'none') return;
    if (this.#parts.coverage.isAbsent || !this.#announces(container, STOPPED)) {
      this.waive(container, STOPPED);
      return;
    }
    this.#counters.expected += 1;
    const bound = this.lowerBound(container, STOPPED);
    const proof: StageProof = { ...bound, by: null, to, cause: 'unannounced_by_list', evidence };
    this.#reportUnobservable(container, STOPPED, new Expectation(proof, false, this.#relists), cause);
  }

  #reportUnobservable(
    container: TrackedContainer,
    stage: Stage,
    expectation: Expectation,
    cause: UnobservableCause,
  ): void {
    const { emitter } = this.#parts;
    this.#counters.unobservable += 1;
    this.#setStanding(container, stage, { is: 'unobservable' });
    const judgement = emitter.judgement('unobservable', cause, {}, expectation.findingId);
    emitter.emitStageFinding(judgement, container, stage, expectation.proof);
  }

  /** The event of a stage was judged to be missed. */
  missed(container: TrackedContainer, stage: Stage, findingId: string): void {
    this.#counters.missed += 1;
    this.#setStanding(container, stage, { is: 'missed', findingId });
  }

  #setStanding(container: TrackedContainer, stage: Stage, standing: StageStanding): void {
    container.stages.setStanding(stage, standing);
    if (!container.stages.isAnyExpected) this.#waiting.delete(container);
  }

  #resolveMissed(container: TrackedContainer, findingId: string, at: Mono): void {
    this.#counters.missed -= 1;
    this.#parts.emitter.resolve(container, findingId, at);
  }

  #announces({ isSandbox }: TrackedContainer, stage: Stage): boolean {
    const { sandboxEvents, containerEvents } = this.#profile;
    const sent: readonly EventType[] = isSandbox ? sandboxEvents : containerEvents;
    return sent.includes(EVENT_TYPES[stage]);
  }

  /** Reports a transition of a kind that the runtime never announces. For an unknown runtime nobody knows that. */
  #neverSent(container: TrackedContainer, stage: Stage, proof: StageProof): void {
    const { sandboxEvents, containerEvents } = this.#profile;
    if (sandboxEvents.length === 0 && containerEvents.length === 0) return;
    const blindSpot = `${container.isSandbox} ${stage}`;
    const { emitter } = this.#parts;
    const last = this.#blindSpots.get(blindSpot);
    if (last !== undefined && between(last, emitter.now) < BLIND_SPOT_AGAIN) return;
    this.#blindSpots.set(blindSpot, emitter.now);
    emitter.emitStageFinding(emitter.judgement('unannounced', 'never_sent', {}), container, stage, proof);
  }
}
