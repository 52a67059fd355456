/*
 * Frames: what the reader process sends its parent over their pipe.
 *
 *   u32 length of what follows · u8 kind · f64 position on the monotonic clock (microseconds) · body
 *
 * Both ends are of one build, so a frame that cannot be decoded is a defect, not an input.
 */
import { invariant } from '../../../platform/invariant.ts';
import { type Micros, type Mono, millis, mono } from '../../../protocol/units.ts';

/** The answer of Version on the reader's own connection, once before and once after subscribing. */
const VERSION = 1;
const OPENED = 2;
const EVENT = 3;
/** One event whose payload had to be dropped because the parent did not read. */
const DIGEST = 4;
/** Everything in the socket has been read. Serves as the heartbeat. */
const DRAINED = 5;
/** The stream, or the connection before it, ended. */
const ENDED = 6;
/** Events were dropped without even a digest. */
const OVERFLOW = 7;

/** How often the reader sends `drained`, which wakes two processes up; twice within the silence after which it is killed. */
export const HEARTBEAT: Micros = millis(900);

export type Frame =
  | { readonly is: 'version'; readonly at: Mono; readonly name: string; readonly version: string }
  | { readonly is: 'opened'; readonly at: Mono; readonly wallNs: bigint }
  | { readonly is: 'event'; readonly at: Mono; readonly bytes: Buffer }
  | {
      readonly is: 'digest';
      readonly at: Mono;
      readonly id: string;
      readonly type: number;
      readonly createdNs: bigint;
    }
  | { readonly is: 'drained'; readonly at: Mono }
  | { readonly is: 'ended'; readonly at: Mono; readonly code: string; readonly message: string }
  | { readonly is: 'overflow'; readonly at: Mono; readonly events: number };

const HEADER = 13;
/** A frame is never longer than the largest message and its header. */
const MAX_FRAME = 17 * 1024 * 1024;
const EMPTY = Buffer.alloc(0);

export function encodeFrame(frame: Frame): Buffer {
  const [kind, body] = bodyOf(frame);
  const bytes = Buffer.allocUnsafe(HEADER + body.length);
  bytes.writeUInt32BE(HEADER - 4 + body.length, 0);
  bytes.writeUInt8(kind, 4);
  bytes.writeDoubleBE(frame.at, 5);
  body.copy(bytes, HEADER);
  return bytes;
}

function bodyOf(frame: Frame): [kind: number, body: Buffer] {
  switch (frame.is) {
    case 'version':
      return [VERSION, json([frame.name, frame.version])];
    case 'opened':
      return [OPENED, json([String(frame.wallNs)])];
    case 'event':
      return [EVENT, frame.bytes];
    case 'digest':
      return [DIGEST, json([frame.id, frame.type, String(frame.createdNs)])];
    case 'drained':
      return [DRAINED, EMPTY];
    case 'ended':
      return [ENDED, json([frame.code, frame.message])];
    case 'overflow':
      return [OVERFLOW, json([frame.events])];
  }
}

export class FrameReader {
  #chunks: Buffer[] = [];
  #size = 0;

  /** Yields the frames that this chunk completes. Throws on what no reader sends. */
  *push(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    for (;;) {
      const need = this.#bytesNeeded();
      if (this.#size < need) return;
      const frame = this.#take(need);
      yield decodeFrame(frame);
    }
  }

  /** How many bytes the next frame needs; just enough for its length while that is unknown. */
  #bytesNeeded(): number {
    if (this.#size < 4) return 4 + 1;
    const length = this.#joined().readUInt32BE(0);
    invariant(length >= HEADER - 4 && length <= MAX_FRAME, `a frame of ${length} bytes`);
    return 4 + length;
  }

  #take(size: number): Buffer {
    const all = this.#joined(size);
    this.#chunks = all.length > size ? [all.subarray(size)] : [];
    this.#size -= size;
    return all.subarray(0, size);
  }

  /** The first chunks as one buffer of at least `min` bytes. */
  #joined(min = 4): Buffer {
    const first = this.#chunks[0] ?? EMPTY;
    if (first.length >= min || this.#chunks.length <= 1) return first;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}

function decodeFrame(bytes: Buffer): Frame {
  const at = mono(bytes.readDoubleBE(5));
  const body = bytes.subarray(HEADER);
  const kind = bytes.readUInt8(4);
  if (kind === EVENT) return { is: 'event', at, bytes: body };
  if (kind === DRAINED) return { is: 'drained', at };
  const fields: unknown = JSON.parse(body.toString('utf8'));
  invariant(Array.isArray(fields), `a frame of kind ${kind} without a list`);
  const text = (i: number): string => String(fields[i]);
  switch (kind) {
    case VERSION:
      return { is: 'version', at, name: text(0), version: text(1) };
    case OPENED:
      return { is: 'opened', at, wallNs: BigInt(text(0)) };
    case DIGEST:
      return { is: 'digest', at, id: text(0), type: Number(fields[1]), createdNs: BigInt(text(2)) };
    case ENDED:
      return { is: 'ended', at, code: text(0), message: text(1) };
    case OVERFLOW:
      return { is: 'overflow', at, events: Number(fields[0]) };
    default:
      invariant(false, `a frame of kind ${kind}`);
  }
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value), 'utf8');
