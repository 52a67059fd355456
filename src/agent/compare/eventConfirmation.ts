/*
 * Confirmation of events: what an event says of its id is unconfirmed until a list confirms it or two contradict it.
 *
 * A list that shows the id at that stage or a later one confirms it, whenever the list began: no stage shows before it is
 * reached. A list begun more than the profile's lead after the event that shows an earlier stage contradicts it. The second
 * one makes the event `spurious`: it announced nothing, and what was concluded from it does not hold.
 */

import { type Micros, type Mono, shift } from '../../protocol/units.ts';
import type { ListSighting } from './listHistory.ts';
import { DELETED, type PerStage, STAGES, type Stage } from './stages.ts';

const CONTRADICTIONS_NEEDED = 2;

interface WaitingEvent {
  readonly received: Mono;
  readonly contradictions: ListSighting[];
  /** When the same event came again; null where it did not. */
  again: Mono | null;
}

export interface SpuriousEvent {
  readonly stage: Stage;
  readonly received: Mono;
  /** The lists that contradicted it. */
  readonly lists: readonly ListSighting[];
  /** The same event came again, and that one is still unconfirmed. */
  readonly again: boolean;
}

export class EventConfirmations {
  readonly #waiting: PerStage<WaitingEvent | null> = [null, null, null, null];
  readonly #confirmed: PerStage<Mono | null> = [null, null, null, null];

  /** Whether any event still waits for lists. */
  get isAnyUnconfirmed(): boolean {
    return this.#waiting.some((event) => event !== null);
  }

  /** Whether no list has confirmed the event of this stage yet, nor enough have contradicted it. */
  isUnconfirmed(stage: Stage): boolean {
    return this.#waiting[stage] !== null;
  }

  /** When the list ended that confirmed the event of this stage; null where none did. */
  confirmedAt(stage: Stage): Mono | null {
    return this.#confirmed[stage];
  }

  await(stage: Stage, received: Mono): void {
    const known = this.#waiting[stage];
    if (known === null) this.#waiting[stage] = { received, contradictions: [], again: null };
    else known.again = received;
  }

  /** A list that ended at `at` lacks the id: what is gone has passed every stage. */
  confirmAll(at: Mono): void {
    for (const stage of STAGES) if (this.isUnconfirmed(stage)) this.#confirm(stage, at);
  }

  #confirm(stage: Stage, at: Mono): void {
    this.#waiting[stage] = null;
    this.#confirmed[stage] = at;
  }

  /**
   * Takes in that a list shows the id at a stage (`null`: UNKNOWN, which proves only that it exists). Returns the events that
   * are spurious now, earliest stage first.
   */
  examine(shown: Stage | null, list: ListSighting, lead: Micros): readonly SpuriousEvent[] {
    const spurious: SpuriousEvent[] = [];
    for (const stage of STAGES) {
      const event = this.#waiting[stage];
      if (event === null) continue;
      if (shown !== null && shown >= stage) {
        this.#confirm(stage, list.end);
        continue;
      }
      const contradicts = list.start > shift(event.received, lead) && (shown !== null || stage === DELETED);
      if (contradicts) event.contradictions.push(list);
      if (event.contradictions.length < CONTRADICTIONS_NEEDED) continue;
      this.#waiting[stage] = null;
      if (event.again !== null) this.await(stage, event.again);
      const { received, contradictions } = event;
      spurious.push({ stage, received, lists: contradictions, again: event.again !== null });
    }
    return spurious;
  }
}
