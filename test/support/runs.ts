/*
 * How often a long test repeats. PLEGWATCH_HISTORIES sets the number of random histories of the comparison, 10,000 without it; every other
 * long test repeats in the same proportion. So `make check` is quick and leaves out no test, and `make test` repeats each one in full;
 * `make test-long` repeats some far more often.
 */

/** The histories of the comparison that `make test` tries. */
export const ALL_HISTORIES = 10_000;
export const HISTORIES = Number(process.env['PLEGWATCH_HISTORIES'] ?? ALL_HISTORIES);
if (!(HISTORIES > 0)) throw new Error('PLEGWATCH_HISTORIES must be a number above 0');

/** Fewer would find nothing. */
const MIN_RUNS = 10;

/** How often to run what `make test` runs `all` times. */
export const runsOf = (all: number): number =>
  Math.max(Math.min(all, MIN_RUNS), Math.ceil((all * HISTORIES) / ALL_HISTORIES));
