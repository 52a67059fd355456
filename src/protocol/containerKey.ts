/*
 * How the id of a container or sandbox is stored: as a key of eight bytes in every row, and in full once a day.
 */
import { hash } from 'node:crypto';

/** A {@link containerKey}. */
export type ContainerKey = `${bigint}`;

/** The first 8 bytes of sha256(id) as a signed integer in decimal: the same for every agent, queue and day. */
export function containerKey(id: string): ContainerKey {
  return `${hash('sha256', id, 'buffer').readBigInt64BE(0)}`;
}

/** {@link containerKey} that computes the key of each id once. */
export function containerKeys(): (id: string) => ContainerKey {
  const keys = new Map<string, ContainerKey>();
  return (id) => {
    const known = keys.get(id);
    if (known !== undefined) return known;
    const key = containerKey(id);
    keys.set(id, key);
    return key;
  };
}
