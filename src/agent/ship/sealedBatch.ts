/*
 * A sealed batch: it is built once, and every re-send has the same bytes under the same id, so that an inbox holds it once.
 *
 * Nobody who may write to the inbox can guess the id and occupy it: part of it is random and different in each process.
 */
import { randomInt } from 'node:crypto';
import type { BatchData } from '../../protocol/batch.ts';
import { between, type Micros, type Mono } from '../../protocol/units.ts';

export const PROCESS_ID = Array.from({ length: 3 }, () => randomInt(1e9)).join('');

export class SealedBatch {
  readonly id: string;
  readonly data: BatchData;
  readonly last: number;
  /** Null: it is sent as soon as possible. */
  #sentAt: Mono | null = null;
  #sends = 0;

  constructor(id: string, data: BatchData, last: number) {
    this.id = `${id}.${PROCESS_ID}`;
    this.data = data;
    this.last = last;
  }

  get bytes(): number {
    return this.data.z.length;
  }

  /** Whether to send it now, when `waitAfter` says how long to wait for an answer after a number of sends. */
  isDue(now: Mono, waitAfter: (sends: number) => Micros): boolean {
    return this.#sentAt === null || between(this.#sentAt, now) > waitAfter(this.#sends);
  }

  /** Makes it due: whether it is in the inbox is unknown. */
  makeDue(): void {
    this.#sentAt = null;
  }

  makeDueIfSentBefore(time: Mono): void {
    if (this.#sentAt !== null && this.#sentAt < time) this.#sentAt = null;
  }

  sent(now: Mono): void {
    this.#sentAt = now;
    this.#sends += 1;
  }
}
