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

const STEPS = [1, 2, 5];

/** A scale that fits what is there: from a round value below the least to one above the greatest, both above zero. */
export function fittedScale(least: number, greatest: number): LogScale {
  const decade = 10 ** Math.floor(Math.log10(least));
  const all: number[] = [];
  for (let power = decade; all.length < 3 || (all.at(-4) ?? 0) < greatest; power *= 10)
    all.push(...STEPS.map((step) => step * power));
  const first = all.findLastIndex((step) => step <= least);
  const last = Math.max(
    first + 1,
    all.findIndex((step) => step >= greatest),
  );
  const ticks = all.slice(first, last + 1);
  const [low, high] = [ticks[0] ?? least, ticks.at(-1) ?? greatest];
  const decades = Math.log10(high / low);
  return {
    at: (value) => Math.min(1, Math.max(0, Math.log10(value / low) / decades)),
    ticks: ticks.length > MAX_TICKS ? ticks.filter((tick) => /^1(e|0|$)|^0\.0*1$/.test(String(tick))) : ticks,
  };
}

const MAX_TICKS = 8;
