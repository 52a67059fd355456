/*
 * One GetContainerEvents stream of the simulated runtime.
 *
 *   writing ── the socket is full ──► queueing ── drained ──► writing
 *                                        │ the queue is full
 *                                        ▼
 *                                   disconnected (RESOURCE_EXHAUSTED)
 *
 * Where the profile lets a slow subscriber block others, `room` is the number of queued events after which it accepts no
 * more.
 */
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import type { GetEventsRequest } from '../../src/cri/runtime.ts';
import type { EventStream } from './runtimeCore.ts';

export type EventStreamCall = ServerWritableStream<GetEventsRequest, Uint8Array>;

export interface SubscriberOptions {
  readonly number: number;
  readonly call: EventStreamCall;
  readonly queueLimit: number;
  /** Infinity: it accepts every event. */
  readonly room: number;
  /** Called when it accepts events again. */
  readonly onRoom: () => void;
  /** Called once, when the stream has ended. */
  readonly onClosed: (cause: string, undelivered: number) => void;
}

export class Subscriber implements EventStream {
  readonly number: number;
  readonly #options: SubscriberOptions;
  #queue: Uint8Array[] = [];
  #full = false;
  #closed = false;

  constructor(options: SubscriberOptions) {
    this.number = options.number;
    this.#options = options;
    const { call } = options;
    call.on('drain', () => this.#drain());
    call.on('cancelled', () => this.#close('cancelled'));
    call.on('error', () => this.#close('failed'));
    call.on('close', () => this.#close('closed'));
  }

  hasRoom(): boolean {
    return this.#closed || !this.#full || this.#queue.length < this.#options.room;
  }

  send(message: Uint8Array): void {
    if (this.#closed) return;
    if (!this.#full) this.#full = !this.#options.call.write(message);
    else if (this.#queue.length < this.#options.queueLimit) this.#queue.push(message);
    else this.end(status.RESOURCE_EXHAUSTED, 'the subscriber reads too slowly', 'slow');
  }

  /** Ends the stream. */
  end(code: status, details: string, cause: string): void {
    if (this.#closed) return;
    this.#close(cause);
    if (code === status.OK) this.#options.call.end();
    else this.#options.call.emit('error', { code, details });
  }

  #drain(): void {
    this.#full = false;
    while (!this.#full && !this.#closed) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      this.#full = !this.#options.call.write(next);
    }
    if (!this.#closed && this.hasRoom()) this.#options.onRoom();
  }

  #close(cause: string): void {
    if (this.#closed) return;
    this.#closed = true;
    const undelivered = this.#queue.length;
    this.#queue = [];
    this.#options.onClosed(cause, undelivered);
  }
}
