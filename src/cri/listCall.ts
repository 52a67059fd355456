/*
 * A list call: one of the two lists, requested by the transport that can carry its size.
 *
 *   plain ── over a message's limit, the runtime offers streaming ──► streamed ── UNIMPLEMENTED ──► plain, for good
 *
 * Each list has its own transport: there may be many more containers than sandboxes. An answer that was too large is requested again at
 * once, so that no relist is lost. A list that is streamed stays so; otherwise a few bytes would decide each time. Another runtime at
 * the socket starts from the beginning.
 */
import { monoNow } from '../platform/clock.ts';
import type { ListAnswer } from '../protocol/observation.ts';
import { type CallBounds, CriError } from './client.ts';
import type { ListDecoder } from './lists.ts';

/** An answer in a buffer of its own is surrounded only by the few bytes that frame a message. */
const MAX_FRAMING_BYTES = 16;

/** How one of the two lists is requested. */
export interface ListCallPorts {
  readonly plain: (bounds: CallBounds) => Promise<Buffer>;
  readonly streamed: (bounds: CallBounds, take: (batch: Buffer) => void) => Promise<void>;
}

export interface MeasuredListAnswer extends ListAnswer {
  readonly bytes: number;
}

export type ListTransport = 'plain' | 'streamed';

export class ListCall {
  readonly decoder: ListDecoder;
  readonly #ports: ListCallPorts;
  readonly #timeoutMs: number;
  readonly #transportChanged: (transport: ListTransport, why: CriError) => void;
  #transport: ListTransport = 'plain';
  /** The runtime is known to offer streaming, and has not refused it. */
  #mayStream = false;

  /** `transportChanged` is called with the new transport and the error that led to it; `timeoutMs` is for each call. */
  constructor(
    decoder: ListDecoder,
    ports: ListCallPorts,
    timeoutMs: number,
    transportChanged: (transport: ListTransport, why: CriError) => void,
  ) {
    this.decoder = decoder;
    this.#ports = ports;
    this.#timeoutMs = timeoutMs;
    this.#transportChanged = transportChanged;
  }

  /** Another runtime answers at the socket. */
  setRuntime({ streamingLists }: { readonly streamingLists: boolean }): void {
    this.#transport = 'plain';
    this.#mayStream = streamingLists;
  }

  /** Requests the list; the signal cancels it. Throws CriError, MalformedAnswer and EndlessAnswer. */
  async ask(signal: AbortSignal): Promise<MeasuredListAnswer> {
    return this.#transport === 'plain' ? this.#askPlainFirst(signal) : this.#askStreamedFirst(signal);
  }

  async #askPlainFirst(signal: AbortSignal): Promise<MeasuredListAnswer> {
    try {
      return await this.#plain(signal);
    } catch (error) {
      if (!this.#mayStream || !isTooLarge(error)) throw error;
      return await this.#streamedInstead(signal, error);
    }
  }

  async #streamedInstead(signal: AbortSignal, tooLarge: CriError): Promise<MeasuredListAnswer> {
    try {
      const answer = await this.#streamed(signal);
      this.#transport = 'streamed';
      this.#transportChanged('streamed', tooLarge);
      return answer;
    } catch (error) {
      if (!isUnimplemented(error)) throw error;
      this.#cannotStream(error);
      // The cause is still that the answer is too large.
      throw tooLarge;
    }
  }

  async #askStreamedFirst(signal: AbortSignal): Promise<MeasuredListAnswer> {
    try {
      return await this.#streamed(signal);
    } catch (error) {
      if (!isUnimplemented(error)) throw error;
      this.#cannotStream(error);
      return await this.#plain(signal);
    }
  }

  #cannotStream(why: CriError): void {
    this.#transport = 'plain';
    this.#mayStream = false;
    this.#transportChanged('plain', why);
  }

  async #plain(signal: AbortSignal): Promise<MeasuredListAnswer> {
    const start = monoNow();
    const answer = await this.#ports.plain({ timeoutMs: this.#timeoutMs, signal });
    const end = monoNow();
    try {
      return { start, end, ...this.decoder.read(answer) };
    } finally {
      freeAnswer(answer);
    }
  }

  async #streamed(signal: AbortSignal): Promise<MeasuredListAnswer> {
    const start = monoNow();
    const reading = this.decoder.begin();
    await this.#ports.streamed({ timeoutMs: this.#timeoutMs, signal }, (batch) => reading.add(batch));
    return { start, end: monoNow(), ...reading.end() };
  }
}

/**
 * Frees the memory of an answer that has been read, and leaves it empty. The call's HTTP/2 stream would hold it until the next full
 * collection: answers would pile up and cause one every half minute.
 */
function freeAnswer(answer: Buffer): void {
  const { buffer } = answer;
  const ownsBuffer = buffer.byteLength - answer.length <= MAX_FRAMING_BYTES;
  if (ownsBuffer && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const isTooLarge = (error: unknown): error is CriError =>
  error instanceof CriError && (error.code === 'OVER_OUR_LIMIT' || error.code === 'OVER_RUNTIME_LIMIT');

const isUnimplemented = (error: unknown): error is CriError =>
  error instanceof CriError && error.code === 'UNIMPLEMENTED';
