/*
 * Eviction deletes segments to make space: when the spool is too big, the oldest ones, acknowledged ones first; when the disk
 * is too full, acknowledged ones only. Segments in memory have a limit of their own.
 */
import { join } from 'node:path';
import { messageOf } from '../../platform/errors.ts';
import type { Epoch, EpochList } from './epoch.ts';
import { type SpoolFolder, spoolUnusable } from './files.ts';
import type { Losses } from './losses.ts';
import type { LostRange } from './lostRanges.ts';
import type { MemoryFallback } from './memoryFallback.ts';
import { saveReached } from './recovery.ts';
import { SEGMENT_BYTES, type Segment } from './segment.ts';
import type { WriteBuffer } from './writeBuffer.ts';

const MAX_MEMORY_BYTES = 16 * 1024 * 1024;
/** A disk fuller than this is not written to; after it was, not before its usage is below the second figure. */
const MAX_USAGE = 0.9;
const MAX_USAGE_TO_RETURN = 0.88;
const USAGE_VALID_MS = 5_000;

export interface EvictionOptions extends SpoolFolder {
  readonly maxBytes: number;
}

export class Eviction {
  readonly #options: EvictionOptions;
  readonly #fallback: MemoryFallback | null;
  readonly #epochs: EpochList;
  readonly #losses: Losses;
  #usageCheckedAt = -Infinity;

  constructor(options: EvictionOptions, fallback: MemoryFallback | null, epochs: EpochList, losses: Losses) {
    this.#options = options;
    this.#fallback = fallback;
    this.#epochs = epochs;
    this.#losses = losses;
  }

  /** Deletes the oldest segments until there is space for another beside what still waits to be written. */
  async makeSpace(buffer: WriteBuffer): Promise<void> {
    if (this.#fallback?.isEngaged === true) return this.#makeSpaceInMemory(this.#fallback);
    const limit = this.#options.maxBytes - SEGMENT_BYTES;
    const failures = new Map<Epoch, unknown>();
    while (this.#epochs.bytes + buffer.bytes > limit) {
      const mayGo = this.#epochs.all.filter((each) => each.segments.length > 0 && !failures.has(each));
      const acknowledged = mayGo.find((each) =>
        each.segments.slice(0, 1).some((it) => each.hasAcknowledged(it)),
      );
      const epoch = acknowledged ?? mayGo[0];
      const oldest = epoch?.segments[0];
      if (epoch === undefined || oldest === undefined) break;
      // A folder that cannot be written to costs its own records, not those of every later epoch.
      await this.#drop(epoch, oldest, 'spool_full').catch((error: unknown) => failures.set(epoch, error));
    }
    const [failure] = failures.values();
    if (failure !== undefined && this.#epochs.bytes + buffer.bytes > limit) throw failure;
  }

  /** In memory only segments in memory can make space. */
  async #makeSpaceInMemory(fallback: MemoryFallback): Promise<void> {
    while (fallback.bytes > MAX_MEMORY_BYTES - SEGMENT_BYTES) {
      const inMemory = this.#epochs.all.flatMap((epoch) =>
        epoch.segments
          .filter(({ file }) => fallback.holds(join(epoch.dir, file)))
          .map((segment) => ({ epoch, segment })),
      );
      const victim = inMemory.find(({ epoch, segment }) => epoch.hasAcknowledged(segment)) ?? inMemory[0];
      if (victim === undefined) return;
      this.#count(await victim.epoch.drop(victim.segment, 'spool_memory_full'));
    }
  }

  /** Deletes acknowledged segments if the disk is too full. Throws if it still is after that: then nothing is written. */
  async checkDisk(openSegment: Segment | undefined): Promise<void> {
    const now = performance.now();
    if (now - this.#usageCheckedAt < USAGE_VALID_MS) return;
    const { dir, files } = this.#options;
    if ((await files.usage(dir)) > MAX_USAGE) {
      // A copy: a sweep may remove an epoch meanwhile, and the next one must not be skipped.
      for (const epoch of [...this.#epochs.all]) await this.#dropAcknowledged(epoch, openSegment);
      if ((await files.usage(dir)) > MAX_USAGE)
        throw spoolUnusable(`the disk is over ${100 * MAX_USAGE} % full`);
    }
    this.#usageCheckedAt = now;
  }

  /** Leaves the memory fallback if the disk has space and can be written to. Returns whether it did. */
  async returnToDisk(): Promise<boolean> {
    if (this.#fallback === null || !this.#fallback.isEngaged) return false;
    const { dir, files } = this.#options;
    if ((await files.usage(dir)) > MAX_USAGE_TO_RETURN || !(await this.#fallback.disengage(dir)))
      return false;
    this.#losses.forgetSaved();
    this.#usageCheckedAt = -Infinity;
    return true;
  }

  async #dropAcknowledged(epoch: Epoch, openSegment: Segment | undefined): Promise<void> {
    for (const segment of [...epoch.segments]) {
      if (segment !== openSegment && epoch.hasAcknowledged(segment)) await this.#drop(epoch, segment, 'none');
    }
  }

  /**
   * Drops a segment, after saving what could not be known any more without it. Throws if a loss cannot be saved: to a disk that does not take
   * a few bytes, deleting records makes no space for others.
   */
  async #drop(epoch: Epoch, segment: Segment, cause: string): Promise<void> {
    if (segment.isEndUnknown === true) await this.#lookForEnd(epoch);
    if (epoch.segments.length === 1)
      await this.#losses.tryWrite(() => saveReached(this.#options.files, epoch));
    const loss = epoch.lossOf(segment, cause);
    if (loss !== null) await this.#saveBefore(epoch, segment, loss);
    this.#count(await epoch.drop(segment, cause));
  }

  /** The readable part of a segment is declared lost with it. */
  async #lookForEnd(epoch: Epoch): Promise<void> {
    await epoch
      .findEnd()
      .catch((error: unknown) =>
        this.#options.log.error({ error: messageOf(error) }, 'spool segment not read before it is dropped'),
      );
  }

  async #saveBefore(epoch: Epoch, segment: Segment, loss: LostRange): Promise<void> {
    try {
      await this.#losses.saveBefore(epoch, loss);
    } catch (error) {
      // A sweep may retire the epoch, and delete its folder, meanwhile: then nothing is lost.
      if (epoch.segments.includes(segment)) throw error;
    }
  }

  #count(records: number): void {
    this.#losses.count(records);
    if (records > 0) this.#options.log.warn({ records }, 'spool full, dropped the oldest records');
  }
}
