/*
 * Whether shipping works, and the pause after a failure. It logs when shipping stops and when it works again.
 */
import { Backoff } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { millis, mono, shift } from '../../protocol/units.ts';

const BACKOFF = { firstMs: 500, maxMs: 30_000 };

export class ShippingStatus {
  readonly #log: Logger;
  readonly #backoff = new Backoff(BACKOFF);
  #error: string | null = 'not connected yet';
  #pausedUntil = mono(0);

  constructor(log: Logger) {
    this.#log = log;
  }

  get error(): string | null {
    return this.#error;
  }

  get isPaused(): boolean {
    return monoNow() < this.#pausedUntil;
  }

  unreachable(error: string): void {
    if (this.#error === null) this.#log.warn({ error }, 'Redis unreachable, records stay in the spool');
    this.#error = error;
  }

  /** An attempt failed: the next one waits. */
  failed(error: string): void {
    this.unreachable(error);
    this.#pausedUntil = shift(monoNow(), millis(this.#backoff.next()));
  }

  /** Controllers do not accept batches. */
  blocked(reason: string): void {
    if (this.#error !== reason) this.#log.info({ reason }, 'records stay in the spool');
    this.#error = reason;
  }

  /** A connection is up: the next attempt does not wait. */
  connected(): void {
    this.#backoff.reset();
    this.#pausedUntil = mono(0);
  }

  succeeded(): void {
    if (this.#error !== null) this.#log.info('Redis reachable, records are shipped');
    this.#error = null;
    this.#backoff.reset();
  }
}
