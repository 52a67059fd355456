/*
 * How far one id has come, and where each stage stands between its proof and its event.
 *
 *     none ──► expected ──► announced                    (the ordinary case)
 *      │           ├──────► missed ──► announced         (the event came later: the finding is resolved)
 *      │           └──────► unobservable ──► announced
 *      └─► waived  reached before the baseline, or never announced by this runtime: nothing is expected
 */

import type { Expectation } from './expectation.ts';
import { type PerStage, STAGES, type Stage } from './stages.ts';

export type StageStanding =
  | { readonly is: 'none' | 'waived' | 'unobservable' }
  /** `counted`: it is among the matched transitions. `waived`: it was not due. */
  | { readonly is: 'announced'; readonly counted: boolean; readonly waived: boolean }
  | { readonly is: 'expected'; readonly expectation: Expectation }
  | { readonly is: 'missed'; readonly findingId: string };

const NONE: StageStanding = { is: 'none' };

export class StageProgress {
  readonly #standings: PerStage<StageStanding> = [NONE, NONE, NONE, NONE];
  /** The furthest stage that is proven; -1 for none. */
  reached: -1 | Stage = -1;
  /** Whether anything proves that it ever ran. Without that neither STARTED nor STOPPED is due. */
  ran = false;

  get isAnyExpected(): boolean {
    return this.#standings.some(({ is }) => is === 'expected');
  }

  standing(stage: Stage): StageStanding {
    return this.#standings[stage];
  }

  setStanding(stage: Stage, standing: StageStanding): void {
    this.#standings[stage] = standing;
  }

  reach(stage: -1 | Stage): void {
    if (stage > this.reached) this.reached = stage;
  }

  /** Whether a proof of the stage would add anything: most of what a list shows was known before. */
  isProvable(stage: Stage): boolean {
    const { is } = this.#standings[stage];
    return stage > this.reached || is === 'none' || is === 'expected';
  }

  /** Stages reached before a baseline are not due after it. `open` is left as it is. */
  waiveUpTo(reached: -1 | Stage, open: Stage | null = null): void {
    for (const stage of STAGES) {
      if (stage > reached || stage === open || this.#standings[stage].is !== 'none') continue;
      this.#standings[stage] = { is: 'waived' };
    }
    this.reach(reached);
  }
}
