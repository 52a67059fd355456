/*
 * A segment: a file with consecutive records of an epoch. segmentFormat.ts describes its content. The reader of an epoch keeps what it read last
 * of a segment until it is acknowledged, so that reading on needs only what was appended.
 */
import { join } from 'node:path';
import { isMissing } from '../../platform/errors.ts';
import type { SpoolFiles } from './files.ts';
import { readSegment } from './readSegment.ts';
import type { Contexts, SpoolEntry } from './segmentFormat.ts';

/** A segment of this many bytes is closed, and the next one begins. */
export const SEGMENT_BYTES = 1024 * 1024;

export interface Segment {
  readonly file: string;
  readonly first: number;
  /** The highest seq that it is known to contain; `first` - 1 while it contains none. */
  last: number;
  bytes: number;
  /** When it was last written to, in milliseconds since the Unix epoch. */
  modifiedMs: number;
  /** Whether it could not be read as a whole so far, and no later segment says where it ends: it may contain more than is known. */
  isEndUnknown?: boolean;
}

export const SEGMENT_NAME = /^\d{10}-\w+\.seg$/;

/** The first seq of a segment's records, from its name. */
export const firstSeqOf = (file: string): number => Number.parseInt(file, 10);

interface CachedSegment {
  readonly file: string;
  entries: SpoolEntry[];
  /** No entry up to this seq is kept. */
  releasedThrough: number;
  /** How far it was read. */
  bytes: number;
}

export interface SegmentEntries {
  readonly entries: readonly SpoolEntry[];
  /** Whether a part of it cannot be read or is corrupt: `perhaps` until that was tried often. */
  readonly damaged: 'no' | 'perhaps' | 'yes';
}

/** How many failed reads in a row make data count as lost: the path to a disk may fail and recover. */
const MAX_ATTEMPTS = 10;

export class SegmentReader {
  readonly #files: SpoolFiles;
  readonly #dir: string;
  readonly #contexts: Contexts;
  /** How often in a row segments could not be read. */
  readonly #failures = new Map<string, number>();
  #cache: CachedSegment | null = null;

  /** `contexts`: those of the epoch that are known, for segments whose first sector is unreadable. */
  constructor(files: SpoolFiles, dir: string, contexts: Contexts) {
    this.#files = files;
    this.#dir = dir;
    this.#contexts = contexts;
  }

  /**
   * The entries of a segment from a seq on, and perhaps earlier ones, as far as it is written; all of them if it is damaged. None if its file is gone,
   * and only those that can be read while it is not certain that the others never can: the sender finds that they are missing.
   */
  async entriesOf(segment: Segment, from: number): Promise<SegmentEntries> {
    try {
      return await this.#read(segment, from);
    } catch (error) {
      if (isMissing(error)) return { entries: [], damaged: 'no' };
      throw error;
    }
  }

  forgetCache(): void {
    this.#cache = null;
  }

  /** Keeps no entry up to this seq: it is not expected to be read again. */
  release(through: number): void {
    const cache = this.#cache;
    if (cache === null || cache.entries.length === 0) return;
    cache.releasedThrough = Math.max(cache.releasedThrough, through);
    // Somebody may still read the array.
    cache.entries = cache.entries.filter((entry) => entry.seq > through);
  }

  async #read(segment: Segment, from: number): Promise<SegmentEntries> {
    const { file, bytes } = segment;
    if (this.#cache?.file !== file || from <= this.#cache.releasedThrough)
      this.#cache = { file, entries: [], releasedThrough: 0, bytes: 0 };
    const cache = this.#cache;
    if (cache.bytes >= bytes) return { entries: cache.entries, damaged: 'no' };
    const path = join(this.#dir, file);
    const more = await readSegment(this.#files, path, { from: cache.bytes, to: bytes }, this.#contexts);
    const isDamaged = more.isUnreadable || more.isCorrupt;
    if (isDamaged && cache.releasedThrough > 0) return this.#read(segment, 0);
    if (isDamaged && !this.#isFinal(file))
      return { entries: [...cache.entries, ...more.entries], damaged: 'perhaps' };
    if (!isDamaged) this.#failures.delete(file);
    for (const entry of more.entries) cache.entries.push(entry);
    cache.bytes = bytes;
    return { entries: cache.entries, damaged: isDamaged ? 'yes' : 'no' };
  }

  #isFinal(file: string): boolean {
    const failures = (this.#failures.get(file) ?? 0) + 1;
    this.#failures.set(file, failures);
    return failures >= MAX_ATTEMPTS;
  }
}
