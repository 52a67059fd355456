/*
 * Claims: what an event says of its id, until a list confirms it or two contradict it.
 *
 * A list that shows the id at that stage or a later one confirms it, whenever it was begun: no stage is reached before it is.
 * One that was begun more than the profile's lead after it and shows an earlier stage contradicts it; a second one makes the
 * event `spurious`: it announced nothing, and what was concluded from it does not hold.
 */

import { type Micros, type Mono, shift } from '../../protocol/units.ts';
import { type Claim, DELETED, type Life, type Showing, STAGES, type Stage } from './trackedContainer.ts';

/** So many lists must contradict an event. */
const ENOUGH = 2;

export interface Refuted {
  readonly stage: Stage;
  readonly received: Mono;
  /** The lists that contradicted it. */
  readonly lists: readonly Showing[];
  /** The same was said once more, and is open. */
  readonly again: boolean;
}

export function claim(life: Life, stage: Stage, received: Mono): void {
  const open = life.claims[stage];
  if (open === null) life.claims[stage] = { received, contradictions: [], again: null };
  else open.again = received;
}

/** Whether no list has confirmed the event of this stage yet, nor enough have contradicted it. */
export const isOpen = (life: Life, stage: Stage): boolean => life.claims[stage] !== null;

/** Whether an event of any stage waits for lists. */
export const hasOpen = (life: Life): boolean => life.claims.some(isSomething);

const isSomething = (open: Claim | null): boolean => open !== null;

/** An id that is gone has passed every stage. */
export function confirmAll(life: Life): void {
  for (const stage of STAGES) life.claims[stage] = null;
}

/**
 * Takes in that a list shows the id at a stage (`null`: UNKNOWN, which says only that it is there). Returns the stages whose
 * events are spurious now, earliest first, with the moment at which each came.
 */
export function examine(life: Life, shown: Stage | null, list: Showing, lead: Micros): readonly Refuted[] {
  const spurious: Refuted[] = [];
  for (const stage of STAGES) {
    const open = life.claims[stage];
    if (open === null) continue;
    if (shown !== null && shown >= stage) {
      life.claims[stage] = null;
      continue;
    }
    const contradicts = list.start > shift(open.received, lead) && (shown !== null || stage === DELETED);
    if (contradicts) open.contradictions.push(list);
    if (open.contradictions.length < ENOUGH) continue;
    life.claims[stage] = null;
    if (open.again !== null) claim(life, stage, open.again);
    const { received, contradictions } = open;
    spurious.push({ stage, received, lists: contradictions, again: open.again !== null });
  }
  return spurious;
}
