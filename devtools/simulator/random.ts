/*
 * Reproducible random numbers. Each use has its own keys, so that none affects another: enabling a fault does not change
 * the pods, and listing does not change the faults.
 */
import { createHash } from 'node:crypto';

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform in [from, to). */
  between(from: number, to: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** A copy in random order. */
  shuffle<T>(items: readonly T[]): T[];
}

/** The generator for these keys (sfc32, seeded with their SHA-256). */
export function randomFor(...keys: readonly (string | number)[]): Random {
  const seed = digest(keys);
  let a = seed.readUInt32LE(0);
  let b = seed.readUInt32LE(4);
  let c = seed.readUInt32LE(8);
  let counter = seed.readUInt32LE(12);
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (from, to) => from + next() * (to - from),
    chance: (probability) => next() < probability,
    shuffle: (items) => shuffled(items, next),
  };
}

/** A container id for these keys: 64 hexadecimal digits. */
export const idFor = (...keys: readonly (string | number)[]): string => digest(keys).toString('hex');

/** A pod UID for these keys: a version 4 UUID. */
export function uidFor(...keys: readonly (string | number)[]): string {
  const hex = digest(['uid', ...keys]).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const digest = (keys: readonly (string | number)[]): Buffer =>
  createHash('sha256').update(JSON.stringify(keys)).digest();

// Fisher and Yates.
function shuffled<T>(items: readonly T[], next: () => number): T[] {
  const result: T[] = [];
  for (const item of items) {
    const at = Math.floor(next() * (result.length + 1));
    const moved = result[at];
    if (moved === undefined) result.push(item);
    else {
      result.push(moved);
      result[at] = item;
    }
  }
  return result;
}
