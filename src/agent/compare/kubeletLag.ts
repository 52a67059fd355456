/*
 * Kubelet lag: the time from a start or stop of a container until the kubelet's own status shows it.
 *
 *   proven, or dated ──► waiting ── a message of the watch shows it ──► counted, where its exact time is known
 *                           │
 *                           └─ kubeletLateAfter later GetPod is asked, and does not show it ──► late ── shown ──► resolved
 *
 * `kubelet_late` is an accusation. That no message came proves nothing, so it rests on an answer to a GetPod that was asked after the
 * deadline, and on a watch that covered everything from before the change until that answer: a kubelet that restarted may answer
 * with what the API server knew last. A start is late only if no other container of the pod has still to be created: while the pod's worker
 * pulls an image, its status waits. A doubt has a reason, and nobody is accused.
 */
import { TokenBucket } from '../../platform/tokenBucket.ts';
import type { KubeletPod, KubeletPodAnswer, KubeletSight } from '../../protocol/observation.ts';
import type { KubeletLagMinute } from '../../protocol/record.ts';
import {
  between,
  type Micros,
  type Mono,
  millis,
  mono,
  type Offset,
  shift,
  since,
} from '../../protocol/units.ts';
import type { Emitter } from './emitter.ts';
import { stageFinding } from './findings.ts';
import { KubeletLagCounts } from './kubeletLagCounts.ts';
import { type FirstShown, KubeletSights, SHOWN_STAGES, type ShownStage } from './kubeletSights.ts';
import { type KubeletTransition, KubeletWait, type NotShown, type RuntimeProof } from './kubeletWait.ts';
import { type Bounds, dateOf, KubeletWitness } from './kubeletWitness.ts';
import { DELETED, STARTED, STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import { REMEMBERED_FOR, type TrackedContainers } from './trackedContainers.ts';
import { exactTime } from './unobservableReason.ts';
import { CLOCK_STEP } from './wallClock.ts';

/** A kubelet whose PLEG hangs must not double what is written. */
const LATE_LIMIT = { capacity: 20, interval: millis(1000) };
/** A verdict waits this long after the answer, and after a stall: if the kubelet restarted, the watch breaks within it. */
const SETTLING: Micros = millis(2_000);
/** A message that shows what an answer showed comes at once, or was dropped. */
const BROUGHT_WITHIN: Micros = millis(5_000);
/** An exact time comes with an event, or is queried when that is overdue. */
const DATED_WITHIN: Micros = millis(15_000);
/** A question that is not answered within this was dropped. */
const ANSWERED_WITHIN: Micros = millis(60_000);
/** The kubelet is asked this long before a miss is judged, if it was not asked before. */
const ASK_AHEAD: Micros = millis(5_000);
/** A stall of this process is noticed at its next tick. Messages that arrived meanwhile were taken at about then. */
const AROUND_STALL: Micros = millis(1_000);

/** The proof of a miss, as far as it is about the kubelet's own status. Durations are in microseconds. */
export type KubeletProof =
  | { readonly is: 'shown'; readonly atLeast: number; readonly atMost: number }
  | { readonly is: 'not_shown'; readonly until: Offset }
  | { readonly is: 'not_observed'; readonly why: string };

export interface KubeletCounters {
  /** Starts and stops that were shown late and not reported because of the rate limit. */
  readonly lateSuppressed: number;
  /** Starts and stops that the kubelet's status had, and that no message of the watch brought. */
  readonly notBrought: number;
  /** How often a pod was reported and left out because of the limits. */
  readonly unobservedPods: number;
}

interface KubeletLagParts {
  readonly emitter: Emitter;
  readonly containers: TrackedContainers;
}

export class KubeletLag {
  readonly #parts: KubeletLagParts;
  readonly #lateAfter: Micros;
  readonly #sights = new KubeletSights();
  readonly #witness: KubeletWitness;
  readonly #counts = new KubeletLagCounts();
  readonly #lateLimit = new TokenBucket(LATE_LIMIT);
  /** By stage; a wait that has ended stays, so that nothing is counted or reported twice. */
  readonly #waits = new WeakMap<TrackedContainer, Map<ShownStage, KubeletWait>>();
  readonly #open = new Set<KubeletWait>();
  /** Pods about which the kubelet is asked, and since when. */
  readonly #asked = new Map<string, Mono>();
  /** When the last stall of this process ended; null where there was none. */
  #stalled: Mono | null = null;
  #notBrought = 0;

  constructor(parts: KubeletLagParts, lateAfter: Micros) {
    this.#parts = parts;
    this.#lateAfter = lateAfter;
    this.#witness = new KubeletWitness(this.#sights, parts.containers);
  }

  get counters(): KubeletCounters {
    return {
      lateSuppressed: this.#lateLimit.denied,
      notBrought: this.#notBrought,
      unobservedPods: this.#sights.unobserved,
    };
  }

  takeMinute(): KubeletLagMinute | null {
    return this.#counts.take();
  }

  /** This process did not run until then. */
  stalled(until: Mono): void {
    this.#stalled = until;
  }

  // Proofs of a start or a stop.

  /** A list or a status shows that a container has reached a stage. Only the first proof counts. */
  proven(container: TrackedContainer, stage: Stage, proof: RuntimeProof): void {
    if (container.isSandbox || container.hasRegressed || !isShownStage(stage)) return;
    const wait = this.#begin(container, stage);
    wait?.prove(proof);
  }

  /** More is known of when a container started and stopped. */
  dated(container: TrackedContainer): void {
    if (container.isSandbox) return;
    for (const stage of SHOWN_STAGES) {
      const exact = dateOf({ container, stage });
      if (exact !== null && this.#sights.covers(shift(exact, -CLOCK_STEP))) this.#begin(container, stage);
    }
  }

  #waitFor(container: TrackedContainer, stage: ShownStage): KubeletWait | undefined {
    return this.#waits.get(container)?.get(stage);
  }

  /** The wait for a stage, a new one where there was none; null while nothing is watched. */
  #begin(container: TrackedContainer, stage: ShownStage): KubeletWait | null {
    const known = this.#waitFor(container, stage);
    if (known !== undefined || this.#sights.since === null) return known ?? null;
    const wait = new KubeletWait(container, stage, this.#parts.emitter.now, this.#lateAfter);
    const ofContainer = this.#waits.get(container) ?? new Map<ShownStage, KubeletWait>();
    this.#waits.set(container, ofContainer.set(stage, wait));
    this.#open.add(wait);
    return wait;
  }

  // The kubelet's status.

  showed(sight: KubeletSight): void {
    this.#parts.emitter.reach(sight.at);
    this.#sights.see(sight);
  }

  answered(answer: KubeletPodAnswer): void {
    const { podUid, asked, at, found } = answer;
    this.#parts.emitter.reach(at);
    this.#asked.delete(podUid);
    this.#sights.answered(answer);
    for (const wait of this.#open) {
      if (wait.container.identity.podUid !== podUid) continue;
      const deadline = wait.proof && this.#deadlineOf(wait.proof);
      wait.answered(asked, at, deadline);
      const podState = found ? podStateOf(wait, answer.pod.containers) : null;
      // The kubelet knows that a container it has shown running is not any more: it does not know the state.
      const wasShown =
        podState === 'waiting' && this.#shown({ container: wait.container, stage: STARTED }) !== null;
      if (podState === null || wasShown || this.#witness.whyUnknown(wait, wait.proof ?? wait.due) !== null)
        continue;
      const isStarting = found && wait.stage === STARTED && lacksOther(answer.pod, wait.container);
      wait.learn({ asked, at, podState, isStarting }, deadline);
    }
  }

  // Verdicts.

  tick(now: Mono, stepped: boolean): void {
    for (const wait of this.#open) {
      // A bound that was computed from the wall clock holds no longer.
      if (stepped && wait.proof?.byWallClock) wait.proof = { ...wait.proof, from: null };
      this.#advance(wait, now);
    }
    this.#sights.forget(now);
  }

  #advance(wait: KubeletWait, now: Mono): void {
    const shown = this.#shown(wait);
    wait.confirm(wait.container.lists.lowerBound(DELETED));
    if (shown !== null) this.#advanceShown(wait, shown, now);
    else if (this.#isKnownEnd(wait)) this.#end(wait, now);
    else if (this.#isForgotten(wait, now)) this.#open.delete(wait);
    else this.#judge(wait, now);
  }

  #deadlineOf({ to }: RuntimeProof): Mono {
    return shift(to, this.#lateAfter);
  }

  #shown({ container: { id, identity }, stage }: KubeletTransition): FirstShown | null {
    return this.#sights.pod(identity.podUid)?.containers.get(id)?.shown(stage) ?? null;
  }

  #advanceShown(wait: KubeletWait, shown: FirstShown, now: Mono): void {
    const { watched, answered } = shown;
    this.#resolve(wait, firstOf(shown));
    const isBrought = watched !== null && (answered === null || watched <= shift(answered, BROUGHT_WITHIN));
    if (isBrought) {
      const exact = dateOf(wait);
      if (exact === null && now < shift(watched, DATED_WITHIN)) return;
      if (exact !== null && this.#isMeasured(wait, exact, watched, shown))
        this.#counts.add(wait.stage, millis(Math.max(0, between(exact, watched)) / 1000));
    } else {
      if (now < shift(answered ?? now, BROUGHT_WITHIN)) return;
      this.#notBrought += 1;
    }
    this.#open.delete(wait);
  }

  /** Whether the time until the status showed it is known to be no longer than what came in between. */
  #isMeasured(
    { container }: KubeletWait,
    exact: Mono,
    watched: Mono,
    { whileTerminating }: FirstShown,
  ): boolean {
    if (whileTerminating || container.hasRegressed || !container.times.proveRun) return false;
    if (!this.#sights.covers(shift(exact, -CLOCK_STEP)) || watched < shift(exact, -CLOCK_STEP)) return false;
    const unknown = this.#sights.pod(container.identity.podUid)?.lastUnknown ?? null;
    const stalled = this.#stalled;
    const waitedForUs = stalled !== null && exact < stalled && stalled <= shift(watched, AROUND_STALL);
    return !waitedForUs && (unknown === null || unknown < exact);
  }

  /** Whether the kubelet knew of it although its status does not say so: the pod has ended, or a later container has replaced this one. */
  #isKnownEnd(wait: KubeletWait): boolean {
    if (wait.container.hasRegressed) return true;
    const pod = this.#sights.pod(wait.container.identity.podUid);
    if (pod === undefined) return false;
    return pod.ended !== null || (wait.findingId !== null && this.#witness.isReplaced(wait.container));
  }

  /** Nothing more will be known of it. */
  #isForgotten({ container, findingId, opened }: KubeletWait, now: Mono): boolean {
    if (findingId === null) return now > shift(opened, REMEMBERED_FOR);
    return this.#parts.containers.find(container.id) !== container;
  }

  #judge(wait: KubeletWait, now: Mono): void {
    const { container, proof, isSuppressed, findingId } = wait;
    if (proof === null || isSuppressed) return;
    const deadline = this.#deadlineOf(proof);
    if (now < deadline) return;
    if (findingId === null) {
      if (this.#witness.whyUnknown(wait, proof) !== null) return;
      const { notShown } = wait;
      if (notShown !== null && notShown.asked >= deadline && !notShown.isStarting) {
        const quietSince = mono(Math.max(notShown.at, this.#stalled ?? notShown.at));
        if (now >= shift(quietSince, SETTLING)) this.#reportLate(wait, proof, notShown);
        return;
      }
    }
    if (wait.isDue(deadline, now)) this.#ask(container, now);
  }

  #ask({ identity: { podUid } }: TrackedContainer, now: Mono): void {
    const asked = this.#asked.get(podUid);
    if (asked !== undefined && now < shift(asked, ANSWERED_WITHIN)) return;
    for (const [other, at] of this.#asked) if (now >= shift(at, ANSWERED_WITHIN)) this.#asked.delete(other);
    this.#asked.set(podUid, now);
    this.#parts.emitter.queryPod(podUid);
  }

  #reportLate(wait: KubeletWait, proof: RuntimeProof, { asked, at, podState }: NotShown): void {
    const { emitter } = this.#parts;
    const { container, stage } = wait;
    if (!this.#lateLimit.tryTake(emitter.now)) {
      wait.isSuppressed = true;
      return;
    }
    const { epochStart } = emitter;
    const judgement = emitter.judgement('kubelet_late', 'not_shown', {
      asked: since(epochStart, asked),
      answered: since(epochStart, at),
      lateAfter: this.#lateAfter,
      watchSince: since(epochStart, this.#sights.since ?? asked),
      podState,
    });
    const finding = stageFinding(judgement, container, stage, proof, exactTime(container, stage));
    emitter.emit(container.identity, { ...finding, lateness: between(proof.to, asked) });
    wait.findingId = judgement.findingId;
  }

  #end(wait: KubeletWait, now: Mono): void {
    this.#resolve(wait, now, wait.container.hasRegressed ? 'state_went_back' : undefined);
    this.#open.delete(wait);
  }

  #resolve(wait: KubeletWait, at: Mono, cause?: 'state_went_back'): void {
    if (wait.findingId !== null) this.#parts.emitter.resolve(wait.container, wait.findingId, at, cause);
    wait.findingId = null;
  }

  // Misses.

  /** The event of a stage is due, and is judged to be missed at `deadline`: by then the kubelet should have been asked. */
  missIsNear(container: TrackedContainer, stage: Stage, due: RuntimeProof, deadline: Mono): void {
    const { now } = this.#parts.emitter;
    if (container.isSandbox || !isShownStage(stage) || now < shift(deadline, -ASK_AHEAD)) return;
    const wait = this.#begin(container, stage);
    if (wait === null || !this.#open.has(wait)) return;
    // A question that was asked for another container of the pod may be from before the proof.
    const { notShown } = wait;
    if (notShown !== null && notShown.asked >= due.to) return;
    wait.due = due;
    const isUnknown =
      this.#shown(wait) !== null || this.#witness.whyUnknown(wait, wait.proof ?? due) !== null;
    if (!isUnknown && wait.isDue(now, now)) this.#ask(container, now);
  }

  /** The kubelet's status of a stage whose event is missed. `proven`: when the whole proof was there. */
  proofOf(container: TrackedContainer, stage: Stage, bounds: Bounds, proven: Mono): KubeletProof | null {
    if (container.isSandbox || !isShownStage(stage)) return null;
    const { epochStart } = this.#parts.emitter;
    const wait = this.#waitFor(container, stage);
    const shown = this.#shown({ container, stage });
    const notShown = wait?.notShown ?? null;
    if (shown !== null) {
      const atLeast = notShown === null ? 0 : Math.max(0, between(proven, notShown.asked));
      const began = dateOf({ container, stage }) ?? bounds.from ?? epochStart;
      return { is: 'shown', atLeast, atMost: Math.max(atLeast, between(began, firstOf(shown))) };
    }
    if (notShown !== null && notShown.asked >= proven)
      return { is: 'not_shown', until: since(epochStart, notShown.asked) };
    const why = this.#witness.whyUnknown({ container, stage }, wait?.proof ?? bounds) ?? 'not_asked';
    return { is: 'not_observed', why };
  }
}

const isShownStage = (stage: Stage): stage is ShownStage => stage === STARTED || stage === STOPPED;

/** Whether the kubelet has still to create another container of the pod. */
const lacksOther = ({ uncreated = [] }: KubeletPod, { identity }: TrackedContainer): boolean =>
  uncreated.some((name) => name !== identity.container);

function firstOf({ watched, answered }: FirstShown): Mono {
  return mono(Math.min(watched ?? Number.POSITIVE_INFINITY, answered ?? Number.POSITIVE_INFINITY));
}

/** In which state a pod's status shows the container that is waited for; null where it shows what is waited for. */
function podStateOf(
  { container, stage }: KubeletWait,
  containers: readonly { readonly id: string; readonly state: string }[],
): NotShown['podState'] | null {
  const states = containers.flatMap(({ id, state }) => (id === container.id ? [state] : []));
  if (states.includes('terminated')) return null;
  if (states.includes('running')) return stage === STARTED ? null : 'running';
  return states.length > 0 ? 'waiting' : 'absent';
}
