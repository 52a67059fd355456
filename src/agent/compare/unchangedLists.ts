/*
 * Quiet: what a list showed when every id of its kind was at rest and none was absent. The same answer once more says only that
 * they are still there, until anything stirs among the lives.
 */

import type { ListAnswer } from '../../protocol/observation.ts';
import type { Life } from './trackedContainer.ts';

export class Quiet {
  /** What the last answer showed where it was quiet then; null where it was not. */
  #items: ListAnswer['items'] | null = null;
  #stirrings = 0;
  #lives: readonly Life[] = [];

  /** All lives of the kind, where this answer says nothing new of any of them; null where it must be compared. */
  livesOf({ items }: ListAnswer, stirrings: number): readonly Life[] | null {
    return items === this.#items && stirrings === this.#stirrings ? this.#lives : null;
  }

  /** An answer was compared: these lives rest as it shows them, and so many it lacks; null where it cannot say. */
  compared({ items }: ListAnswer, stirrings: number, resting: readonly Life[], absent: number | null): void {
    this.#items = absent === 0 && resting.length === items.size ? items : null;
    this.#stirrings = stirrings;
    this.#lives = resting;
  }
}
