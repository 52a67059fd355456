/*
 * One GetContainerEvents stream of the simulated runtime.
 *
 *   writing ── the socket is full ──► queueing ── drained ──► writing
 *                                        │ the queue is full
 *                                        ▼
 *                                   disconnected (RESOURCE_EXHAUSTED)
 *
 * A real containerd would stand still instead and start no pod until the subscriber reads again. The simulator never
 * waits for anybody: it cuts the slow one off and says so in the ground truth.
 */
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import type { GetEventsRequest } from '../cri/runtime.ts';
import type { Outlet } from './channel.ts';

export type EventCall = ServerWritableStream<GetEventsRequest, Uint8Array>;

export interface SubscriberOptions {
  readonly number: number;
  readonly call: EventCall;
  readonly queueLimit: number;
  /** Called once, whoever ended it. */
  readonly onClosed: (cause: string, undelivered: number) => void;
}

export class Subscriber implements Outlet {
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

  send(message: Uint8Array): void {
    if (this.#closed) return;
    if (!this.#full) this.#full = !this.#options.call.write(message);
    else if (this.#queue.length < this.#options.queueLimit) this.#queue.push(message);
    else this.end(status.RESOURCE_EXHAUSTED, 'the subscriber reads too slowly', 'slow');
  }

  /** Ends the stream from the runtime's side. */
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
      if (next === undefined) return;
      this.#full = !this.#options.call.write(next);
    }
  }

  #close(cause: string): void {
    if (this.#closed) return;
    this.#closed = true;
    const undelivered = this.#queue.length;
    this.#queue = [];
    this.#options.onClosed(cause, undelivered);
  }
}
