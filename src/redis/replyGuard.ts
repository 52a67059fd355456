/*
 * Bounds what a Redis may send to a program that must not grow: an agent, which shares its node with the pods, or a check at start-up.
 *
 * A connection on which a reply is too long, or which sends something else, is closed. The next one waits, longer after each such reply:
 * whoever is behind that address would only send it again.
 */
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Backoff } from '../platform/backoff.ts';
import { monoNow } from '../platform/clock.ts';
import { between, type Micros, type Mono, millis, mono, shift } from '../protocol/units.ts';
import { ReplyMeter } from './replyMeter.ts';

/**
 * The longest legitimate reply is that to CLUSTER SLOTS: some 1 KB for each range of slots with one replica, as replies are measured. This
 * is room for 4,000 ranges; a cluster has 1,000 nodes at most. INFO has 10 KB, and the values that an agent reads have less than 1 KB each.
 */
export const MAX_REPLY_BYTES = 4 * 1024 * 1024;

const FIRST_PAUSE_MS = 1_000;
/** A fault is forgotten after this time without another. */
const FORGET = millis(600_000);

export interface ReplyGuardOptions {
  readonly maxPause: Micros;
  /** Called with what is wrong, once for each connection that is closed. */
  readonly onFault: (fault: string) => void;
}

export class ReplyGuard {
  readonly #onFault: (fault: string) => void;
  readonly #backoff: Backoff;
  #faultAt: Mono | null = null;
  #notBefore = mono(0);
  #message = '';

  constructor({ maxPause, onFault }: ReplyGuardOptions) {
    this.#onFault = onFault;
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: maxPause / 1000 });
  }

  /** Must be called before anything can have arrived on the socket. */
  watch(socket: Socket): void {
    const meter = new ReplyMeter(MAX_REPLY_BYTES);
    const push = socket.push.bind(socket);
    // Where all bytes pass, before any listener of the client has them.
    socket.push = (bytes, encoding) => {
      const fault = Buffer.isBuffer(bytes) ? meter.read(bytes) : null;
      if (fault === null) return push(bytes, encoding);
      this.#failed(fault);
      socket.destroy(new Error(this.#message));
      return false;
    };
  }

  /** Resolves when the next connection may be opened. Throws what was wrong with the last one when the signal is aborted. */
  async ready(signal: AbortSignal): Promise<void> {
    const ms = between(monoNow(), this.#notBefore) / 1000;
    if (ms <= 0) return;
    await wait(ms, undefined, { signal }).catch((cause: unknown) => {
      throw new Error(this.#message, { cause });
    });
  }

  #failed(fault: string): void {
    const now = monoNow();
    if (this.#faultAt !== null && between(this.#faultAt, now) > FORGET) this.#backoff.reset();
    this.#faultAt = now;
    this.#notBefore = shift(now, millis(this.#backoff.next()));
    this.#message = `the connection to Redis was closed: ${fault}`;
    this.#onFault(this.#message);
  }
}
