/*
 * A segment: a file with consecutive records of an epoch. segmentFormat.ts describes its content.
 */

/** A segment of this many bytes is closed, and the next one begins. */
export const SEGMENT_BYTES = 1024 * 1024;

export class Segment {
  /** The name of the file in the epoch's folder. */
  readonly file: string;
  readonly first: number;
  #last: number;
  #bytes: number;
  #modifiedMs: number;

  constructor(file: string, first: number, { last = first - 1, bytes = 0, modifiedMs = Date.now() } = {}) {
    this.file = file;
    this.first = first;
    this.#last = last;
    this.#bytes = bytes;
    this.#modifiedMs = modifiedMs;
  }

  /** The highest seq that the segment is known to contain; `first` - 1 while it contains none. */
  get last(): number {
    return this.#last;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** When it was last written to, in milliseconds since the Unix epoch. */
  get modifiedMs(): number {
    return this.#modifiedMs;
  }

  /** Notes that the file grew by so many bytes, and which record is the last one now. */
  grew(bytes: number, last: number = this.#last): void {
    this.#bytes += bytes;
    this.#modifiedMs = Date.now();
    this.#last = last;
  }
}
