/*
 * The epochs of a spool, ordered by incarnation. The last one is the current one.
 */
import type { Epoch } from './epoch.ts';

export class EpochList {
  readonly current: Epoch;
  readonly #epochs: Epoch[];

  constructor(earlier: readonly Epoch[], current: Epoch) {
    this.current = current;
    this.#epochs = [...earlier, current];
  }

  get all(): readonly Epoch[] {
    return this.#epochs;
  }

  get bytes(): number {
    return this.#epochs.reduce((sum, epoch) => sum + epoch.bytes, 0);
  }

  remove(epoch: Epoch): void {
    const at = this.#epochs.indexOf(epoch);
    if (at !== -1) this.#epochs.splice(at, 1);
  }
}
