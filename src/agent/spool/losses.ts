/*
 * The losses of the spool: what was dropped is counted, and written down beside its epoch before it is gone.
 */
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { Epoch, Hole } from './epoch.ts';
import { type Files, writeDurably } from './files.ts';
import { withReserve } from './reserve.ts';

const UNTOLD = 'the losses of the spool could not be written';

export interface LossesOptions {
  readonly dir: string;
  readonly log: Logger;
  readonly files: Files;
}

export class Losses {
  readonly #options: LossesOptions;
  readonly #epochs: readonly Epoch[];
  /** How many lost records the files speak of. */
  #inFiles = 0;
  /** Records that were dropped before they were stored, since the start. */
  dropped = 0;

  constructor(options: LossesOptions, epochs: readonly Epoch[]) {
    this.#options = options;
    this.#epochs = epochs;
  }

  /** So many of its oldest records were dropped: the spool was full. */
  countDropped(lost: number): void {
    this.dropped += lost;
    if (lost > 0)
      this.#options.log.warn({ records: lost }, 'the spool is full and dropped its oldest records');
  }

  /** Losses outlive a restart. */
  async keep(): Promise<void> {
    const count = this.#epochs.reduce((sum, epoch) => sum + sizeOf(epoch.lost), 0);
    if (count === this.#inFiles) return;
    const { files, dir } = this.#options;
    for (const epoch of this.#epochs) {
      if (epoch.retired !== null) continue;
      await withReserve(files, dir, () => writeDurably(files, epoch.dir, 'lost.json', epoch.lost));
    }
    this.#inFiles = count;
  }

  /** What the files say may be gone: they are written again, whatever they speak of. */
  mistrustFiles(): void {
    this.#inFiles = -1;
  }

  /** What is about to be lost is written down first. Where even that fails, it is declared from memory. */
  tellLost(): Promise<void> {
    return this.tell(() => this.keep());
  }

  /** The same with anything else that has to outlive what goes. */
  async tell(write: () => Promise<void>): Promise<void> {
    const { files, dir, log } = this.#options;
    await withReserve(files, dir, write).catch((error: unknown) =>
      log.error({ error: messageOf(error) }, UNTOLD),
    );
  }
}

/** How many records are in holes. */
const sizeOf = (holes: readonly Hole[]): number =>
  holes.reduce((sum, { from, to }) => sum + to - from + 1, 0);
