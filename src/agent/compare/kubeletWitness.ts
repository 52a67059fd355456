/*
 * The possible statements of the kubelet's own status about a container, and why it says nothing: of each doubt the reason, so that nobody is
 * accused.
 */
import { type Mono, mono, shift } from '../../protocol/units.ts';
import type { KubeletSights } from './kubeletSights.ts';
import type { KubeletTransition, RuntimeProof } from './kubeletWait.ts';
import { STARTED } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import type { TrackedContainers } from './trackedContainers.ts';
import { CLOCK_STEP } from './wallClock.ts';

/** Between which moments a stage was reached. */
export type Bounds = Pick<RuntimeProof, 'from' | 'to'>;

/** Another container of the same name; `attempt` is null where it is not known. */
interface Namesake {
  /** When a status first named it. */
  readonly first: Mono;
  readonly attempt: number | null;
}

export class KubeletWitness {
  readonly #sights: KubeletSights;
  readonly #containers: TrackedContainers;

  constructor(sights: KubeletSights, containers: TrackedContainers) {
    this.#sights = sights;
    this.#containers = containers;
  }

  /** Why an answer that does not show a stage proves nothing; null where it does. */
  whyUnknown(transition: KubeletTransition, bounds: Bounds | null): string | null {
    const { container } = transition;
    const { firstSince } = this.#sights;
    if (firstSince === null) return 'no_pods_api';
    if (container.times.proveFailedStart) return 'start_failed';
    const from = lowerBound(transition, bounds);
    if (from === null || bounds === null || bounds.from === null) return 'no_lower_bound';
    if (!this.#sights.covers(from)) return from < firstSince ? 'before_watch' : 'watch_gap';
    return this.#whyPodUnknown(container, from, bounds.to) ?? this.#whyContainerUnknown(transition, bounds);
  }

  #whyPodUnknown({ identity }: TrackedContainer, from: Mono, to: Mono): string | null {
    const pod = this.#sights.pod(identity.podUid);
    if (pod === undefined || pod.isUnknown || pod.first > to) return 'pod_unknown';
    // The kubelet knew of everything that had happened by then, whatever a pod of that uid shows since.
    if (pod.ended !== null || (pod.lastEnded !== null && pod.lastEnded >= from)) return 'pod_ended';
    return pod.isTerminating ? 'pod_terminating' : null;
  }

  #whyContainerUnknown(transition: KubeletTransition, bounds: Bounds): string | null {
    const { lists } = transition.container;
    if (this.#mayBeReplaced(transition, bounds)) return 'superseded';
    if (lists.isUnknown) return 'state_unknown';
    return lists.state === 'non-existent' ? 'container_gone' : null;
  }

  /** The kubelet's status names a container of the same name that was created after this one. */
  isReplaced(container: TrackedContainer): boolean {
    return this.#namesakesOf(container).some(
      ({ attempt }) => attempt !== null && attempt > container.identity.attempt,
    );
  }

  /**
   * A kubelet creates a container only after it has seen the end of the one before. One of fewer attempts is that one before, if its
   * status named it before this one, or before this one can have started or stopped.
   */
  #mayBeReplaced({ container, stage }: KubeletTransition, bounds: Bounds | null): boolean {
    const { id, identity } = container;
    const own = this.#sights.pod(identity.podUid)?.containers.get(id);
    const from = lowerBound({ container, stage }, bounds);
    return this.#namesakesOf(container).some(({ first, attempt }) => {
      const isShownBefore = own === undefined ? from !== null && first < from : first <= own.first;
      return !isShownBefore || attempt === null || attempt >= identity.attempt;
    });
  }

  /** Those that the pod's status has named. */
  #namesakesOf({ id, identity }: TrackedContainer): readonly Namesake[] {
    const seen = this.#sights.pod(identity.podUid)?.containers ?? [];
    return [...seen].flatMap(([otherId, { name, first }]) => {
      if (otherId === id || name !== identity.container) return [];
      return [{ first, attempt: this.#containers.find(otherId)?.identity.attempt ?? null }];
    });
  }
}

/** When it started or stopped, where that is known; some runtimes date an end by when they noticed it. */
export const dateOf = ({ container: { times }, stage }: KubeletTransition): Mono | null =>
  stage === STARTED ? times.started : times.ranUntil;

/** The earliest time at which it can have happened; null where that is not known. */
function lowerBound(transition: KubeletTransition, bounds: Bounds | null): Mono | null {
  const exact = dateOf(transition);
  const known = [bounds?.from ?? null, exact && shift(exact, -CLOCK_STEP)].filter((bound) => bound !== null);
  return known.length === 0 ? null : mono(Math.min(...known));
}
