/*
 * Claims: what an event says of its id, until a list confirms it or two contradict it.
 *
 * A list that was begun more than the profile's lead after the event and shows the id at an earlier stage contradicts it; a
 * second one makes the event `spurious`: it announced nothing, and what was concluded from it does not hold.
 */
import { type Micros, type Mono, shift } from '../../evidence/units.ts';
import { DELETED, type Life, STAGES, type Stage } from './life.ts';

/** So many lists must contradict an event. */
const ENOUGH = 2;

export interface Claim {
  readonly received: Mono;
  contradictions: number;
}

export function claim(life: Life, stage: Stage, received: Mono): void {
  life.claims[stage] ??= { received, contradictions: 0 };
}

/** Whether a list has contradicted the event of this stage, and no second one has spoken yet. */
export const isDoubted = (life: Life, stage: Stage): boolean => (life.claims[stage]?.contradictions ?? 0) > 0;

/** An id that is gone has passed every stage. */
export function confirmAll(life: Life): void {
  for (const stage of STAGES) life.claims[stage] = null;
}

/**
 * Takes in that a list begun at `start` shows the id at a stage (`null`: UNKNOWN, which says only that it is there).
 * Returns the stages whose events are spurious now, earliest first.
 */
export function examine(life: Life, shown: Stage | null, start: Mono, lead: Micros): Stage[] {
  const spurious: Stage[] = [];
  for (const stage of STAGES) {
    const open = life.claims[stage];
    if (open === null || start <= shift(open.received, lead)) continue;
    if (shown !== null && shown >= stage) life.claims[stage] = null;
    else if (shown !== null || stage === DELETED) open.contradictions += 1;
    if (open.contradictions >= ENOUGH) {
      life.claims[stage] = null;
      spurious.push(stage);
    }
  }
  return spurious;
}
