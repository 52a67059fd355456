/*
 * Absences: what a whole list lacks is gone, where nothing newer is known.
 */

import type { ListAnswer } from '../../protocol/observation.ts';
import { mono } from '../../protocol/units.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import { CREATED, DELETED, STOPPED } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';

export class Absences {
  readonly #parts: Pick<ComparisonParts, 'expectations'>;

  constructor(parts: Pick<ComparisonParts, 'expectations'>) {
    this.#parts = parts;
  }

  /** A whole answer lacks a container. */
  absent(container: TrackedContainer, answer: ListAnswer): void {
    const { confirmations, events, lists, stages } = container;
    // An event came while the list was made: the answer may be older than it.
    const older = events.last !== null && answer.start <= events.last;
    if (!older) confirmations.confirmAll(answer.end);
    if (!older) this.#proveStopped(container, answer);
    if (older || stages.reached === DELETED || (stages.reached === -1 && !lists.isListed)) return;
    if (lists.isListed) lists.recordPassedBefore(DELETED, answer);
    this.#proveGone(container, answer);
  }

  /**
   * Whether no further list that lacks the container can prove anything, until an event or a status of it arrives or a list shows it. A container
   * that is remembered for a quarter of an hour then costs the lists of that time nothing.
   */
  isSettled({ events, stages }: TrackedContainer, answer: ListAnswer): boolean {
    if (events.last !== null && events.last >= answer.start) return false;
    if (stages.reached !== DELETED || stages.isAnyExpected) return false;
    if (stages.standing(DELETED).is === 'none') return false;
    return stages.standing(STOPPED).is !== 'none' || events.first(DELETED) === null || !stages.ran;
  }

  /** When its DELETED came, nothing may have shown yet that it ever ran. */
  #proveStopped(container: TrackedContainer, { end }: ListAnswer): void {
    const { events, stages } = container;
    const { expectations } = this.#parts;
    const deleted = events.first(DELETED);
    if (deleted === null && stages.standing(DELETED).is === 'announced') {
      // It was replayed, or came before the id was known, and proved nothing then.
      expectations.endNotShown(container, { to: end, evidence: 'no longer listed' });
    }
    if (deleted === null || !stages.ran) return;
    const evidence = 'DELETED received';
    expectations.prove(container, STOPPED, { by: DELETED, to: deleted, cause: 'sequence', evidence });
  }

  #proveGone(container: TrackedContainer, { end: to }: ListAnswer): void {
    const { isSandbox, lists, stages } = container;
    const { expectations } = this.#parts;
    const bound = expectations.lowerBound(container, DELETED);
    // A list shows a sandbox for a while after its DELETED, which still comes after its creation.
    const lead = isSandbox && lists.isListed ? expectations.profile.lead : 0;
    const created = lists.lowerBound(CREATED) ?? Number.NEGATIVE_INFINITY;
    // Nobody knows how a sandbox that never came up is removed.
    const doubtful = isSandbox && !stages.ran;
    const from = bound.from === null || doubtful ? null : mono(Math.max(bound.from - lead, created));
    const showing = { by: null, to, cause: 'unannounced_by_list', evidence: 'no longer listed' } as const;
    expectations.prove(container, DELETED, showing, { ...bound, from });
    // Where the DELETED is never sent, no verdict on it tells of the end.
    const { announcesSandboxRemoval } = expectations.profile;
    if (isSandbox && stages.ran && !announcesSandboxRemoval) expectations.prove(container, STOPPED, showing);
  }
}
