/*
 * Fields: walks through the fields of an encoded message without decoding them, for messages of which little is needed.
 */
import { MalformedMessage } from './malformed.ts';

const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const WIRE_BYTES = 2;
const WIRE_FIXED32 = 5;

/** The tag of a field that is a text, bytes or a message. */
export const bytesTag = (field: number): number => field * 8 + WIRE_BYTES;

export class MessageFields {
  tag = 0;
  /** Where the body of the current field begins and ends. */
  start = 0;
  end = 0;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Moves to the next field; false if there is none. Throws {@link MalformedMessage}. */
  next(): boolean {
    this.#at = this.end;
    if (this.#at >= this.#bytes.length) return false;
    this.tag = this.#varint();
    this.start = this.#at;
    this.end = this.#endOf(this.tag & 7);
    if (this.end > this.#bytes.length) throw new MalformedMessage('a field is longer than the message');
    return true;
  }

  /** The body of the current field, as a view. */
  get body(): Buffer {
    return this.#bytes.subarray(this.start, this.end);
  }

  #endOf(wire: number): number {
    if (wire === WIRE_FIXED64) return this.start + 8;
    if (wire === WIRE_FIXED32) return this.start + 4;
    const value = wire === WIRE_VARINT || wire === WIRE_BYTES ? this.#varint() : 0;
    if (wire === WIRE_VARINT) return this.#at;
    if (wire !== WIRE_BYTES) throw new MalformedMessage(`there is no wire type ${wire}`);
    this.start = this.#at;
    return this.#at + value;
  }

  #varint(): number {
    let value = 0;
    for (let i = 0; i < 10; i += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new MalformedMessage('the message ends inside a number');
      this.#at += 1;
      value += (byte & 127) * 2 ** (7 * i);
      if (byte < 128) return value;
    }
    throw new MalformedMessage('a number is too long');
  }
}
