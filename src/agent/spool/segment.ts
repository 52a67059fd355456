/*
 * A segment: a file with consecutive records of an epoch. segmentFormat.ts describes its content. The reader of an epoch keeps the
 * segment that was read last, so that reading on needs only what was appended.
 */
import { join } from 'node:path';
import { errorCode, type SpoolFiles } from './files.ts';
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
}

/** The first seq of a segment's records, from its name. */
export const firstSeqOf = (file: string): number => Number.parseInt(file, 10);

interface CachedSegment {
  readonly file: string;
  readonly entries: SpoolEntry[];
  bytes: number;
}

export interface SegmentEntries {
  readonly entries: readonly SpoolEntry[];
  /** Whether a part of it cannot be read, however often that is tried. */
  readonly isDamaged: boolean;
}

/** How many failed reads make data count as lost: the path to a disk may fail and recover. */
const MAX_ATTEMPTS = 10;

export class SegmentReader {
  readonly #files: SpoolFiles;
  readonly #dir: string;
  readonly #contexts: Contexts;
  /** How often segments could not be read. */
  readonly #failures = new Map<string, number>();
  #cache: CachedSegment | null = null;

  /** `contexts`: those of the epoch that are known, for segments whose first sector is unreadable. */
  constructor(files: SpoolFiles, dir: string, contexts: Contexts) {
    this.#files = files;
    this.#dir = dir;
    this.#contexts = contexts;
  }

  /**
   * The entries of a segment, as far as it is written. None if its file is gone, and fewer while it is not certain that the others cannot
   * be read: the sender finds that they are missing.
   */
  async entriesOf(segment: Segment): Promise<SegmentEntries> {
    try {
      return await this.#read(segment);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return { entries: [], isDamaged: false };
      throw error;
    }
  }

  forgetCache(): void {
    this.#cache = null;
  }

  async #read({ file, bytes }: Segment): Promise<SegmentEntries> {
    if (this.#cache?.file !== file) this.#cache = { file, entries: [], bytes: 0 };
    const cache = this.#cache;
    if (cache.bytes >= bytes) return { entries: cache.entries, isDamaged: false };
    const path = join(this.#dir, file);
    const more = await readSegment(this.#files, path, { from: cache.bytes, to: bytes }, this.#contexts);
    if (more.isDamaged && !this.#isFinal(file)) return { entries: cache.entries, isDamaged: false };
    for (const entry of more.entries) cache.entries.push(entry);
    cache.bytes = more.end;
    return { entries: cache.entries, isDamaged: more.isDamaged };
  }

  #isFinal(file: string): boolean {
    const failures = (this.#failures.get(file) ?? 0) + 1;
    this.#failures.set(file, failures);
    return failures >= MAX_ATTEMPTS;
  }
}
