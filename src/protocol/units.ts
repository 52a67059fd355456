/*
 * Units of evidence, as branded numbers: one unit cannot be passed where another is expected.
 */

declare const unit: unique symbol;

/** A time on the machine's monotonic clock, in microseconds. All processes of one boot share this clock. */
export type Mono = number & { readonly [unit]: 'mono' };

/** Microseconds since the start of an epoch on the monotonic clock. Negative only for what an earlier incarnation left behind. */
export type Offset = number & { readonly [unit]: 'offset' };

/** Wall-clock time in microseconds since the Unix epoch. For labels only; measure durations and deadlines with {@link Mono}. */
export type Wall = number & { readonly [unit]: 'wall' };

/** A duration in microseconds. */
export type Micros = number & { readonly [unit]: 'micros' };

/** The position of a record in its epoch, from 1. Seqs are consecutive and never reused. */
export type Seq = number & { readonly [unit]: 'seq' };

export const mono = (micros: number): Mono => micros as Mono;
export const offset = (micros: number): Offset => micros as Offset;
export const wall = (micros: number): Wall => micros as Wall;
export const seq = (n: number): Seq => n as Seq;

/** A time as an offset from the start of an epoch. */
export const since = (epochStart: Mono, at: Mono): Offset => offset(at - epochStart);

/** A duration given in milliseconds. */
export const millis = (ms: number): Micros => Math.round(ms * 1000) as Micros;

/** The duration between two times on one clock; negative when `to` is the earlier one. */
export function between(from: Mono, to: Mono): Micros;
export function between(from: Wall, to: Wall): Micros;
export function between(from: number, to: number): Micros {
  return (to - from) as Micros;
}

/** A time shifted by a number of microseconds, which may be negative. */
export function shift(at: Mono, by: number): Mono;
export function shift(at: Wall, by: number): Wall;
export function shift(at: number, by: number): number {
  return at + by;
}
