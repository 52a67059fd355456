/*
 * A list call: one of the two lists, asked for in the way that bears its size.
 *
 *   plain ── over a message's limit, the runtime streams lists ──► streamed ── UNIMPLEMENTED ──► plain, for good
 *
 * The way is a list's own: there may be many more containers than sandboxes. The answer that was too large is asked for again
 * at once, so that no relist is lost over it. Once streamed, a list stays so: which of both it takes next time would hang on a
 * few bytes. A runtime that is replaced by another begins anew.
 */
import { monoNow } from '../platform/clock.ts';
import type { ListAnswer } from '../protocol/observation.ts';
import { type CallBounds, CriError } from './client.ts';
import type { ListReader } from './lists.ts';

/** A buffer of its own has little around an answer: the few bytes that frame a message. */
const MOST_AROUND = 16;

/** How one of the two lists is asked for. */
export interface ListCallPorts {
  readonly plain: (bounds: CallBounds) => Promise<Buffer>;
  readonly streamed: (bounds: CallBounds, take: (batch: Buffer) => void) => Promise<void>;
}

export interface MeasuredListAnswer extends ListAnswer {
  readonly bytes: number;
}

export type Way = 'plain' | 'streamed';

export class ListCall {
  readonly reader: ListReader;
  readonly #ports: ListCallPorts;
  readonly #timeoutMs: number;
  readonly #turned: (way: Way, why: CriError) => void;
  #way: Way = 'plain';
  /** Whether streaming may be tried: known of the runtime, and not disproved by it. */
  #mayStream = false;

  /** `turned` is told each change of the way, and why; `timeoutMs` is for each call. */
  constructor(
    reader: ListReader,
    ports: ListCallPorts,
    timeoutMs: number,
    turned: (way: Way, why: CriError) => void,
  ) {
    this.reader = reader;
    this.#ports = ports;
    this.#timeoutMs = timeoutMs;
    this.#turned = turned;
  }

  /** From now on another runtime answers. */
  runtimeIs({ streamingLists }: { readonly streamingLists: boolean }): void {
    this.#way = 'plain';
    this.#mayStream = streamingLists;
  }

  /** Asks; the signal ends it early, as CANCELLED. Throws CriError, MalformedAnswer and EndlessAnswer. */
  async ask(signal: AbortSignal): Promise<MeasuredListAnswer> {
    return this.#way === 'plain' ? this.#askPlainFirst(signal) : this.#askStreamedFirst(signal);
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
      this.#way = 'streamed';
      this.#turned('streamed', tooLarge);
      return answer;
    } catch (error) {
      if (!isUnimplemented(error)) throw error;
      this.#cannotStream(error);
      // What is wrong is still that the answer is too large.
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
    this.#way = 'plain';
    this.#mayStream = false;
    this.#turned('plain', why);
  }

  async #plain(signal: AbortSignal): Promise<MeasuredListAnswer> {
    const start = monoNow();
    const answer = await this.#ports.plain({ timeoutMs: this.#timeoutMs, signal });
    const end = monoNow();
    try {
      return { start, end, ...this.reader.read(answer) };
    } finally {
      giveBack(answer);
    }
  }

  async #streamed(signal: AbortSignal): Promise<MeasuredListAnswer> {
    const start = monoNow();
    const reading = this.reader.begin();
    await this.#ports.streamed({ timeoutMs: this.#timeoutMs, signal }, (batch) => reading.add(batch));
    return { start, end: monoNow(), ...reading.end() };
  }
}

/**
 * Frees the memory of an answer that has been read; it is empty then. The stream of HTTP/2 behind the call holds it until
 * the next full collection, however young it is: answers would pile up, and bring on what they wait for every half minute.
 */
function giveBack(answer: Buffer): void {
  const { buffer } = answer;
  const isItsOwn = buffer.byteLength - answer.length <= MOST_AROUND;
  if (isItsOwn && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const isTooLarge = (error: unknown): error is CriError =>
  error instanceof CriError && (error.code === 'OVER_OUR_LIMIT' || error.code === 'OVER_RUNTIME_LIMIT');

const isUnimplemented = (error: unknown): error is CriError =>
  error instanceof CriError && error.code === 'UNIMPLEMENTED';
