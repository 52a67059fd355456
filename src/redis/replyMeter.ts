/*
 * Measures the replies on one connection to Redis before they are decoded: the client keeps an unfinished reply in memory, however long
 * its sender says that it is. A reply is refused as soon as its bytes, announced ones included, exceed a limit, and so is what is no reply.
 *
 * It finds the ends of replies as the client's decoder does, or refuses them: what it takes for the end of a reply must be its end.
 */

/** The cost of an element of an array beside its bytes: an announced array takes memory before its elements come. */
const ELEMENT_COST = 64;
/** The decoder's memory for each piece of an unfinished reply, beside its bytes. */
const PIECE_COST = 256;
/** Those of Redis have a few levels. Each takes a part of the decoder's stack. */
const MAX_DEPTH = 16;
/** The longest line that is interpreted is a length. */
const HEAD_LENGTH = 16;
const CR = 0x0d;

/** Numbers of any length are not among them: their decoding takes time that grows with the square of the length. */
const TYPES = '+-:,_#$!=*~>%';
const LENGTH = /^\d{1,10}$/;
const UNREADABLE = 'its answer is no reply';

export class ReplyMeter {
  readonly #maxBytes: number;
  /** The cost of the reply that is under way. */
  #cost = 0;
  /** How many bytes belong to a string whose length was announced, or end a line. */
  #skip = 0;
  /** The beginning of the line that is under way. */
  #head = '';
  /** How many elements each open array still lacks, the outermost first. */
  readonly #open: number[] = [];

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes the next bytes, and returns why they must not be decoded; null if they may be. After a fault nothing else may be asked. */
  read(bytes: Buffer): string | null {
    this.#cost += PIECE_COST;
    for (let at = 0; at < bytes.length; ) {
      const skipped = Math.min(this.#skip, bytes.length - at);
      this.#skip -= skipped;
      at += skipped;
      if (at === bytes.length) return this.#tooLong();
      const cr = bytes.indexOf(CR, at);
      const end = cr === -1 ? bytes.length : cr;
      this.#head = `${this.#head}${bytes.toString('latin1', at, Math.min(end, at + HEAD_LENGTH))}`.slice(
        0,
        HEAD_LENGTH,
      );
      if (!TYPES.includes(this.#head.charAt(0))) return UNREADABLE;
      this.#cost += end - at;
      const fault = this.#tooLong() ?? (cr === -1 ? null : this.#endLine());
      if (fault !== null) return fault;
      at = end + (cr === -1 ? 0 : 1);
    }
    return null;
  }

  #tooLong(): string | null {
    return this.#cost > this.#maxBytes ? `a reply is longer than ${this.#maxBytes} bytes` : null;
  }

  #endLine(): string | null {
    const type = this.#head.charAt(0);
    const rest = this.#head.slice(1);
    this.#head = '';
    // The line feed. The decoder does not look at it either.
    this.#skip = 1;
    switch (type) {
      case '+':
      case '-':
      case ':':
      case ',':
        return this.#endValue();
      case '_':
        return rest === '' ? this.#endValue() : UNREADABLE;
      case '#':
        return rest.length === 1 ? this.#endValue() : UNREADABLE;
      case '$':
        return rest === '-1' ? this.#endValue() : this.#string(rest, 0);
      case '!':
        return this.#string(rest, 0);
      case '=':
        return this.#string(rest, 'txt:'.length);
      case '*':
        return rest === '-1' ? this.#endValue() : this.#elements(rest, 1);
      case '~':
      case '>':
        return this.#elements(rest, 1);
      case '%':
        return this.#elements(rest, 2);
      default:
        return UNREADABLE;
    }
  }

  #string(length: string, min: number): string | null {
    const bytes = Number(length);
    if (!LENGTH.test(length) || bytes < min) return UNREADABLE;
    this.#skip += bytes + 2;
    this.#cost += bytes;
    return this.#tooLong() ?? this.#endValue();
  }

  #elements(length: string, each: 1 | 2): string | null {
    if (!LENGTH.test(length) || this.#open.length === MAX_DEPTH) return UNREADABLE;
    const elements = Number(length) * each;
    this.#cost += elements * ELEMENT_COST;
    if (elements === 0) return this.#endValue();
    this.#open.push(elements);
    return this.#tooLong();
  }

  /** A value is complete, and with it perhaps arrays around it. */
  #endValue(): null {
    for (let last = this.#open.pop(); last !== undefined; last = this.#open.pop()) {
      if (last === 1) continue;
      this.#open.push(last - 1);
      return null;
    }
    this.#cost = 0;
    return null;
  }
}
