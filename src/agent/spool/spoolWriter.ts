/*
 * Moves lines from the buffer to segments, one write at a time. A failed write is tried again after a second, or at once in
 * memory where the memory fallback is allowed.
 */
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { MemoryFallback } from './memoryFallback.ts';
import type { SegmentWriter } from './segmentWriter.ts';
import type { SpoolStatus } from './status.ts';
import type { WriteBuffer } from './writeBuffer.ts';

const RETRY_MS = 1_000;

export interface SpoolWriterParts {
  readonly buffer: WriteBuffer;
  readonly segments: SegmentWriter;
  readonly status: SpoolStatus;
  readonly fallback: MemoryFallback | null;
  readonly log: Logger;
}

export class SpoolWriter {
  readonly #parts: SpoolWriterParts;
  #onWritten: () => void = () => undefined;
  #writing: Promise<void> | null = null;
  /** The next try after a failed write: one, however much is appended until then. */
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: SpoolWriterParts) {
    this.#parts = parts;
    parts.segments.onSyncFailed(() => this.writeSoon());
  }

  onWritten(listener: () => void): void {
    this.#onWritten = listener;
  }

  /** Writes what was appended: at once, or with the next try where a write has failed. */
  writeSoon(): void {
    if (this.#retry === undefined) void this.flush();
  }

  /** A write that is under way takes in what is appended before it ends. */
  flush(): Promise<void> {
    this.#writing ??= Promise.resolve().then(() => this.#writeAll());
    return this.#writing;
  }

  /** Writes what it can, and nothing after that. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    await this.#parts.segments.end();
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#hasWork) if (!(await this.#writeOnce())) return;
    } finally {
      // At once after the last look: what is appended from now on needs another write.
      this.#writing = null;
    }
  }

  get #hasWork(): boolean {
    const { buffer, segments } = this.#parts;
    return (!buffer.isEmpty || segments.mustRewrite) && !this.#isClosed;
  }

  /** Returns whether to go on at once. */
  async #writeOnce(): Promise<boolean> {
    const { buffer, segments, status } = this.#parts;
    const lines = buffer.take();
    try {
      await segments.append(lines);
      buffer.written(lines);
      await segments.closeIfFull();
      status.succeeded();
      this.#retryAfter(null);
    } catch (error) {
      buffer.putBack(lines);
      if (!(await this.#recover(messageOf(error)))) return false;
    }
    this.#onWritten();
    return true;
  }

  /** Handles a failed write. Returns whether to try again at once. */
  async #recover(error: string): Promise<boolean> {
    const { segments, status, fallback, log } = this.#parts;
    if (status.failed(error)) log.error({ error }, 'spool write failed');
    await segments.abandon();
    if (fallback !== null && !fallback.isEngaged) {
      fallback.engage(error);
      log.error({ error }, 'running from memory');
      return true;
    }
    this.#retryAfter(RETRY_MS);
    return false;
  }

  #retryAfter(ms: number | null): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    if (ms === null) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.flush();
    }, ms).unref();
  }
}
