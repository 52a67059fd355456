import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lagBetween, type TimeBounds, transitionBounds } from './bounds.ts';

const SECOND = 1_000_000;

/**
 * The history of a transition, in microseconds of true time from the start of the epoch: when it happened, how wide its window is on both
 * sides, how much later its batch was sealed and stored, when its state was published, and when the pod was read. The store's clock shows
 * true time; the node's clock is `skew` ahead.
 */
const transitionHistory = fc.record({
  happened: fc.integer({ min: 0, max: 3_600 * SECOND }),
  before: fc.integer({ min: 0, max: 60 * SECOND }),
  after: fc.integer({ min: 0, max: 60 * SECOND }),
  waited: fc.integer({ min: 0, max: 60 * SECOND }),
  travel: fc.integer({ min: 0, max: 600 * SECOND }),
  lag: fc.integer({ min: 0, max: 400 * SECOND }),
  skew: fc.integer({ min: -3_600 * SECOND, max: 3_600 * SECOND }),
  reads: fc.array(
    fc.record({
      wait: fc.integer({ min: 0, max: 20 * SECOND }),
      took: fc.integer({ min: 0, max: 5 * SECOND }),
    }),
    { minLength: 1, maxLength: 60 },
  ),
  /** The share of its duration after which a read sees the pod. */
  sees: fc.double({ min: 0, max: 1, noNaN: true }),
});
type TransitionHistory = typeof transitionHistory extends fc.Arbitrary<infer T> ? T : never;

const START = 1_790_000_000 * SECOND;

/** From the last stale read and the first one that shows the transition; null if none does. */
function publication({
  happened,
  after,
  waited,
  travel,
  lag,
  reads,
  sees,
}: TransitionHistory): TimeBounds | null {
  let at = happened + after + waited + travel;
  let earliest: number | null = null;
  for (const { wait, took } of reads) {
    at += wait;
    if (at + took * sees >= happened + lag) return { earliest, latest: START + at + took };
    earliest = START + at;
    at += took;
  }
  return null;
}

function lagOf(history: TransitionHistory, published: TimeBounds) {
  const { happened, before, after, waited, travel, skew } = history;
  const sealedAt = happened + after + waited;
  const times = { storedAt: START + sealedAt + travel, sealedAt, epochStart: START + skew };
  const transition = transitionBounds(times, { from: happened - before, to: happened + after });
  return lagBetween(transition, published);
}

test('the minimum lag never exceeds the true lag, however wrong the clock of the node and however slow the delivery', () => {
  fc.assert(
    fc.property(transitionHistory, (history) => {
      const published = publication(history);
      fc.pre(published !== null);
      const { min, max } = lagOf(history, published);
      expect(min).toBeGreaterThanOrEqual(0);
      expect(min * 1000).toBeLessThanOrEqual(history.lag);
      expect(max).toBeGreaterThanOrEqual(min);
    }),
    { numRuns: 5_000 },
  );
});

test('the maximum lag is at least the true lag, less the time by which the clock of the node is ahead, up to the delivery time', () => {
  fc.assert(
    fc.property(transitionHistory, (history) => {
      const published = publication(history);
      fc.pre(published !== null);
      const { max } = lagOf(history, published);
      expect((max ?? 0) * 1000).toBeGreaterThanOrEqual(
        history.lag - Math.max(0, Math.min(history.skew, history.travel)),
      );
    }),
    { numRuns: 5_000 },
  );
});

test('a transition without an earliest time has no maximum lag', () => {
  const transition = transitionBounds({ storedAt: 100, sealedAt: 50, epochStart: 0 }, { from: null, to: 20 });
  expect(transition).toEqual({ latest: 70, earliest: null });
  expect(lagBetween(transition, { earliest: 5_070, latest: 9_000 })).toEqual({ min: 5, max: null });
});

test('a transition after its batch was sealed is bounded by the time of storing', () => {
  expect(transitionBounds({ storedAt: 100, sealedAt: 10, epochStart: 0 }, { from: 20, to: 30 })).toEqual({
    latest: 100,
    earliest: 20,
  });
});

test('the reads narrow the lag to what window and delivery leave open', () => {
  const transition = transitionBounds(
    { storedAt: 10 * SECOND, sealedAt: 9 * SECOND, epochStart: 0 },
    { from: 2 * SECOND, to: 5 * SECOND },
  );
  expect(lagBetween(transition, { earliest: null, latest: 12 * SECOND })).toEqual({ min: 0, max: 10_000 });
  expect(lagBetween(transition, { earliest: 11 * SECOND, latest: 12 * SECOND })).toEqual({
    min: 5_000,
    max: 10_000,
  });
});
