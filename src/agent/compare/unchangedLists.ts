/*
 * Lists that can be skipped: when every container of a kind could be skipped and none was absent, the same answer once more
 * proves only that all are still there, until the version of the tracked containers changes.
 */

import type { ListAnswer } from '../../protocol/observation.ts';
import type { TrackedContainer } from './trackedContainer.ts';

export class UnchangedLists {
  /** The items of the last answer where it may be skipped; null where it may not. */
  #items: ListAnswer['items'] | null = null;
  #version = 0;
  #containers: readonly TrackedContainer[] = [];

  /** All containers of the kind, where this answer adds nothing on any of them; null where it must be compared. */
  unchangedIn({ items }: ListAnswer, version: number): readonly TrackedContainer[] | null {
    return items === this.#items && version === this.#version ? this.#containers : null;
  }

  /** An answer was compared: these containers are unchanged, and this many are absent; null where it cannot say. */
  compared(
    { items }: ListAnswer,
    version: number,
    unchanged: readonly TrackedContainer[],
    absent: number | null,
  ): void {
    this.#items = absent === 0 && unchanged.length === items.size ? items : null;
    this.#version = version;
    this.#containers = unchanged;
  }
}
