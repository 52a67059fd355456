/*
 * How many events fell into each slice of the drawing, where they are too many to be drawn one by one.
 */
import type { Range } from '../drawing/timeScale.ts';

export function densityOf(moments: readonly number[], { from, to }: Range, slices: number) {
  const counts = new Array<number>(slices).fill(0);
  for (const at of moments) {
    const slice = Math.floor(((at - from) / (to - from)) * slices);
    if (slice >= 0 && slice < slices) counts[slice] = (counts[slice] ?? 0) + 1;
  }
  return { counts, most: Math.max(0, ...counts) };
}
