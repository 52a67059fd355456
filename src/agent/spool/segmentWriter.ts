/*
 * Writes the segments of the current epoch, one after another.
 *
 *   closed ── append ──► open ── 1 MiB, a failure, or the memory fallback begins or ends ──► closed
 *
 * In a segment a context comes before the first record and wherever it changes. A segment is synced when it is closed, and at most
 * `fsyncInterval` after a write.
 *
 * After a failed fsync the kernel may have dropped the data, and the next fsync of that file would succeed all the same. Therefore
 * records are kept in memory until they are synced, and those whose fsync failed are written to another segment.
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
import { contextJson, LINE_OVERHEAD, lineAt } from './segmentFormat.ts';
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
  /** Lines written since the last fsync. */
  unsynced: BufferedLine[];
  /** Whether an fsync of it failed: it is not synced again. */
  hasFailed: boolean;
}

/** A closed segment that ends in records which are perhaps not on the disk. */
interface Suspect {
  readonly segment: Segment;
  readonly lines: readonly BufferedLine[];
}

export class SegmentWriter {
  readonly #options: SegmentWriterOptions;
  readonly #epoch: Epoch;
  readonly #eviction: Eviction;
  readonly #status: SpoolStatus;
  #onSyncFailed: () => void = () => undefined;
  #open: OpenSegment | null = null;
  #suspect: Suspect | null = null;
  #syncTimer: NodeJS.Timeout | undefined;
  /** Syncs and closes, one after another: of two at once only one would learn of a failure. */
  #syncing: Promise<unknown> = Promise.resolve();
  #isEnding = false;

  constructor(options: SegmentWriterOptions, epoch: Epoch, eviction: Eviction, status: SpoolStatus) {
    this.#options = options;
    this.#epoch = epoch;
    this.#eviction = eviction;
    this.#status = status;
  }

  /** Sets what is called after a failed fsync: it should append, if only nothing. */
  onSyncFailed(listener: () => void): void {
    this.#onSyncFailed = listener;
  }

  /** Whether an fsync failed, and the next append writes its records again. */
  get mustRewrite(): boolean {
    return this.#suspect !== null || this.#open?.hasFailed === true;
  }

  /**
   * Appends lines, after those whose fsync failed. Throws if they could not be written, or not completely: then call
   * {@link abandon}.
   */
  async append(lines: readonly BufferedLine[]): Promise<void> {
    if (this.#open !== null && (this.#open.hasFailed || !this.#isInPlace(this.#open.segment)))
      await this.#close();
    const suspect = this.#suspect;
    const all = [...(suspect?.lines ?? []), ...lines];
    const [first] = all;
    if (first === undefined) return;
    if (!this.#status.isInMemory) await this.#eviction.checkDisk(this.#open?.segment);
    const open = await this.#segmentFor(first);
    const { segment, file } = open;
    const bytes = await writeAll(file, textOf(all, open));
    if (this.#options.fsyncInterval === 0 || suspect !== null) await this.#syncNow(open);
    else for (const line of all) open.unsynced.push(line);
    segment.bytes += bytes;
    segment.last = all.at(-1)?.seq ?? segment.last;
    segment.modifiedMs = Date.now();
    this.#epoch.advanceTo(segment.last);
    if (suspect !== null) await this.#discard(suspect);
    this.#scheduleSync();
  }

  async closeIfFull(): Promise<void> {
    if ((this.#open?.segment.bytes ?? 0) >= SEGMENT_BYTES) await this.#close();
  }

  /** Closes the segment after a failed write: it may end in half a line, so the next write begins another. */
  async abandon(): Promise<void> {
    await this.#close();
    // A full disk still creates files: without this, empty ones would pile up.
    await this.#epoch.removeEmptySegment().catch(this.#logs('empty spool segment not removed'));
  }

  /** Syncs what was appended before. Returns whether that succeeded. */
  sync(): Promise<boolean> {
    return this.#afterSyncs(() => this.#sync());
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.sync();
    try {
      if (this.mustRewrite) await this.append([]);
    } catch (error) {
      this.#options.log.error({ error: messageOf(error) }, 'last records of the spool not synced');
    }
    await this.#close();
  }

  async #segmentFor(first: BufferedLine): Promise<OpenSegment> {
    if (this.#open !== null) return this.#open;
    await this.#eviction.makeSpace(this.#options.buffer);
    const name = `${String(first.seq).padStart(10, '0')}-${randomUUID().slice(0, 8)}.seg`;
    const file = await this.#options.files.open(join(this.#epoch.dir, name), 'ax');
    const segment = { file: name, first: first.seq, last: first.seq - 1, bytes: 0, modifiedMs: Date.now() };
    this.#epoch.addSegment(segment);
    this.#open = { segment, file, context: null, unsynced: [], hasFailed: false };
    await syncFolder(this.#options.files, this.#epoch.dir);
    return this.#open;
  }

  /** Whether it is in memory if the spool runs from memory, and on the disk otherwise. */
  #isInPlace({ file }: Segment): boolean {
    const isInMemory = this.#options.fallback?.holds(join(this.#epoch.dir, file)) ?? false;
    return isInMemory === this.#status.isInMemory;
  }

  #close(): Promise<void> {
    return this.#afterSyncs(async () => {
      const open = this.#open;
      this.#open = null;
      if (open === null) return;
      try {
        if (!open.hasFailed && open.unsynced.length > 0) await this.#syncNow(open);
      } catch (error) {
        this.#options.log.error({ error: messageOf(error) }, 'spool segment not synced, it is written again');
      }
      if (open.unsynced.length > 0) this.#suspect = { segment: open.segment, lines: open.unsynced };
      await open.file.close().catch(this.#logs('spool segment not closed'));
    });
  }

  /** Only the copy of the suspect records in the later segment counts from now on. */
  async #discard({ segment, lines }: Suspect): Promise<void> {
    this.#suspect = null;
    const synced = (lines[0]?.seq ?? segment.last + 1) - 1;
    if (synced >= segment.first) segment.last = synced;
    else await this.#epoch.removeSegment(segment).catch(this.#logs('spool segment not removed'));
  }

  /** One fsync serves all writes until the timer ends; without a write there is no timer. */
  #scheduleSync(): void {
    const { fsyncInterval } = this.#options;
    if (fsyncInterval > 0 && !this.#isEnding)
      this.#syncTimer ??= setTimeout(() => void this.sync(), fsyncInterval / 1000);
  }

  async #sync(): Promise<boolean> {
    clearTimeout(this.#syncTimer);
    this.#syncTimer = undefined;
    const open = this.#open;
    if (this.mustRewrite) return false;
    if (open === null || open.unsynced.length === 0) return true;
    try {
      await this.#syncNow(open);
      return true;
    } catch (error) {
      this.#status.failed(messageOf(error));
      this.#options.log.error({ error: messageOf(error) }, 'spool segment not synced, it is written again');
      this.#onSyncFailed();
      return false;
    }
  }

  async #syncNow(open: OpenSegment): Promise<void> {
    const lines = open.unsynced.length;
    try {
      await open.file.datasync();
    } catch (error) {
      open.hasFailed = true;
      throw error;
    }
    open.unsynced.splice(0, lines);
  }

  readonly #logs = (message: string) => (error: unknown) =>
    this.#options.log.error({ error: messageOf(error) }, message);

  #afterSyncs<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#syncing.then(work);
    this.#syncing = done;
    return done;
  }
}

/** The lines as they are written: a context is, twice, before the first record that was observed in it. */
function textOf(lines: readonly BufferedLine[], open: OpenSegment): string {
  const { file, bytes } = open.segment;
  let text = '';
  let at = bytes;
  const add = (json: string) => {
    text += lineAt(file, at, json);
    at += Buffer.byteLength(json) + LINE_OVERHEAD;
  };
  for (const { json, context } of lines) {
    if (context !== open.context) {
      add(contextJson(context));
      add(contextJson(context));
    }
    open.context = context;
    add(json);
  }
  return text;
}
