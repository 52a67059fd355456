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

export interface ListCallPorts {
  readonly plain: (bounds: CallBounds) => Promise<Buffer>;
  readonly streamed: (bounds: CallBounds, take: (batch: Buffer) => void) => Promise<void>;
}

export interface MeasuredListAnswer extends ListAnswer {
  readonly bytes: number;
}

export type ListTransport = 'plain' | 'streamed';

/** The known facts of the runtime. An answer that comes after it was replaced changes nothing of the next one. */
interface ListedRuntime {
  transport: ListTransport;
  /** It is known to offer streaming, and has not refused it. */
  mayStream: boolean;
}

export class ListCall {
  readonly decoder: ListDecoder;
  readonly #ports: ListCallPorts;
  readonly #timeoutMs: number;
  readonly #transportChanged: (transport: ListTransport, why: CriError) => void;
  #runtime: ListedRuntime = { transport: 'plain', mayStream: false };

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
    this.#runtime = { transport: 'plain', mayStream: streamingLists };
  }

  /** Requests the list; the signal cancels it. Throws CriError, MalformedMessage and EndlessAnswer. */
  async ask(signal: AbortSignal): Promise<MeasuredListAnswer> {
    const runtime = this.#runtime;
    return runtime.transport === 'plain'
      ? this.#askPlainFirst(runtime, signal)
      : this.#askStreamedFirst(runtime, signal);
  }

  async #askPlainFirst(runtime: ListedRuntime, signal: AbortSignal): Promise<MeasuredListAnswer> {
    try {
      return await this.#plain(signal);
    } catch (error) {
      if (!runtime.mayStream || !isTooLarge(error)) throw error;
      return await this.#streamedInstead(runtime, signal, error);
    }
  }

  async #streamedInstead(
    runtime: ListedRuntime,
    signal: AbortSignal,
    tooLarge: CriError,
  ): Promise<MeasuredListAnswer> {
    try {
      const answer = await this.#streamed(signal);
      runtime.transport = 'streamed';
      this.#transportChanged('streamed', tooLarge);
      return answer;
    } catch (error) {
      if (!isUnimplemented(error)) throw error;
      this.#cannotStream(runtime, error);
      // The cause is still that the answer is too large.
      throw tooLarge;
    }
  }

  async #askStreamedFirst(runtime: ListedRuntime, signal: AbortSignal): Promise<MeasuredListAnswer> {
    try {
      return await this.#streamed(signal);
    } catch (error) {
      if (!isUnimplemented(error)) throw error;
      this.#cannotStream(runtime, error);
      return await this.#plain(signal);
    }
  }

  #cannotStream(runtime: ListedRuntime, why: CriError): void {
    runtime.transport = 'plain';
    runtime.mayStream = false;
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
