/*
 * How the id of a container or sandbox is stored: as a key of eight bytes in every row, and in full once a day.
 */
import { hash } from 'node:crypto';

/** The first 8 bytes of sha256(id) as a signed integer in decimal: the same for every agent, queue and day. */
export function containerKey(id: string): string {
  return hash('sha256', id, 'buffer').readBigInt64BE(0).toString();
}

/** An id as the hexadecimal of its column. `isText`: the column holds the id's UTF-8 bytes, not the bytes that the id spells. */
export function encodeId(id: string): { hex: string; isText: boolean } {
  return /^(?:[0-9a-f]{2})+$/.test(id)
    ? { hex: id, isText: false }
    : { hex: Buffer.from(id, 'utf8').toString('hex'), isText: true };
}

/** {@link containerKey} that computes the key of each id once. */
export function containerKeys(): (id: string) => string {
  const keys = new Map<string, string>();
  return (id) => {
    const known = keys.get(id);
    if (known !== undefined) return known;
    const key = containerKey(id);
    keys.set(id, key);
    return key;
  };
}
