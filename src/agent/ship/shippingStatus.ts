/*
 * Whether shipping works, why it does not, and the pause after a failure. It logs when shipping stops and when it works again.
 */
import { Backoff } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { millis, mono, shift } from '../../protocol/units.ts';
import type { RedisClient } from '../../redis/client.ts';
import { describeNeeds, missingRights } from '../../redis/rights.ts';
import { redisGrants } from '../../redis/users.ts';

const BACKOFF = { firstMs: 500, maxMs: 30_000 };

export class ShippingStatus {
  readonly #log: Logger;
  readonly #backoff = new Backoff(BACKOFF);
  #error: string | null = 'not connected yet';
  #unreadable: string | null = null;
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
    const reason = this.#unreadable ?? error;
    if (this.#error === null)
      this.#log.warn({ error: reason }, 'Redis unreachable, records stay in the spool');
    this.#error = reason;
  }

  /** A connection was closed for what Redis sent. Until shipping works again, that is the reason for all that fails after it. */
  unreadable(error: string): void {
    this.#unreadable = error;
    this.unreachable(error);
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
    this.#unreadable = null;
    this.#backoff.reset();
  }
}

/** How Redis says that it refuses a command. */
const REFUSED = /NOPERM/;

/**
 * The reason of a failure, for the operator. Never throws. Redis names one command at most that an agent may not use: so the agent asks for
 * all its rights, and says which are missing and how to get them.
 */
export async function reasonOf(error: unknown, redis: RedisClient, cluster: string): Promise<string> {
  const message = messageOf(error);
  if (!REFUSED.test(message)) return message;
  try {
    const missing = await missingRights(redis, redisGrants('agent', cluster));
    if (missing === null) return `${message}; plegwatch redis-acl prints the rights of agents`;
    if (missing.needs.length === 0) return message;
    return `the Redis user may not: ${describeNeeds(missing.needs)}; plegwatch redis-acl prints the rights of agents`;
  } catch (failure) {
    return `${message}; its rights could not be checked: ${messageOf(failure)}`;
  }
}
