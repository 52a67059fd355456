/*
 * A segment: a file with consecutive records of an epoch. segmentFormat.ts describes its content. The reader of an epoch keeps the
 * segment that was read last, so that reading on needs only what was appended.
 */
import { join } from 'node:path';
import type { Context } from '../../protocol/batch.ts';
import { errorCode, type SpoolFiles } from './files.ts';
import { parseSegment, type SpoolEntry } from './segmentFormat.ts';

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

interface CachedSegment {
  readonly file: string;
  readonly entries: SpoolEntry[];
  bytes: number;
  context: Context | null;
}

export class SegmentReader {
  readonly #files: SpoolFiles;
  readonly #dir: string;
  #cache: CachedSegment | null = null;

  constructor(files: SpoolFiles, dir: string) {
    this.#files = files;
    this.#dir = dir;
  }

  /** The entries of a segment, as far as it is written. None if its file is gone: the sender finds that they are missing. */
  async entriesOf(segment: Segment): Promise<readonly SpoolEntry[]> {
    try {
      return await this.#read(segment);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  forgetCache(): void {
    this.#cache = null;
  }

  async #read({ file, bytes }: Segment): Promise<readonly SpoolEntry[]> {
    if (this.#cache?.file !== file) this.#cache = { file, entries: [], bytes: 0, context: null };
    const cache = this.#cache;
    if (cache.bytes >= bytes) return cache.entries;
    const more = parseSegment(await this.#textOf(file, cache.bytes, bytes), cache.context);
    for (const entry of more.entries) cache.entries.push(entry);
    cache.bytes += more.bytes;
    cache.context = more.context;
    return cache.entries;
  }

  async #textOf(file: string, from: number, to: number): Promise<string> {
    const handle = await this.#files.open(join(this.#dir, file), 'r');
    try {
      const buffer = Buffer.alloc(to - from);
      const { bytesRead } = await handle.read(buffer, 0, to - from, from);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await handle.close();
    }
  }
}
