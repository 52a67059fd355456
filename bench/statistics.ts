/*
 * Medians and other quantiles of a few measurements.
 */

/** The smallest value that at least this share of the values do not exceed; NaN without any value. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);
