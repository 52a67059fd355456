/*
 * A sealed batch: it is built once, and every re-send has the same bytes under the same job id, so that a queue holds it once.
 *
 * Nobody who may write to the queue can guess the id and occupy it: part of it is random and different in each process. After an add
 * that Redis refused, which may have left a job behind that is in no list, the batch gets a new id.
 */
import { randomInt } from 'node:crypto';
import type { JobData } from '../../protocol/batch.ts';
import { between, type Micros, type Mono } from '../../protocol/units.ts';

const PROCESS_ID = Array.from({ length: 3 }, () => randomInt(1e9)).join('');

export class SealedBatch {
  readonly #id: string;
  readonly data: JobData;
  readonly last: number;
  /** Null: it is sent as soon as possible. */
  #sentAt: Mono | null = null;
  #sends = 0;
  #refusals = 0;

  constructor(id: string, data: JobData, last: number) {
    this.#id = id;
    this.data = data;
    this.last = last;
  }

  get id(): string {
    const id = `${this.#id}.${PROCESS_ID}`;
    return this.#refusals === 0 ? id : `${id}.${this.#refusals}`;
  }

  get bytes(): number {
    return this.data.z.length;
  }

  /** Whether to send it now, when `waitAfter` says how long to wait for an answer after a number of sends. */
  isDue(now: Mono, waitAfter: (sends: number) => Micros): boolean {
    return this.#sentAt === null || between(this.#sentAt, now) > waitAfter(this.#sends);
  }

  /** Makes it due: whether it is in the queue is unknown. */
  makeDue(): void {
    this.#sentAt = null;
  }

  /** Redis answered an add with an error. */
  refused(): void {
    this.#refusals += 1;
  }

  makeDueIfSentBefore(time: Mono): void {
    if (this.#sentAt !== null && this.#sentAt < time) this.#sentAt = null;
  }

  sent(now: Mono): void {
    this.#sentAt = now;
    this.#sends += 1;
  }
}
