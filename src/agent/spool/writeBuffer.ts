/*
 * The write buffer: lines in memory that wait to be written to the current epoch. It is bounded: while writes fail, the oldest
 * lines are dropped and declared lost.
 */
import type { Context } from '../../protocol/batch.ts';
import type { Seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import type { Losses } from './losses.ts';
import { LINE_OVERHEAD } from './segmentFormat.ts';

const MAX_BYTES = 8 * 1024 * 1024;

const sizeOf = ({ json }: BufferedLine): number => json.length + LINE_OVERHEAD;

export interface BufferedLine {
  readonly seq: Seq;
  /** The JSON of its line; the segment adds the rest. */
  readonly json: string;
  readonly context: Context;
}

export class WriteBuffer {
  readonly #epoch: Epoch;
  readonly #losses: Losses;
  #lines: BufferedLine[] = [];
  #bytes = 0;
  /** Whether a write is under way with lines that were taken. */
  #isWriting = false;

  constructor(epoch: Epoch, losses: Losses) {
    this.#epoch = epoch;
    this.#losses = losses;
  }

  /** The length of all lines that are not written yet, taken ones included. */
  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  push(line: BufferedLine): void {
    this.#lines.push(line);
    this.#bytes += sizeOf(line);
    while (this.#bytes > MAX_BYTES) this.#dropOldest();
  }

  #dropOldest(): void {
    const dropped = this.#lines.shift();
    if (dropped === undefined) return;
    this.#bytes -= sizeOf(dropped);
    this.#losses.count(1);
    this.#epoch.declareLost({ from: dropped.seq, to: dropped.seq, cause: 'spool_unwritable' });
    // The lines of a write under way are older, and the write may fail.
    if (!this.#isWriting) this.#epoch.advanceTo(dropped.seq);
  }

  /** Takes all lines out, to be written. Ends with {@link written} or {@link putBack}. */
  take(): readonly BufferedLine[] {
    const lines = this.#lines;
    this.#lines = [];
    this.#isWriting = true;
    return lines;
  }

  written(lines: readonly BufferedLine[]): void {
    this.#isWriting = false;
    this.#bytes -= lines.reduce((sum, line) => sum + sizeOf(line), 0);
  }

  /** The write failed: the taken lines wait again, before all others. */
  putBack(lines: readonly BufferedLine[]): void {
    this.#isWriting = false;
    this.#lines = [...lines, ...this.#lines];
  }
}
