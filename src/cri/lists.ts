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
 *
 * An answer is one message, or, of a streaming list, several that are read as they come: a batch has its items where the
 * whole answer has them. Whatever the runtime sends, an answer has an end here, and so has what is remembered of it.
 */
import type { ListedItem } from '../protocol/observation.ts';
import { MalformedMessage } from './malformed.ts';

/** The answer is not what the protocol says: the field that holds the items is malformed. */
export class MalformedAnswer extends Error {
  override readonly name = 'MalformedAnswer';
  readonly code = 'MALFORMED';
}

/** The answer is larger than any that is read. */
export class EndlessAnswer extends Error {
  override readonly name = 'EndlessAnswer';
  readonly code: 'TOO_MANY_ITEMS' | 'TOO_MANY_BYTES';

  constructor(code: EndlessAnswer['code'], limit: number) {
    super(`the answer has more than ${limit} ${code === 'TOO_MANY_ITEMS' ? 'items' : 'bytes'}`);
    this.code = code;
  }
}

/** How large an answer may be, all its messages together. */
export interface AnswerLimits {
  readonly items: number;
  readonly bytes: number;
}

/** As many items as ids are followed, and the bytes that so many have at most on any node that works. */
const LIMITS: AnswerLimits = { items: 50_000, bytes: 64 * 1024 * 1024 };
/** Heads of an answer beyond this are not remembered, and their items decoded each time. */
const MOST_REMEMBERED_BYTES = 32 * 1024 * 1024;

/** Reads one item; null where it must be left out. Throws MalformedMessage. */
type ReadItem = (bytes: Uint8Array) => ListedItem | null;

interface CachedItem {
  readonly head: Buffer;
  /** Of the whole item. */
  readonly length: number;
  readonly item: ListedItem;
  /** The last answer that held it, by its number. */
  inAnswer: number;
}

/** What is remembered of the last answer. */
interface AnswerCache {
  /** By id. */
  readonly items: ReadonlyMap<string, ListedItem>;
  /** Those of them whose bytes are known, by id. */
  readonly kept: ReadonlyMap<string, CachedItem>;
}

const NOTHING: AnswerCache = { items: new Map(), kept: new Map() };

/** Reads the bytes of an item that was not recognised. */
type Decode = (bytes: Buffer) => Decoded | 'nobody' | 'unreadable';

type Decoded = Omit<CachedItem, 'inAnswer'>;

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
  readonly #read: ReadItem;
  readonly #tailFrom: number;
  readonly #limits: AnswerLimits;
  readonly #shelf: Shelf = { answers: 0, memory: NOTHING };

  /** `tailFrom`: the number of the first field of the tail; without it items are compared whole. */
  constructor(read: ReadItem, tailFrom = Number.POSITIVE_INFINITY, limits = LIMITS) {
    this.#read = read;
    this.#tailFrom = tailFrom;
    this.#limits = limits;
  }

  /** The items of an answer that is one message. Throws as {@link AnswerReading.add}; what was remembered stays then. */
  read(answer: Buffer): ReadItems {
    const reading = this.begin();
    reading.add(answer);
    return reading.end();
  }

  /** Begins an answer, and gives up the one before where that has not ended. What was remembered stays until it ends. */
  begin(): AnswerReading {
    return new AnswerReading(this.#limits, this.#shelf, (bytes) => this.#decode(bytes));
  }

  #decode(bytes: Buffer): Decoded | 'nobody' | 'unreadable' {
    let item: ListedItem | null;
    try {
      item = this.#read(bytes);
    } catch (error) {
      if (!(error instanceof MalformedMessage)) throw error;
      // Told by the answer that is not whole; the runtime's other items are still good.
      this.refused += 1;
      return 'unreadable';
    }
    if (item === null) {
      this.refused += 1;
      return 'nobody';
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
}

/** What an answer held. */
export interface ReadItems {
  /** By id. The same map as of the last answer that ended where each item was recognised; then each is what it was. */
  readonly items: ReadonlyMap<string, ListedItem>;
  /** Whether every item could be read; one without a usable id is nobody's loss. */
  readonly whole: boolean;
  readonly bytes: number;
}

/** What the answers of one call share. */
interface Shelf {
  /** How many were begun: the number of the last one. */
  answers: number;
  memory: AnswerCache;
}

/** An answer while it is read. */
export class AnswerReading {
  readonly #limits: AnswerLimits;
  readonly #shelf: Shelf;
  readonly #decode: Decode;
  readonly #number: number;
  /** Items that were decoded, by id: they changed, or cannot be recognised. */
  readonly #changed = new Map<string, CachedItem>();
  /** How many of the items before were recognised. */
  #unchanged = 0;
  #whole = true;
  #bytes = 0;
  #count = 0;

  constructor(limits: AnswerLimits, shelf: Shelf, decode: Decode) {
    this.#limits = limits;
    this.#shelf = shelf;
    this.#decode = decode;
    shelf.answers += 1;
    this.#number = shelf.answers;
  }

  /** Takes a message of the answer. Throws {@link MalformedAnswer} and {@link EndlessAnswer}: then there is no answer. */
  add(message: Buffer): void {
    this.#mustBeTheLast();
    const { items, bytes: most } = this.#limits;
    this.#bytes += message.length;
    if (this.#bytes > most) throw new EndlessAnswer('TOO_MANY_BYTES', most);
    const fields = new Fields(message);
    while (fields.next()) {
      if (fields.tag !== FIELD_1_BYTES) continue;
      this.#count += 1;
      if (this.#count > items) throw new EndlessAnswer('TOO_MANY_ITEMS', items);
      this.#take(message, fields.start, fields.end);
    }
  }

  /** The answer has come to its end: it is what the next one is compared with. */
  end(): ReadItems {
    this.#mustBeTheLast();
    const isTheSame = this.#changed.size === 0 && this.#unchanged === this.#shelf.memory.items.size;
    if (!isTheSame) this.#shelf.memory = this.#memory();
    return { items: this.#shelf.memory.items, whole: this.#whole, bytes: this.#bytes };
  }

  /** The marks that an answer leaves would be taken for those of another. */
  #mustBeTheLast(): void {
    if (this.#number !== this.#shelf.answers) throw new Error('another answer was begun since');
  }

  #take(message: Buffer, start: number, end: number): void {
    const known = this.#recall(message, start, end);
    if (known !== null) {
      if (known.inAnswer !== this.#number) this.#unchanged += 1;
      known.inAnswer = this.#number;
      // Of two items with one id the last one counts.
      this.#changed.delete(known.item.object.id);
      return;
    }
    const decoded = this.#decode(message.subarray(start, end));
    if (decoded === 'unreadable') this.#whole = false;
    if (typeof decoded === 'string') return;
    this.#changed.set(decoded.item.object.id, { ...decoded, inAnswer: this.#number });
  }

  /** What is kept of the item between these two; null where it is another, or none. No view of it is made: there are many. */
  #recall(message: Buffer, start: number, end: number): CachedItem | null {
    const id = start + 2;
    const idEnd = id + (message[start + 1] ?? 0);
    if (message[start] !== FIELD_1_BYTES || idEnd - id > 127 || idEnd > end) return null;
    const known = this.#shelf.memory.kept.get(message.toString('latin1', id, idEnd));
    if (known === undefined || known.length !== end - start) return null;
    const { head } = known;
    return message.compare(head, 0, head.length, start, start + head.length) === 0 ? known : null;
  }

  #memory(): AnswerCache {
    const items = new Map<string, ListedItem>();
    const kept = new Map<string, CachedItem>();
    let bytes = 0;
    for (const [id, each] of this.#entries()) {
      items.set(id, each.item);
      if (bytes + each.head.length > MOST_REMEMBERED_BYTES) continue;
      bytes += each.head.length;
      kept.set(id, each);
    }
    return { items, kept };
  }

  *#entries(): Generator<readonly [id: string, CachedItem]> {
    for (const [id, known] of this.#shelf.memory.kept) {
      if (known.inAnswer === this.#number && !this.#changed.has(id)) yield [id, known];
    }
    yield* this.#changed;
  }
}

function headLength(bytes: Buffer, tailFrom: number): number {
  let length = bytes.length;
  const fields = new Fields(bytes);
  for (let at = 0; fields.next(); at = fields.end) {
    const inTail = Math.floor(fields.tag / 8) >= tailFrom;
    if (inTail) length = Math.min(length, at);
    else if (length < bytes.length) return bytes.length;
  }
  return length;
}

/** Goes through the fields of a message, one after the other. */
class Fields {
  tag = 0;
  /** Where the body of the present field begins, and where it ends. */
  start = 0;
  end = 0;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Goes to the next one; false where there is none. Throws {@link MalformedAnswer}. */
  next(): boolean {
    this.#at = this.end;
    if (this.#at >= this.#bytes.length) return false;
    this.tag = this.#varint();
    this.start = this.#at;
    this.end = this.#endOf(this.tag & 7);
    if (this.end > this.#bytes.length) throw new MalformedAnswer('a field is longer than the answer');
    return true;
  }

  #endOf(wire: number): number {
    if (wire === WIRE_FIXED64) return this.start + 8;
    if (wire === WIRE_FIXED32) return this.start + 4;
    const value = wire === WIRE_VARINT || wire === WIRE_BYTES ? this.#varint() : 0;
    if (wire === WIRE_VARINT) return this.#at;
    if (wire !== WIRE_BYTES) throw new MalformedAnswer(`there is no wire type ${wire}`);
    this.start = this.#at;
    return this.#at + value;
  }

  #varint(): number {
    let value = 0;
    for (let i = 0; i < 10; i += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new MalformedAnswer('the answer ends inside a number');
      this.#at += 1;
      value += (byte & 127) * 2 ** (7 * i);
      if (byte < 128) return value;
    }
    throw new MalformedAnswer('a number is too long');
  }
}
