/*
 * The `:authority` of clients that use grpc-go before 1.57, kubelets up to 1.28 among them: the path of the socket (grpc-go clientconn.go,
 * determineAuthority). Servers in Go accept it. Node.js resets each such call with PROTOCOL_ERROR, because an authority has no slash (RFC 3986, 3.2).
 *
 *   client ──► each slash in an `:authority` becomes a dot ──► HTTP/2 of Node.js
 *
 * A dot is as long as a slash, in Huffman code too, so that nothing else changes: no length of a frame, and no size in the table of HPACK (RFC 7541).
 */
import { constants } from 'node:http2';
import { Transform, type TransformCallback } from 'node:stream';

const PREFACE_BYTES = 24;
const FRAME_PREFIX_BYTES = 9;
const HEADERS = 1;
const PRIORITY_BYTES = 5;

/** Its index in the static table, by which clients name it. */
const AUTHORITY = 1;
const SLASH = 0x2f;
const DOT = 0x2e;

/** The Huffman codes of printable characters: their length in bits, and the first number above the codes of that length. */
const CODES = new Map([
  [5, 0xa],
  [6, 0x2e],
  [7, 0x7c],
  [8, 0xfe],
  [10, 0x3fd],
  [11, 0x7fd],
  [12, 0xffc],
  [13, 0x1ffe],
  [14, 0x3ffe],
  [15, 0x7fff],
]);
/** The slash in six bits. The last four of the dot, 010111, are the opposite. */
const CODED_SLASH = 0b011000;

/** Passes on what a client sends over one connection. */
export class DottedAuthority extends Transform {
  /** An incomplete frame. */
  #held: Buffer = Buffer.alloc(0);
  #prefaceLeft = PREFACE_BYTES;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const all = Buffer.concat([this.#held, chunk]);
    let at = Math.min(this.#prefaceLeft, all.length);
    this.#prefaceLeft -= at;
    for (let end = frameEnd(all, at); end <= all.length; end = frameEnd(all, at)) {
      dotFrame(all.subarray(at, end));
      at = end;
    }
    this.#held = all.subarray(at);
    done(null, all.subarray(0, at));
  }
}

/** Where the frame that begins here ends, or its prefix. */
function frameEnd(all: Buffer, at: number): number {
  const prefixEnd = at + FRAME_PREFIX_BYTES;
  return prefixEnd > all.length ? prefixEnd : prefixEnd + all.readUIntBE(at, 3);
}

/** A CONTINUATION has none: it is among the first fields. */
function dotFrame(frame: Buffer): void {
  if (frame[3] !== HEADERS) return;
  const has = (flag: number): boolean => ((frame[4] ?? 0) & flag) !== 0;
  const isPadded = has(constants.NGHTTP2_FLAG_PADDED);
  const begin =
    FRAME_PREFIX_BYTES + (isPadded ? 1 : 0) + (has(constants.NGHTTP2_FLAG_PRIORITY) ? PRIORITY_BYTES : 0);
  dotBlock(frame.subarray(begin, frame.length - (isPadded ? (frame[FRAME_PREFIX_BYTES] ?? 0) : 0)));
}

function dotBlock(block: Buffer): void {
  for (let at = 0; at < block.length; ) {
    const { bits, hasValue } = kindOf(block[at] ?? 0);
    const name = integerAt(block, at, bits);
    at = name.end;
    if (!hasValue) continue;
    if (name.value === 0) at = stringAt(block, at).end;
    const { text, isCoded, end } = stringAt(block, at);
    at = end;
    if (name.value === AUTHORITY) (isCoded ? dotCoded : dotPlain)(text);
  }
}

/** Kind of a field: the bits of the integer that it begins with, which is the index of a field or of a name, or a size. */
function kindOf(first: number): { bits: number; hasValue: boolean } {
  if (first >= 0x80) return { bits: 7, hasValue: false };
  if (first >= 0x40) return { bits: 6, hasValue: true };
  return first >= 0x20 ? { bits: 5, hasValue: false } : { bits: 4, hasValue: true };
}

function integerAt(block: Buffer, at: number, bits: number): { value: number; end: number } {
  const max = 2 ** bits - 1;
  let value = (block[at] ?? 0) & max;
  let end = at + 1;
  if (value < max) return { value, end };
  for (let unit = 1, more = true; more; unit *= 128, end += 1) {
    const byte = block[end] ?? 0;
    value += (byte & 0x7f) * unit;
    more = byte >= 0x80;
  }
  return { value, end };
}

function stringAt(block: Buffer, at: number): { text: Buffer; isCoded: boolean; end: number } {
  const length = integerAt(block, at, 7);
  const end = length.end + length.value;
  return { text: block.subarray(length.end, end), isCoded: (block[at] ?? 0) >= 0x80, end };
}

function dotPlain(text: Buffer): void {
  for (const [i, byte] of text.entries()) if (byte === SLASH) text[i] = DOT;
}

function dotCoded(text: Buffer): void {
  const maskOf = (bit: number): number => 0x80 >> (bit & 7);
  let [code, length] = [0, 0];
  for (let bit = 0; bit < 8 * text.length; bit += 1) {
    code = 2 * code + (((text[bit >> 3] ?? 0) & maskOf(bit)) === 0 ? 0 : 1);
    length += 1;
    if (code >= (CODES.get(length) ?? 0)) continue;
    if (length === 6 && code === CODED_SLASH)
      for (let i = bit - 3; i <= bit; i += 1) text[i >> 3] = (text[i >> 3] ?? 0) ^ maskOf(i);
    [code, length] = [0, 0];
  }
}
