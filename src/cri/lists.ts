/*
 * Lists: decodes the two list answers with little work.
 *
 * An answer is mostly the same as the one before, in another order. So it is only split at the top level, each item's bytes are
 * compared with those cached under its id, and only what changed is decoded. The id is expected at the start of an item, where encoders
 * put it; an item that starts otherwise is decoded whole.
 *
 *   id · metadata · state · created_at … | labels · annotations …
 *   the head, compared byte by byte      | the tail, of which only the length is compared
 *
 * Go runtimes order the entries of a map anew in each answer, so the bytes of a tail mean nothing. No call changes labels or
 * annotations: an id keeps those it was created with.
 *
 * An answer is one message or, from a streaming list, several: a batch has its items where the whole answer has them. The size of an answer and of
 * its cache is bounded, whatever the runtime sends.
 */
import { invariant } from '../platform/invariant.ts';
import type { ListedItem } from '../protocol/observation.ts';
import { bytesTag, MessageFields } from './fields.ts';
import { MalformedMessage } from './malformed.ts';

export class EndlessAnswer extends Error {
  override readonly name = 'EndlessAnswer';
  readonly code: 'TOO_MANY_ITEMS' | 'TOO_MANY_BYTES';

  constructor(code: EndlessAnswer['code'], limit: number) {
    super(`the answer has more than ${limit} ${code === 'TOO_MANY_ITEMS' ? 'items' : 'bytes'}`);
    this.code = code;
  }
}

/** Limits for all messages of an answer together. */
export interface AnswerLimits {
  readonly items: number;
  readonly bytes: number;
}

/** As many items as containers are tracked, and more bytes than this many have on any working node. */
const LIMITS: AnswerLimits = { items: 50_000, bytes: 64 * 1024 * 1024 };
/** Heads beyond this are not cached, and their items are decoded each time. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** Decodes one item; null if it must be left out. Throws MalformedMessage. */
type ReadItem = (bytes: Uint8Array) => ListedItem | null;

interface CachedItem {
  readonly head: Buffer;
  /** Length of the whole item. */
  readonly length: number;
  readonly item: ListedItem;
  /** The last answer that held it, by its number. */
  inAnswer: number;
}

/** The kept part of the last answer. */
interface AnswerCache {
  /** By id. */
  readonly items: ReadonlyMap<string, ListedItem>;
  /** Those of them whose bytes are cached, by id. */
  readonly kept: ReadonlyMap<string, CachedItem>;
}

const EMPTY_CACHE: AnswerCache = { items: new Map(), kept: new Map() };

/** Decodes an item that was not recognised. */
type DecodeItem = (bytes: Buffer) => DecodedItem | 'noId' | 'malformed';

type DecodedItem = Omit<CachedItem, 'inAnswer'>;

/** Tag of field 1 with a length: the items of both list answers, and the id within an item. */
const FIELD_1_BYTES = bytesTag(1);

/** Decodes the answers of one of the two list calls, and keeps the last one. */
export class ListDecoder {
  /** Items without a usable id, or that could not be decoded, since the start. */
  malformedItems = 0;
  readonly #read: ReadItem;
  readonly #tailFrom: number;
  readonly #limits: AnswerLimits;
  readonly #shared: SharedCache = { answers: 0, memory: EMPTY_CACHE };

  /** `tailFrom`: the number of the first field of the tail; without it items are compared whole. */
  constructor(read: ReadItem, tailFrom = Number.POSITIVE_INFINITY, limits = LIMITS) {
    this.#read = read;
    this.#tailFrom = tailFrom;
    this.#limits = limits;
  }

  /** The items of an answer that is one message. Throws as {@link AnswerReading.add}; the cache stays then. */
  read(answer: Buffer): ReadItems {
    const reading = this.begin();
    reading.add(answer);
    return reading.end();
  }

  /** Begins an answer, and abandons one that has not ended. The cache stays until the answer ends. */
  begin(): AnswerReading {
    return new AnswerReading(this.#limits, this.#shared, (bytes) => this.#decode(bytes));
  }

  #decode(bytes: Buffer): DecodedItem | 'noId' | 'malformed' {
    let item: ListedItem | null;
    try {
      item = this.#read(bytes);
    } catch (error) {
      if (!(error instanceof MalformedMessage)) throw error;
      // The answer is then not `whole`; its other items are still good.
      this.malformedItems += 1;
      return 'malformed';
    }
    if (item === null) {
      this.malformedItems += 1;
      return 'noId';
    }
    // A copy of its own: a view would keep the whole answer in memory, and one from Node's pool 8 KiB.
    const head = Buffer.allocUnsafeSlow(this.#headLength(bytes));
    bytes.copy(head, 0, 0, head.length);
    return { head, length: bytes.length, item };
  }

  /** Where the tail begins. An item with another field after a map has none, nor has one that cannot be split. */
  #headLength(bytes: Buffer): number {
    try {
      return headLength(bytes, this.#tailFrom);
    } catch {
      // It was decoded, which is what counts: the decoder knows encodings that no runtime uses.
      return bytes.length;
    }
  }
}

export interface ReadItems {
  /** By id. The same map as that of the last answer if every item was recognised: nothing changed. */
  readonly items: ReadonlyMap<string, ListedItem>;
  /** Whether every item could be decoded; items without a usable id do not count. */
  readonly whole: boolean;
  readonly bytes: number;
}

/** The shared part of the answers of one call. */
interface SharedCache {
  /** How many were begun: the number of the last one. */
  answers: number;
  memory: AnswerCache;
}

export class AnswerReading {
  readonly #limits: AnswerLimits;
  readonly #shared: SharedCache;
  readonly #decode: DecodeItem;
  readonly #number: number;
  /** Items that were decoded, by id: they changed, or cannot be recognised. */
  readonly #changed = new Map<string, CachedItem>();
  /** How many items of the last answer were recognised. */
  #unchanged = 0;
  #whole = true;
  #bytes = 0;
  #count = 0;

  constructor(limits: AnswerLimits, shared: SharedCache, decode: DecodeItem) {
    this.#limits = limits;
    this.#shared = shared;
    this.#decode = decode;
    shared.answers += 1;
    this.#number = shared.answers;
  }

  /** Takes a message of the answer. Throws {@link MalformedMessage} and {@link EndlessAnswer}: then there is no answer. */
  add(message: Buffer): void {
    this.#mustBeTheLast();
    const { items, bytes: maxBytes } = this.#limits;
    this.#bytes += message.length;
    if (this.#bytes > maxBytes) throw new EndlessAnswer('TOO_MANY_BYTES', maxBytes);
    const fields = new MessageFields(message);
    while (fields.next()) {
      if (fields.tag !== FIELD_1_BYTES) continue;
      this.#count += 1;
      if (this.#count > items) throw new EndlessAnswer('TOO_MANY_ITEMS', items);
      this.#take(message, fields.start, fields.end);
    }
  }

  /** Ends the answer; the next one is compared with it. */
  end(): ReadItems {
    this.#mustBeTheLast();
    const isTheSame = this.#changed.size === 0 && this.#unchanged === this.#shared.memory.items.size;
    if (!isTheSame) this.#shared.memory = this.#memory();
    return { items: this.#shared.memory.items, whole: this.#whole, bytes: this.#bytes };
  }

  /** Two answers at once would mix up the items that each has seen. */
  #mustBeTheLast(): void {
    invariant(this.#number === this.#shared.answers, 'another answer was begun since');
  }

  #take(message: Buffer, start: number, end: number): void {
    const known = this.#findCached(message, start, end);
    if (known !== null) {
      if (known.inAnswer !== this.#number) this.#unchanged += 1;
      known.inAnswer = this.#number;
      // If two items have one id, the last one counts.
      this.#changed.delete(known.item.object.id);
      return;
    }
    const decoded = this.#decode(message.subarray(start, end));
    if (decoded === 'malformed') this.#whole = false;
    if (typeof decoded === 'string') return;
    this.#changed.set(decoded.item.object.id, { ...decoded, inAnswer: this.#number });
  }

  /** The cached item with the bytes between these two, or null. Creates no view: there are many items. */
  #findCached(message: Buffer, start: number, end: number): CachedItem | null {
    const id = start + 2;
    const idEnd = id + (message[start + 1] ?? 0);
    if (message[start] !== FIELD_1_BYTES || idEnd - id > 127 || idEnd > end) return null;
    const known = this.#shared.memory.kept.get(message.toString('latin1', id, idEnd));
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
      if (bytes + each.head.length > MAX_CACHED_BYTES) continue;
      bytes += each.head.length;
      kept.set(id, each);
    }
    return { items, kept };
  }

  *#entries(): Generator<readonly [id: string, CachedItem]> {
    for (const [id, known] of this.#shared.memory.kept) {
      if (known.inAnswer === this.#number && !this.#changed.has(id)) yield [id, known];
    }
    yield* this.#changed;
  }
}

function headLength(bytes: Buffer, tailFrom: number): number {
  let length = bytes.length;
  const fields = new MessageFields(bytes);
  for (let at = 0; fields.next(); at = fields.end) {
    const inTail = Math.floor(fields.tag / 8) >= tailFrom;
    if (inTail) length = Math.min(length, at);
    else if (length < bytes.length) return bytes.length;
  }
  return length;
}
