/*
 * Room for what comes: the oldest segments go where the spool is too big, acknowledged ones first, and acknowledged ones where
 * the disk is too full. What lies in memory has bounds of its own.
 */
import { join } from 'node:path';
import type { Epoch, Segment } from './epoch.ts';
import type { Files } from './files.ts';
import type { Losses } from './losses.ts';
import type { Refuge } from './memoryFallback.ts';
import { keepReached } from './recovery.ts';
import { SEGMENT_BYTES } from './segment.ts';

/** What may lie in memory instead of on the disk. */
const MEMORY_BYTES = 16 * 1024 * 1024;
/** Fuller than this a disk is not written to, and not again before there is some room. */
const FULL = 0.9;
const ROOM_AGAIN = 0.88;
/** How long it is believed what was found about that, in milliseconds. */
const FULL_FOR_MS = 5_000;

export interface RoomOptions {
  readonly dir: string;
  readonly maxBytes: number;
  readonly files: Files;
}

export class Room {
  readonly #options: RoomOptions;
  readonly #refuge: Refuge | null;
  readonly #epochs: readonly Epoch[];
  readonly #losses: Losses;
  #fullCheckedAt = -Infinity;

  constructor(options: RoomOptions, refuge: Refuge | null, epochs: readonly Epoch[], losses: Losses) {
    this.#options = options;
    this.#refuge = refuge;
    this.#epochs = epochs;
    this.#losses = losses;
  }

  /** Deletes the oldest segments until there is room for another: acknowledged ones first. `bytes` is what the spool takes. */
  async make(bytes: () => number): Promise<void> {
    if (this.#refuge !== null && this.#refuge.reason !== null) return this.#makeRoomInMemory(this.#refuge);
    const room = this.#options.maxBytes - SEGMENT_BYTES;
    while (bytes() > room) {
      const acknowledged = this.#epochs.find((epoch) => (epoch.segments[0]?.last ?? Infinity) <= epoch.mark);
      const victim = acknowledged ?? this.#epochs.find((epoch) => epoch.segments.length > 0);
      const oldest = victim?.segments[0];
      if (victim === undefined || oldest === undefined) return;
      await this.#drop(victim, oldest, 'spool_full');
    }
    await this.#losses.keep();
  }

  /** The same in memory, where it is less, and where only what lies there makes room. */
  async #makeRoomInMemory(refuge: Refuge): Promise<void> {
    while (refuge.bytes > MEMORY_BYTES - SEGMENT_BYTES) {
      const inMemory = this.#epochs.flatMap((epoch) =>
        epoch.segments
          .filter(({ file }) => refuge.holds(join(epoch.dir, file)))
          .map((segment) => ({ epoch, segment })),
      );
      const victim = inMemory.find(({ epoch, segment }) => segment.last <= epoch.mark) ?? inMemory[0];
      if (victim === undefined) return;
      this.#losses.countDropped(await victim.epoch.drop(victim.segment, 'spool_memory_full'));
    }
  }

  /** On a disk that is over 90 % full what is acknowledged goes, and then nothing is written. Throws. */
  async leaveToOthers(open: Segment | undefined): Promise<void> {
    const now = performance.now();
    if (now - this.#fullCheckedAt < FULL_FOR_MS) return;
    const { dir, files } = this.#options;
    if ((await files.full(dir)) > FULL) {
      for (const epoch of this.#epochs) await this.#dropAcknowledged(epoch, open);
      if ((await files.full(dir)) > FULL) throw new Error(`the disk is over ${100 * FULL} % full`);
    }
    this.#fullCheckedAt = now;
  }

  /** All that is acknowledged, but the segment that is being written. */
  async #dropAcknowledged(epoch: Epoch, open: Segment | undefined): Promise<void> {
    for (const segment of [...epoch.segments]) {
      if (segment !== open && segment.last <= epoch.mark) await this.#drop(epoch, segment, 'none');
    }
  }

  /** Drops a segment; what nothing would tell after that is written down first. */
  async #drop(epoch: Epoch, segment: Segment, cause: string): Promise<void> {
    // The last segment of an epoch is all that tells how far it went.
    if (epoch.segments.length === 1) await this.#losses.tell(() => keepReached(this.#options.files, epoch));
    this.#losses.countDropped(await epoch.drop(segment, cause, () => this.#losses.tellLost()));
  }

  /** Goes back to a disk that takes a file again. Says whether it did. */
  async goBack(): Promise<boolean> {
    if (this.#refuge === null || this.#refuge.reason === null) return false;
    const { dir, files } = this.#options;
    if ((await files.full(dir)) > ROOM_AGAIN || !(await this.#refuge.goBack(dir))) return false;
    this.#losses.mistrustFiles();
    this.#fullCheckedAt = -Infinity;
    return true;
  }
}
