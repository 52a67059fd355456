import { describe, expect, it } from 'vitest';
import { estimate } from './estimate.ts';

describe('an estimate', () => {
  it("has the mean and Student's interval of its values", () => {
    // Sample deviation 1, n = 3: 4.303 / sqrt(3).
    const { mean, half } = estimate([1, 2, 3]);
    expect(mean).toBe(2);
    expect(half).toBeCloseTo(2.484, 3);
  });

  it('is exact where all values are equal, and says nothing of a single one', () => {
    expect(estimate([5, 5, 5])).toEqual({ mean: 5, half: 0 });
    expect(estimate([5])).toEqual({ mean: 5, half: Number.POSITIVE_INFINITY });
  });

  it('is never narrower than that of its degrees of freedom', () => {
    const values = Array.from({ length: 40 }, (_, i) => i % 2);
    // 40 values of deviation 0.5064: 2.0227 × 0.0801 is exact.
    expect(estimate(values).half).toBeGreaterThan(0.1619);
  });

  it('is refused for no values, and for what is no number', () => {
    expect(() => estimate([])).toThrow('no mean of 0 values');
    expect(() => estimate([1, Number.NaN])).toThrow('no mean of 2 values');
  });
});
