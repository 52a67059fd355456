/*
 * Losses of the spool: dropped records are counted, and saved beside their epoch (lost.json) before they are deleted.
 *
 * The reserve is a file that only takes up space. On a full disk it is deleted, so that losses can still be saved; it is written
 * again when there is space.
 */
import { join } from 'node:path';
import { isMissing, messageOf } from '../../platform/errors.ts';
import type { Epoch, EpochList } from './epoch.ts';
import { isFull, openNew, type SpoolFiles, type SpoolFolder, writeAll, writeDurably } from './files.ts';
import type { LostRange } from './lostRanges.ts';

/** The losses of an epoch, beside its segments. */
export const LOST_FILE = 'lost.json';
const RESERVE_FILE = 'reserve';
const RESERVE_BYTES = 64 * 1024;

export class Losses {
  readonly #options: SpoolFolder;
  readonly #epochs: EpochList;
  /** How many lost records the files declare. */
  #saved = 0;
  #dropped = 0;
  /** The save before; it never fails. */
  #saving: Promise<unknown> = Promise.resolve();

  constructor(options: SpoolFolder, epochs: EpochList) {
    this.#options = options;
    this.#epochs = epochs;
  }

  /** How many records were dropped before they were acknowledged, since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  count(records: number): void {
    this.#dropped += records;
  }

  /** Saves one after another: a write and a sweep may save at once, and the files are the same. */
  save(): Promise<void> {
    return this.#afterOthers(() => this.#save());
  }

  /** Makes the next save write all files again: those in memory are not on the disk, and a failed save wrote only some. */
  forgetSaved(): void {
    this.#saved = -1;
  }

  /** Saves a loss that is about to happen, beside those of its epoch. */
  saveBefore(epoch: Epoch, loss: LostRange): Promise<void> {
    const { files, dir } = this.#options;
    return this.#afterOthers(() =>
      withReserve(files, dir, () => writeDurably(files, epoch.dir, LOST_FILE, [...epoch.lost, loss])),
    );
  }

  /** Saves the losses at the end. If that fails too, only batches have declared them. */
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

  #afterOthers(save: () => Promise<void>): Promise<void> {
    const saved = this.#saving.then(save);
    this.#saving = saved.catch(() => 'the caller of that save handles its error');
    return saved;
  }

  async #save(): Promise<void> {
    const lost = this.#epochs.all.reduce((sum, epoch) => sum + recordsIn(epoch.lost), 0);
    if (lost === this.#saved) return;
    // Before it is true: {@link forgetSaved} may be called meanwhile.
    this.#saved = lost;
    const { files, dir } = this.#options;
    const hasFolder = (epoch: Epoch) => epoch.retirement === null && this.#epochs.all.includes(epoch);
    for (const epoch of [...this.#epochs.all].filter(hasFolder)) {
      try {
        await withReserve(files, dir, () => writeDurably(files, epoch.dir, LOST_FILE, epoch.lost));
      } catch (error) {
        // A sweep may retire an epoch, and delete its folder, meanwhile.
        if (!hasFolder(epoch)) continue;
        this.forgetSaved();
        throw error;
      }
    }
  }
}

const recordsIn = (lost: readonly LostRange[]): number =>
  lost.reduce((sum, { from, to }) => sum + to - from + 1, 0);

/** Writes the reserve if it is missing or incomplete. On a full disk there is none. */
export async function writeReserve(files: SpoolFiles, dir: string): Promise<void> {
  const path = join(dir, RESERVE_FILE);
  try {
    if ((await sizeOf(files, path)) >= RESERVE_BYTES) return;
    const file = await openNew(files, path);
    try {
      await writeAll(file, '\0'.repeat(RESERVE_BYTES));
      await file.datasync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!isFull(error)) throw error;
    await files.remove(path);
  }
}

/** Runs a write. On a full disk it deletes the reserve and tries once more. */
async function withReserve(files: SpoolFiles, dir: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isFull(error)) throw error;
    await files.remove(join(dir, RESERVE_FILE));
    await write();
  }
}

async function sizeOf(files: SpoolFiles, path: string): Promise<number> {
  try {
    return (await files.stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}
