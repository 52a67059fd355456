/*
 * A logarithmic scale that has room for zero: rates and durations spread over decades, and none is a value of its own.
 */

export interface LogScale {
  /** From 0 at zero to 1 at the greatest. */
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

/** `least`: what is as small as this or smaller is at 0. */
export function logScale(least: number, greatest: number): LogScale {
  const top = Math.max(greatest, least * 10);
  const decades = Math.log10(top / least);
  const at = (value: number) =>
    Math.min(1, Math.max(0, Math.log10(Math.max(value, least) / least) / decades));
  const ticks = Array.from({ length: Math.floor(decades + 1e-9) + 1 }, (_, n) => least * 10 ** n);
  return { at, ticks };
}

/** The next power of ten. */
export const decadeAbove = (value: number): number => 10 ** Math.ceil(Math.log10(Math.max(value, 1)));
