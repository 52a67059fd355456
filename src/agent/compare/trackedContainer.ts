/*
 * A tracked container: all that is known of one CRI id, container or sandbox.
 *
 *   lists           what lists showed of it
 *   events          what events announced of it
 *   confirmations   which of these events lists have not confirmed yet
 *   times           its exact times, from statuses
 *   stages          which stages are proven, and what became of their events
 */

import type { ListedItem } from '../../protocol/observation.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import type { Micros, Mono } from '../../protocol/units.ts';
import { ContainerTimes } from './containerTimes.ts';
import { EventConfirmations } from './eventConfirmation.ts';
import { EventHistory } from './eventHistory.ts';
import { ListHistory, type TimeSpan } from './listHistory.ts';
import { StageProgress } from './stageProgress.ts';

/** The stretch between two lists, in which something happened that neither shows. */
export interface UnseenInterval {
  readonly before: Mono;
  readonly after: Mono;
  /** From the start of the one to the end of the other: an item may be read at any moment of its call. */
  readonly longest: Micros;
  readonly end: Mono;
}

export class TrackedContainer {
  readonly lists = new ListHistory();
  readonly events = new EventHistory();
  readonly confirmations = new EventConfirmations();
  readonly times = new ContainerTimes();
  readonly stages = new StageProgress();
  /** When a list or an event last showed it. */
  lastSign: Mono;
  /** Between which lists it ran unseen; null where it did not, or where that is reported. */
  unseenRun: UnseenInterval | null = null;
  /** An event of it had an unknown type, and may have been any that is due. */
  isTainted = false;
  /** The answer to ContainerStatus or PodSandboxStatus; null before it was queried. */
  statusAnswer: string | null = null;
  /** When the query began that was answered last; null before one was. */
  statusAsked: Mono | null = null;
  /** Ids of its duplicates that are reported. */
  readonly duplicates = new Set<string>();
  /**
   * Another list that shows this same item can prove nothing more and contradict nothing, until an event or a status of the
   * container arrives or a list shows something else.
   */
  unchangedItem: ListedItem | null = null;
  #identity: ContainerIdentity;
  #regressed = false;
  /** The end of the list because of which its exact times were queried; null where none was. */
  #timesQueriedFor: Mono | null = null;

  constructor(identity: ContainerIdentity, at: Mono) {
    this.#identity = identity;
    this.lastSign = at;
  }

  get identity(): ContainerIdentity {
    return this.#identity;
  }

  get id(): string {
    return this.#identity.id;
  }

  get isSandbox(): boolean {
    return this.#identity.isSandbox;
  }

  /** It went from exited back to running: its events are in no order any more. */
  get hasRegressed(): boolean {
    return this.#regressed;
  }

  /** More is known of its identity. Only {@link TrackedContainers} may call this: others depend on the version that it counts. */
  identify(identity: ContainerIdentity): void {
    this.#identity = identity;
  }

  /** A list shows it in the state that was last shown. */
  recordStillShown(answer: TimeSpan): void {
    this.lastSign = answer.end;
    this.lists.recordStillShown(answer.start);
  }

  regress(): void {
    this.#regressed = true;
    this.unseenRun = null;
  }

  /** Returns true the first time only: its exact times are queried once, where a list shows that it exited, and nothing that it ran. */
  claimTimesQuery(listEnd: Mono): boolean {
    const first = this.#timesQueriedFor === null;
    this.#timesQueriedFor ??= listEnd;
    return first;
  }

  /**
   * Whether no query about the ended container was answered, however it was. A query that began before a list showed the end may have
   * been answered with a status from before the start.
   */
  get awaitsTimes(): boolean {
    const { statusAsked } = this;
    return statusAsked === null || statusAsked < (this.#timesQueriedFor ?? statusAsked);
  }
}

/** The identity with what the other one knows better. */
export function completed(known: ContainerIdentity, more: ContainerIdentity): ContainerIdentity {
  return {
    ...known,
    sandbox: known.sandbox || more.sandbox,
    podUid: known.podUid || more.podUid,
    namespace: known.namespace || more.namespace,
    pod: known.pod || more.pod,
    container: known.container || more.container,
    attempt: known.attempt || more.attempt,
  };
}
