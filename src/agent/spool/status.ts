/*
 * The status of a spool: whether it can be written, and whether it runs from memory.
 */
import type { MemoryFallback } from './memoryFallback.ts';

export class SpoolStatus {
  readonly #fallback: MemoryFallback | null;
  #error: string | null = null;

  constructor(fallback: MemoryFallback | null) {
    this.#fallback = fallback;
  }

  /** Why it cannot be written, or why it runs from memory; null while all is well. */
  get error(): string | null {
    const reason = this.#fallback?.reason ?? null;
    return reason === null ? this.#error : `runs from memory: ${reason}`;
  }

  get isInMemory(): boolean {
    return this.#fallback?.isEngaged ?? false;
  }

  /** Notes an error. Returns whether it is the first one since the last success. */
  failed(error: string): boolean {
    const isFirst = this.#error === null;
    this.#error = error;
    return isFirst;
  }

  succeeded(): void {
    this.#error = null;
  }
}
