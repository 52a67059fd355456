/*
 * An epoch of the spool: one life of an agent, a folder of segments.
 *
 *   written     records up to here are in the file (not yet necessarily on the disk)
 *   mark        records up to here are acknowledged; nothing behind it may be deleted
 *   lost        seqs that were dropped, with why; they are declared in the header of every batch
 *
 *   retired     nothing of it is left, all of it was acknowledged: it is only remembered (past.ts)
 *
 * Only the present epoch is appended to. Segments go when they are acknowledged and old enough, or, acknowledged first,
 * when the spool is full.
 */
import { join } from 'node:path';
import type { Context } from '../../protocol/batch.ts';
import { type Seq, seq } from '../../protocol/units.ts';
import type { Files } from './files.ts';
import { type Entry, readSegment } from './segment.ts';

export interface EpochMeta {
  readonly epoch: string;
  readonly life: number;
  readonly prev: string | null;
  readonly cluster: string;
  readonly node: string;
  readonly bootId: string;
  /** See machine.ts; a spool of an earlier version does not say. */
  readonly machine?: string;
  /** Wall clock at the epoch's start, in microseconds since the Unix epoch. */
  readonly startedWall: number;
}

export interface Hole {
  readonly from: number;
  readonly to: number;
  readonly cause: string;
}

/** A file of the spool. `modified` is in milliseconds since the Unix epoch. */
export interface Segment {
  readonly file: string;
  readonly first: number;
  last: number;
  bytes: number;
  modified: number;
}

interface Reading {
  readonly file: string;
  readonly entries: Entry[];
  bytes: number;
  context: Context | null;
}

/** When an epoch went into the past, and under which versions its records were seen. */
export interface Retired {
  /** By the wall clock, in milliseconds since the Unix epoch. */
  readonly at: number;
  readonly context: Context | null;
}

export class Epoch {
  readonly meta: EpochMeta;
  readonly dir: string;
  readonly segments: Segment[];
  readonly lost: Hole[];
  readonly #files: Files;
  written: Seq;
  mark: Seq = seq(0);
  #retired: Retired | null = null;
  /** The entries of the segment that was read last, as far as it was written then. */
  #cache: Reading | null = null;

  constructor(
    files: Files,
    { meta, dir, segments, lost }: Pick<Epoch, 'meta' | 'dir' | 'segments' | 'lost'>,
  ) {
    this.#files = files;
    this.meta = meta;
    this.dir = dir;
    this.segments = segments;
    this.lost = lost;
    const ends = [...segments.map((each) => each.last), ...lost.map((hole) => hole.to)];
    this.written = seq(Math.max(0, ...ends));
  }

  /** The lowest seq that can still be read. */
  get floor(): Seq {
    return seq(this.segments[0]?.first ?? this.written + 1);
  }

  get retired(): Retired | null {
    return this.#retired;
  }

  /** From now on it is only remembered: everything up to `last` was acknowledged once. */
  retire(retired: Retired, last: number = this.written): void {
    this.#retired = retired;
    this.written = seq(last);
    this.mark = seq(last);
  }

  get settled(): boolean {
    return this.mark >= this.written;
  }

  get bytes(): number {
    return this.segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /**
   * Consecutive entries from a seq on, all of one context, up to the limits; at least one where there is one. Where `from`
   * is in a hole, they begin behind it.
   */
  async read(from: number, maxRecords: number, maxBytes: number): Promise<Entry[]> {
    const taken: Entry[] = [];
    let bytes = 0;
    // A copy: a segment that is dropped meanwhile must not make this step over the next one.
    for (const segment of [...this.segments]) {
      if (segment.last < from) continue;
      for (const entry of await this.#entries(segment).catch(noneOfAFileThatIsGone)) {
        if (entry.seq < from || !this.#holds(segment, entry.seq)) continue;
        const last = taken.at(-1);
        bytes += entry.bytes;
        if (
          taken.length >= maxRecords ||
          (last !== undefined && !(follows(last, entry) && bytes <= maxBytes))
        ) {
          return taken;
        }
        taken.push(entry);
      }
    }
    return taken;
  }

  /** Removes the oldest segment; what of it was not acknowledged is lost. */
  async dropOldest(cause: string): Promise<number> {
    const [oldest] = this.segments;
    return oldest === undefined ? 0 : this.drop(oldest, cause);
  }

  /** The same with any of its segments. `told` writes down what is lost, before it is. */
  async drop(
    segment: Segment,
    cause: string,
    told: () => Promise<void> = () => Promise.resolve(),
  ): Promise<number> {
    const at = this.segments.indexOf(segment);
    if (at === -1) return 0;
    this.segments.splice(at, 1);
    const from = Math.max(segment.first, this.mark + 1);
    if (from <= segment.last) {
      this.declare({ from, to: segment.last, cause });
      await told();
    }
    await this.#files.remove(join(this.dir, segment.file));
    return Math.max(0, segment.last - from + 1);
  }

  /** Adds a hole to those that are declared; neighbours of one cause become one. */
  declare(hole: Hole): void {
    const before = this.lost.at(-1);
    if (before !== undefined && before.cause === hole.cause && before.to + 1 === hole.from) {
      this.lost[this.lost.length - 1] = { ...before, to: hole.to };
    } else {
      this.lost.push(hole);
    }
  }

  /**
   * A write that failed may have left records in its segment that were written again, or dropped and declared: only what
   * the segment is known to hold, and what was not declared lost, is read.
   */
  #holds(segment: Segment, at: Seq): boolean {
    return at <= segment.last && !this.lost.some(({ from, to }) => at >= from && at <= to);
  }

  /** Whether every seq from one to another is declared lost; so is an empty stretch. */
  isDeclared(from: number, to: number): boolean {
    let next = from;
    // Holes may overlap: what could not be read is dropped one day, and declared again.
    for (const hole of this.lost.toSorted((a, b) => a.from - b.from)) {
      if (hole.from <= next) next = Math.max(next, hole.to + 1);
    }
    return next > to;
  }

  /** Lets go of what was read; it can be read again. */
  forgetCache(): void {
    this.#cache = null;
  }

  async #entries(segment: Segment): Promise<readonly Entry[]> {
    const { file } = segment;
    if (this.#cache?.file !== file) this.#cache = { file, entries: [], bytes: 0, context: null };
    const reading = this.#cache;
    if (reading.bytes >= segment.bytes) return reading.entries;
    const more = readSegment(await this.#readOn(file, reading.bytes, segment.bytes), reading.context);
    for (const entry of more.entries) reading.entries.push(entry);
    reading.bytes += more.bytes;
    reading.context = more.context;
    return reading.entries;
  }

  async #readOn(file: string, from: number, to: number): Promise<string> {
    const handle = await this.#files.open(join(this.dir, file), 'r');
    try {
      const buffer = Buffer.alloc(to - from);
      const { bytesRead } = await handle.read(buffer, 0, to - from, from);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await handle.close();
    }
  }
}

/** Dropped meanwhile, or taken by a stranger: what was in it is not read, and whoever sends finds that it is missing. */
function noneOfAFileThatIsGone(error: unknown): readonly Entry[] {
  if (Reflect.get(Object(error), 'code') === 'ENOENT') return [];
  throw error;
}

function follows(last: Entry, next: Entry): boolean {
  return next.seq === last.seq + 1 && sameContext(next.context, last.context);
}

const sameContext = (a: Context, b: Context): boolean => a.no === b.no;
