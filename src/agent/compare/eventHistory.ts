/*
 * The announced events of one id. Replayed events are left out.
 */

import type { Mono } from '../../protocol/units.ts';
import { type PerStage, STAGES, type Stage } from './stages.ts';

/** A spurious event, and the finding that reports it. */
export interface EventContradiction {
  readonly received: Mono;
  readonly findingId: string;
}

export class EventHistory {
  #last: Mono | null = null;
  readonly #first: PerStage<Mono | null> = [null, null, null, null];
  #furthest: -1 | Stage = -1;
  readonly #contradicted: PerStage<EventContradiction | null> = [null, null, null, null];

  /** When an event last proved that the id exists; null where none did. */
  get last(): Mono | null {
    return this.#last;
  }

  /** The furthest stage that was announced; -1 for none. */
  get furthest(): -1 | Stage {
    return this.#furthest;
  }

  /** When the event of a stage first came; null where it did not come or was spurious. */
  first(stage: Stage): Mono | null {
    return this.#first[stage];
  }

  /** The last event of a stage that was spurious. */
  contradicted(stage: Stage): EventContradiction | null {
    return this.#contradicted[stage];
  }

  record(stage: Stage, received: Mono): void {
    this.#last = received;
    this.#first[stage] ??= received;
    if (stage > this.#furthest) this.#furthest = stage;
  }

  /** The event of a stage is spurious: it counts no more. */
  retract(stage: Stage, contradiction: EventContradiction): void {
    this.#contradicted[stage] = contradiction;
    this.#first[stage] = null;
    this.#furthest = STAGES.findLast((each) => this.#first[each] !== null) ?? -1;
  }
}
