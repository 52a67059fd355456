/*
 * The mean of a few measurements, and how far off it may be.
 */

export interface Estimate {
  readonly mean: number;
  /** Half the width of the 95 % confidence interval; 0 if all are equal, infinite for a single one. */
  readonly half: number;
}

/** The 97.5 % points of Student's t for 1, 2, … degrees of freedom. */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086,
];
/** For more degrees of freedom: that of 20 is wider than theirs. */
const T_OF_MANY = 2.086;

/** Throws without any value, or for one that is no number. */
export function estimate(values: readonly number[]): Estimate {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  if (!Number.isFinite(mean)) throw new Error(`no mean of ${count} values: ${values.join(', ')}`);
  if (count === 1) return { mean, half: Number.POSITIVE_INFINITY };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, half: (T[count - 2] ?? T_OF_MANY) * Math.sqrt(squares / (count - 1) / count) };
}

export const printedEstimate = ({ mean, half }: Estimate): string =>
  `${mean.toFixed(2)} ± ${half.toFixed(2)}`;
