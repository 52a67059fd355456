/*
 * How the id of a container or sandbox is kept: as a key of eight bytes in every row, and whole once a day.
 */
import { hash } from 'node:crypto';

/** `object.bits`. */
export const CID_IS_TEXT = 1;
export const OBJECT_IS_SANDBOX = 2;

/** The first 8 bytes of sha256(id) as a signed integer in decimal: the same from every agent, lane and day. */
export function objectKey(id: string): string {
  return hash('sha256', id, 'buffer').readBigInt64BE(0).toString();
}

/** An id as the hexadecimal of its column, and whether that is its UTF-8 text rather than the id itself. */
export function cidOf(id: string): { hex: string; isText: boolean } {
  return /^(?:[0-9a-f]{2})+$/.test(id)
    ? { hex: id, isText: false }
    : { hex: Buffer.from(id, 'utf8').toString('hex'), isText: true };
}
