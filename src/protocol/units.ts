/*
 * The units that evidence is measured in. Each is a branded number, so that one can never be passed for another.
 */

declare const unit: unique symbol;

/** A position on the machine's monotonic clock, in microseconds. The same clock in every process of one boot. */
export type Mono = number & { readonly [unit]: 'mono' };

/** Microseconds since the start of an epoch, on the monotonic clock. Negative only for what an earlier life left behind. */
export type Offset = number & { readonly [unit]: 'offset' };

/** Wall-clock time in microseconds since the Unix epoch. It only labels; differences and deadlines use {@link Mono}. */
export type Wall = number & { readonly [unit]: 'wall' };

/** A length of time in microseconds. */
export type Micros = number & { readonly [unit]: 'micros' };

/** The position of a record in its epoch: starts at 1, has no holes, is never used again. */
export type Seq = number & { readonly [unit]: 'seq' };

export const mono = (micros: number): Mono => micros as Mono;
export const offset = (micros: number): Offset => micros as Offset;
export const wall = (micros: number): Wall => micros as Wall;
export const seq = (n: number): Seq => n as Seq;

/** Microseconds from milliseconds, for settings and limits that people write in milliseconds. */
export const millis = (ms: number): Micros => Math.round(ms * 1000) as Micros;

/** The length of time between two positions on one clock. */
export function between(from: Mono, to: Mono): Micros;
export function between(from: Wall, to: Wall): Micros;
export function between(from: number, to: number): Micros {
  return (to - from) as Micros;
}

/** A position moved by a length of time (which may be negative). */
export function shift(at: Mono, by: number): Mono;
export function shift(at: Wall, by: number): Wall;
export function shift(at: number, by: number): number {
  return at + by;
}
