/*
 * Writes the segments of the current epoch, one after another.
 *
 *   closed ── append ──► open ── 1 MiB, a failure, or the memory fallback begins or ends ──► closed
 *
 * In a segment a context comes before the first record and wherever it changes. A segment is synced when it is closed, and at most
 * `fsyncInterval` after a write.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { Context } from '../../protocol/batch.ts';
import type { Micros } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import type { Eviction } from './eviction.ts';
import { type SpoolFile, type SpoolFiles, syncFolder, writeAll } from './files.ts';
import type { MemoryFallback } from './memoryFallback.ts';
import { SEGMENT_BYTES, type Segment } from './segment.ts';
import { contextLine } from './segmentFormat.ts';
import type { SpoolStatus } from './status.ts';
import type { BufferedLine, WriteBuffer } from './writeBuffer.ts';

export interface SegmentWriterOptions {
  readonly files: SpoolFiles;
  readonly fsyncInterval: Micros;
  readonly fallback: MemoryFallback | null;
  readonly log: Logger;
  readonly buffer: WriteBuffer;
}

interface OpenSegment {
  readonly segment: Segment;
  readonly file: SpoolFile;
  /** The context of its last record; null while it is empty. */
  context: Context | null;
}

export class SegmentWriter {
  readonly #options: SegmentWriterOptions;
  readonly #epoch: Epoch;
  readonly #eviction: Eviction;
  readonly #status: SpoolStatus;
  #open: OpenSegment | null = null;
  #isDirty = false;
  #syncTimer: NodeJS.Timeout | undefined;
  #syncing: Promise<unknown> = Promise.resolve();
  #isEnding = false;

  constructor(options: SegmentWriterOptions, epoch: Epoch, eviction: Eviction, status: SpoolStatus) {
    this.#options = options;
    this.#epoch = epoch;
    this.#eviction = eviction;
    this.#status = status;
  }

  /** Appends lines. Throws if they could not be written, or not completely: then call {@link abandon}. */
  async append(lines: readonly BufferedLine[]): Promise<void> {
    const [first] = lines;
    if (first === undefined) return;
    if (!this.#status.isInMemory) await this.#eviction.checkDisk(this.#open?.segment);
    const open = await this.#segmentFor(first);
    const { segment, file } = open;
    const bytes = await writeAll(file, textOf(lines, open));
    if (this.#options.fsyncInterval === 0) await file.datasync();
    segment.bytes += bytes;
    segment.last = lines.at(-1)?.seq ?? segment.last;
    segment.modifiedMs = Date.now();
    this.#epoch.advanceTo(segment.last);
    this.#isDirty = true;
    this.#scheduleSync();
  }

  async closeIfFull(): Promise<void> {
    if ((this.#open?.segment.bytes ?? 0) >= SEGMENT_BYTES) await this.#close();
  }

  /** Closes the segment after a failed write: it may end in half a line, so the next write begins another. */
  async abandon(): Promise<void> {
    await this.#close();
    // A full disk still creates files: without this, empty ones would pile up.
    await this.#epoch.removeEmptySegment().catch((error: unknown) => {
      this.#options.log.error({ error: messageOf(error) }, 'empty spool segment not removed');
    });
  }

  /** Syncs what was appended before. Returns whether that succeeded. */
  sync(): Promise<boolean> {
    const done = this.#syncing.then(() => this.#sync());
    this.#syncing = done;
    return done;
  }

  /** Syncs and closes the last segment. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.sync();
    await this.#open?.file.close();
  }

  async #segmentFor(first: BufferedLine): Promise<OpenSegment> {
    if (this.#open !== null && this.#isInPlace(this.#open.segment)) return this.#open;
    await this.#close();
    await this.#eviction.makeSpace(this.#options.buffer);
    const name = `${String(first.seq).padStart(10, '0')}-${randomUUID().slice(0, 8)}.seg`;
    const file = await this.#options.files.open(join(this.#epoch.dir, name), 'ax');
    await syncFolder(this.#options.files, this.#epoch.dir);
    const segment = { file: name, first: first.seq, last: first.seq - 1, bytes: 0, modifiedMs: Date.now() };
    this.#epoch.addSegment(segment);
    this.#open = { segment, file, context: null };
    return this.#open;
  }

  /** Whether it is in memory if the spool runs from memory, and on the disk otherwise. */
  #isInPlace({ file }: Segment): boolean {
    const isInMemory = this.#options.fallback?.holds(join(this.#epoch.dir, file)) ?? false;
    return isInMemory === this.#status.isInMemory;
  }

  async #close(): Promise<void> {
    const file = this.#open?.file;
    this.#open = null;
    if (file === undefined) return;
    try {
      await file.datasync();
      await file.close();
    } catch (error) {
      this.#options.log.error({ error: messageOf(error) }, 'spool segment not synced');
    }
  }

  /** One fsync serves all writes until the timer ends; without a write there is no timer. */
  #scheduleSync(): void {
    const { fsyncInterval } = this.#options;
    if (fsyncInterval > 0) this.#syncTimer ??= setTimeout(() => void this.sync(), fsyncInterval / 1000);
  }

  async #sync(): Promise<boolean> {
    clearTimeout(this.#syncTimer);
    this.#syncTimer = undefined;
    if (!this.#isDirty || this.#open === null) return true;
    this.#isDirty = false;
    try {
      await this.#open.file.datasync();
      return true;
    } catch (error) {
      this.#isDirty = true;
      this.#status.failed(messageOf(error));
      if (!this.#isEnding) this.#scheduleSync();
      return false;
    }
  }
}

/** The lines as they are written: a context is before the first record that was observed in it. */
function textOf(lines: readonly BufferedLine[], open: OpenSegment): string {
  let text = '';
  for (const { line, context } of lines) {
    if (context !== open.context) text += contextLine(context);
    open.context = context;
    text += line;
  }
  return text;
}
