/*
 * Losses of the spool: dropped records are counted, and saved beside their epoch (lost.json) before they are deleted.
 */
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { LostRange } from './epoch.ts';
import type { EpochList } from './epochList.ts';
import { type SpoolFiles, writeDurably } from './files.ts';
import { withReserve } from './reserve.ts';

export interface LossesOptions {
  readonly dir: string;
  readonly log: Logger;
  readonly files: SpoolFiles;
}

export class Losses {
  readonly #options: LossesOptions;
  readonly #epochs: EpochList;
  /** How many lost records the files declare. */
  #saved = 0;
  #dropped = 0;

  constructor(options: LossesOptions, epochs: EpochList) {
    this.#options = options;
    this.#epochs = epochs;
  }

  /** How many records were dropped before they were acknowledged, since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Counts records that were dropped unacknowledged. */
  count(records: number): void {
    this.#dropped += records;
  }

  /** Saves the losses of every epoch if there are new ones. */
  async save(): Promise<void> {
    const lost = this.#epochs.all.reduce((sum, epoch) => sum + recordsIn(epoch.lost), 0);
    if (lost === this.#saved) return;
    const { files, dir } = this.#options;
    for (const epoch of this.#epochs.all) {
      if (epoch.retirement !== null) continue;
      await withReserve(files, dir, () => writeDurably(files, epoch.dir, 'lost.json', epoch.lost));
    }
    this.#saved = lost;
  }

  /** Makes the next save write all files again: those in memory are not on the disk. */
  forgetSaved(): void {
    this.#saved = -1;
  }

  /** Saves the losses before a deletion. If that fails too, batches declare them from memory. */
  trySave(): Promise<void> {
    return this.tryWrite(() => this.save());
  }

  /** Writes anything else that must outlive a deletion. */
  async tryWrite(write: () => Promise<void>): Promise<void> {
    const { files, dir, log } = this.#options;
    await withReserve(files, dir, write).catch((error: unknown) =>
      log.error({ error: messageOf(error) }, 'spool losses not saved'),
    );
  }
}

const recordsIn = (lost: readonly LostRange[]): number =>
  lost.reduce((sum, { from, to }) => sum + to - from + 1, 0);
