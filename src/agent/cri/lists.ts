/*
 * Lists: the two list answers, read with little work.
 *
 * An answer is mostly the same as the one before, in another order. So its bytes are only cut at the top level, each item's
 * bytes are compared with what is kept under its id, and only what changed is decoded. The id is looked for at the front
 * of an item, where encoders put it; an item that begins otherwise is decoded whole.
 *
 *   id · metadata · state · created_at … | labels · annotations …
 *   the head, compared byte by byte      | the tail, of which only the length is compared
 *
 * The order of a map's entries is new in each answer of a runtime written in Go, so the bytes of a tail say nothing. Nor is
 * there a call that changes labels or annotations: what an id was made with, it keeps.
 */
import type { ListedItem } from '../pleg/observation.ts';

/** The answer is not what the protocol says: the field that holds the items is malformed. */
export class MalformedAnswer extends Error {
  override readonly name = 'MalformedAnswer';
}

/** Reads one item; null where it must be left out. Throws on bytes that are none. */
type ReadItem = (bytes: Uint8Array) => ListedItem | null;

interface Kept {
  readonly head: Buffer;
  /** Of the whole item. */
  readonly length: number;
  readonly item: ListedItem;
}

/** Tag of field 1 with a length: the items of both list answers, and the id within an item. */
const FIELD_1_BYTES = 0x0a;
const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const WIRE_BYTES = 2;
const WIRE_FIXED32 = 5;

/** Reads the answers of one of the two list calls, and remembers the last one. */
export class ListReader {
  /** Items that had no usable id, or were no item at all, since the start. */
  refused = 0;
  /** Whether every item of the last answer could be read; one without a usable id is nobody's loss. */
  whole = true;
  readonly #read: ReadItem;
  readonly #tailFrom: number;
  #kept = new Map<string, Kept>();

  /** `tailFrom`: the number of the first field of the tail; without it items are compared whole. */
  constructor(read: ReadItem, tailFrom = Number.POSITIVE_INFINITY) {
    this.#read = read;
    this.#tailFrom = tailFrom;
  }

  /** The items by id. Throws {@link MalformedAnswer}; what was remembered stays then. */
  read(answer: Buffer): ReadonlyMap<string, ListedItem> {
    this.whole = true;
    const kept = new Map<string, Kept>();
    const items = new Map<string, ListedItem>();
    for (const bytes of itemsOf(answer)) {
      const entry = this.#recall(bytes) ?? this.#decode(bytes);
      if (entry === null) continue;
      kept.set(entry.item.object.id, entry);
      items.set(entry.item.object.id, entry.item);
    }
    this.#kept = kept;
    return items;
  }

  #recall(bytes: Buffer): Kept | null {
    const length = bytes[1] ?? 0;
    if (bytes[0] !== FIELD_1_BYTES || length > 127 || length + 2 > bytes.length) return null;
    const known = this.#kept.get(bytes.toString('latin1', 2, 2 + length));
    if (known === undefined || known.length !== bytes.length) return null;
    return known.head.compare(bytes, 0, known.head.length) === 0 ? known : null;
  }

  #decode(bytes: Buffer): Kept | null {
    const item = this.#tryRead(bytes);
    if (item === null) {
      this.refused += 1;
      return null;
    }
    // A copy: a view would keep the whole answer in memory.
    return { head: Buffer.from(bytes.subarray(0, this.#headLength(bytes))), length: bytes.length, item };
  }

  /** Where the tail begins. An item with another field behind a map has none, nor has one that cannot be cut. */
  #headLength(bytes: Buffer): number {
    try {
      return headLength(bytes, this.#tailFrom);
    } catch {
      // It could be read, which is what counts: the decoder knows encodings that no runtime uses.
      return bytes.length;
    }
  }

  #tryRead(bytes: Buffer): ListedItem | null {
    try {
      return this.#read(bytes);
    } catch {
      // Counted by the caller as refused; the runtime's other items are still good.
      this.whole = false;
      return null;
    }
  }
}

function headLength(bytes: Buffer, tailFrom: number): number {
  let length = bytes.length;
  for (let at = 0; at < bytes.length; ) {
    const tag = varint(bytes, at);
    const inTail = Math.floor(tag.value / 8) >= tailFrom;
    if (inTail) length = Math.min(length, at);
    else if (length < bytes.length) return bytes.length;
    at = bodyOf(bytes, tag.value & 7, tag.end).end;
  }
  return length;
}

function* itemsOf(answer: Buffer): Generator<Buffer> {
  let at = 0;
  while (at < answer.length) {
    const tag = varint(answer, at);
    const body = bodyOf(answer, tag.value & 7, tag.end);
    if (tag.value === FIELD_1_BYTES) yield answer.subarray(body.start, body.end);
    at = body.end;
  }
}

function bodyOf(bytes: Buffer, wire: number, at: number): { start: number; end: number } {
  const span = spanOf(bytes, wire, at);
  if (span.end > bytes.length) throw new MalformedAnswer('a field is longer than the answer');
  return span;
}

function spanOf(bytes: Buffer, wire: number, at: number): { start: number; end: number } {
  if (wire === WIRE_VARINT) return { start: at, end: varint(bytes, at).end };
  if (wire === WIRE_FIXED64) return { start: at, end: at + 8 };
  if (wire === WIRE_FIXED32) return { start: at, end: at + 4 };
  if (wire !== WIRE_BYTES) throw new MalformedAnswer(`there is no wire type ${wire}`);
  const length = varint(bytes, at);
  return { start: length.end, end: length.end + length.value };
}

function varint(bytes: Buffer, at: number): { value: number; end: number } {
  let value = 0;
  for (let i = 0; i < 10; i += 1) {
    const byte = bytes[at + i];
    if (byte === undefined) throw new MalformedAnswer('the answer ends inside a number');
    value += (byte & 127) * 2 ** (7 * i);
    if (byte < 128) return { value, end: at + i + 1 };
  }
  throw new MalformedAnswer('a number is too long');
}
