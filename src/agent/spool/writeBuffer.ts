/*
 * What waits in memory to be written to the present epoch. Bounded: while writes fail the oldest lines are dropped, and
 * declared lost.
 */
import type { Seq } from '../../protocol/units.ts';
import type { Epoch } from './epoch.ts';
import type { Losses } from './losses.ts';

/** What may wait in memory while writes fail. */
const BUFFER_BYTES = 8 * 1024 * 1024;

/** A line that waits to be written; a context has the seq of the record that follows it. */
export interface Pending {
  readonly is: 'context' | 'record';
  readonly seq: Seq;
  readonly line: string;
}

export class Waiting {
  readonly #present: Epoch;
  readonly #losses: Losses;
  #lines: Pending[] = [];
  #bytes = 0;
  /** Whether some lines are neither here nor in the file. */
  #inFlight = false;

  constructor(present: Epoch, losses: Losses) {
    this.#present = present;
    this.#losses = losses;
  }

  /** How long the lines are that are not written, those that are being written among them. */
  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  /** Takes a line in. */
  push(pending: Pending): void {
    this.#lines.push(pending);
    this.#bytes += pending.line.length;
    while (this.#bytes > BUFFER_BYTES) this.#dropOldest();
  }

  #dropOldest(): void {
    const gone = this.#lines.shift();
    if (gone === undefined) return;
    this.#bytes -= gone.line.length;
    // Every segment begins with the present context anyway.
    if (gone.is === 'context') return;
    this.#losses.dropped += 1;
    this.#present.declare({ from: gone.seq, to: gone.seq, cause: 'spool_unwritable' });
    // What is being written now is older, and may fail.
    if (!this.#inFlight && gone.seq > this.#present.written) this.#present.written = gone.seq;
  }

  /** Hands over all that waits, to be written now. */
  take(): readonly Pending[] {
    const batch = this.#lines;
    this.#lines = [];
    this.#inFlight = true;
    return batch;
  }

  /** So much of it is in the file. */
  wrote(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** The write is over. */
  landed(): void {
    this.#inFlight = false;
  }

  /** The write failed: what was handed over waits again, before all else. */
  putBack(batch: readonly Pending[]): void {
    this.#inFlight = false;
    this.#lines = [...batch, ...this.#lines];
  }
}
