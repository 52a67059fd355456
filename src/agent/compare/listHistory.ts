/*
 * The states of one id in lists.
 */

import type { ListedItem, ShownState } from '../../protocol/observation.ts';
import type { PlegState } from '../../protocol/record.ts';
import type { Mono } from '../../protocol/units.ts';
import { CREATED, type PerStage, STAGES, STARTED, STOPPED, type Stage } from './stages.ts';

/** The start and the end of a list call, or of any other stretch. */
export interface TimeSpan {
  readonly start: Mono;
  readonly end: Mono;
}

/** A list call, and the state in which it showed an id. */
export interface ListSighting extends TimeSpan {
  readonly shown: ShownState;
}

/** A state that proves a stage: UNKNOWN does not. */
export type ProvenState = Exclude<ShownState, 'unknown'>;

export function stageShown(state: ProvenState): Stage {
  if (state === 'created') return CREATED;
  return state === 'running' ? STARTED : STOPPED;
}

export const spanOf = ({ start, end }: TimeSpan): TimeSpan => ({ start, end });

export class ListHistory {
  /** The item in the last list that showed it. */
  item: ListedItem | null = null;
  /** The state in the last relist, in the kubelet's terms. */
  state: PlegState = 'non-existent';
  /** The last state that a list showed and that was not UNKNOWN; null where none did. */
  shown: ProvenState | null = null;
  /** The first list that showed it exited since it last ran; null where none did. */
  exited: TimeSpan | null = null;
  #listed = false;
  readonly #lowerBounds: PerStage<Mono | null> = [null, null, null, null];
  readonly #passed: PerStage<TimeSpan | null> = [null, null, null, null];

  /** Whether a list ever showed it, in whatever state. */
  get isListed(): boolean {
    return this.#listed;
  }

  /** Whether the last list that showed it did so in the CRI's state UNKNOWN. */
  get isUnknown(): boolean {
    return this.item?.state === 'unknown';
  }

  /** The stage that {@link shown} proves; CREATED where no list showed a known state. */
  get stage(): Stage {
    return this.shown === null ? CREATED : stageShown(this.shown);
  }

  /**
   * The start of the last answer that proves the stage had not been reached: it showed an earlier stage, or it lacked the id
   * and the next one showed it. Null where no list says so.
   */
  lowerBound(stage: Stage): Mono | null {
    return this.#lowerBounds[stage];
  }

  /** The first list that showed a later stage. */
  passed(stage: Stage): TimeSpan | null {
    return this.#passed[stage];
  }

  recordListed(): void {
    this.#listed = true;
  }

  /** The list shows that every stage before this one has been passed. */
  recordPassedBefore(reached: Stage, answer: TimeSpan): void {
    for (const stage of STAGES) {
      if (stage < reached) this.#passed[stage] ??= spanOf(answer);
    }
  }

  /** A list begun at `at` shows the id in the state that was last shown. */
  recordStillShown(at: Mono): void {
    const next = this.shown === null ? undefined : STAGES[this.stage + 1];
    if (next !== undefined) this.raiseLowerBounds(next, at);
  }

  /** Every stage from `from` on was still to come at that moment. */
  raiseLowerBounds(from: Stage, at: Mono): void {
    for (const stage of STAGES) {
      if (stage >= from) this.#lowerBounds[stage] = at;
    }
  }
}
