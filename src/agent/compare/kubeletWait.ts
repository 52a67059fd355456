/*
 * A start or stop of a container, while the kubelet's own status has yet to show it.
 */
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import type { StageProof } from './expectation.ts';
import type { ShownStage } from './kubeletSights.ts';
import type { TrackedContainer } from './trackedContainer.ts';

/** The proof that it happened: a list of the runtime, or one of its statuses. */
export type RuntimeProof = Pick<StageProof, 'from' | 'byWallClock' | 'to' | 'evidence'>;

/** A stage of a container: its start or its stop. */
export interface KubeletTransition {
  readonly container: TrackedContainer;
  readonly stage: ShownStage;
}

/** An answer to GetPod that did not show it, and in which state it showed the container. */
export interface NotShown {
  readonly asked: Mono;
  readonly at: Mono;
  readonly podState: 'running' | 'waiting' | 'absent';
  /** It is a start, and another container of the pod has still to be created: the pod's worker is busy with that, and its status waits. */
  readonly isStarting: boolean;
}

/** Each question comes twice as long after the last one as that did, up to this. */
const MAX_PAUSE: Micros = millis(5 * 60_000);

export class KubeletWait implements KubeletTransition {
  readonly container: TrackedContainer;
  readonly stage: ShownStage;
  readonly opened: Mono;
  /** Null as long as only an event or an exact time says that it happened. */
  proof: RuntimeProof | null = null;
  /** The proof that its event is due, where that is about to be judged; null where it is not. */
  due: RuntimeProof | null = null;
  /** The finding that reports it as late; null where none does. */
  findingId: string | null = null;
  /** That it was late was not reported because of the rate limit. */
  isSuppressed = false;
  #notShown: NotShown | null = null;
  #unconfirmed: NotShown | null = null;
  readonly #firstPause: Micros;
  #pause: Micros;
  #askFrom: Mono | null = null;

  constructor(container: TrackedContainer, stage: ShownStage, opened: Mono, firstPause: Micros) {
    this.container = container;
    this.stage = stage;
    this.opened = opened;
    this.#firstPause = firstPause;
    this.#pause = firstPause;
  }

  /** Only the first proof counts. An earlier question, for a miss, says nothing of whether it is late, and puts off no question about that. */
  prove(proof: RuntimeProof): void {
    if (this.proof !== null) return;
    this.proof = proof;
    this.#askFrom = null;
    this.#pause = this.#firstPause;
  }

  /** The last answer that is known not to have shown it. */
  get notShown(): NotShown | null {
    return this.#notShown;
  }

  /** Whether it is time to ask the kubelet, `first` being the first time for that. */
  isDue(first: Mono, now: Mono): boolean {
    return now >= (this.#askFrom ?? first);
  }

  /**
   * An answer came to what was asked then. A question from before it could prove anything was asked for another container of the
   * pod: it puts off none of this one.
   */
  answered(asked: Mono, now: Mono, deadline: Mono | null): void {
    const provesFrom = deadline ?? this.due?.to ?? null;
    if (provesFrom === null || asked < provesFrom) return;
    this.#askFrom = shift(now, this.#pause);
    this.#pause = millis(Math.min(MAX_PAUSE, 2 * this.#pause) / 1000);
  }

  /**
   * A status that names the container in another state does not show it. One that lacks the container may be of the time after its
   * removal: the first that was asked for after the deadline waits for a list, so that more questions cannot put off the verdict.
   */
  learn(answer: NotShown, deadline: Mono | null): void {
    if (answer.podState !== 'absent') {
      this.#notShown = answer;
      this.#unconfirmed = null;
    } else if (this.#unconfirmed === null || (deadline !== null && this.#unconfirmed.asked < deadline)) {
      this.#unconfirmed = answer;
    }
  }

  /** A list that began at `listed` shows the container: what was answered before then was there. */
  confirm(listed: Mono | null): void {
    const answer = this.#unconfirmed;
    if (answer === null || listed === null || listed < answer.at) return;
    this.#notShown = answer;
    this.#unconfirmed = null;
  }
}
