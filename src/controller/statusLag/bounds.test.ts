import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lagOf, type Published, transitionOf } from './bounds.ts';

const SECOND = 1_000_000;

/**
 * What happened to one transition, in microseconds of true time from the start of the epoch: when it happened, how wide its window
 * is on both sides, how much later its batch was cut and arrived, when its state was published, and when the pod was read. The
 * store's clock shows true time; the node's is `skew` ahead.
 */
const happening = fc.record({
  happened: fc.integer({ min: 0, max: 3_600 * SECOND }),
  before: fc.integer({ min: 0, max: 60 * SECOND }),
  after: fc.integer({ min: 0, max: 60 * SECOND }),
  waited: fc.integer({ min: 0, max: 60 * SECOND }),
  travel: fc.integer({ min: 0, max: 600 * SECOND }),
  lag: fc.integer({ min: 0, max: 400 * SECOND }),
  skew: fc.integer({ min: -3_600 * SECOND, max: 3_600 * SECOND }),
  reads: fc.array(
    fc.record({
      pause: fc.integer({ min: 0, max: 20 * SECOND }),
      took: fc.integer({ min: 0, max: 5 * SECOND }),
    }),
    { minLength: 1, maxLength: 60 },
  ),
  /** How much of its duration a read takes before it sees the pod. */
  sees: fc.double({ min: 0, max: 1, noNaN: true }),
});
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

const START = 1_790_000_000 * SECOND;

/** The last read that did not show it and the first that did; null where none did. */
function published({ happened, after, waited, travel, lag, reads, sees }: Happening): Published | null {
  let at = happened + after + waited + travel;
  let unshown: number | null = null;
  for (const { pause, took } of reads) {
    at += pause;
    if (at + took * sees >= happened + lag) return { unshown, shown: START + at + took };
    unshown = START + at;
    at += took;
  }
  return null;
}

function boundsOf(one: Happening, read: Published) {
  const { happened, before, after, waited, travel, skew } = one;
  const cut = happened + after + waited;
  const received = { storedAt: START + cut + travel, cutAt: cut, epochStart: START + skew };
  return lagOf(transitionOf(received, { from: happened - before, to: happened + after }), read);
}

test('the true lag is never less than the least, however wrong the clock of the node and however long the way', () => {
  fc.assert(
    fc.property(happening, (one) => {
      const read = published(one);
      fc.pre(read !== null);
      const { min, max } = boundsOf(one, read);
      expect(min).toBeGreaterThanOrEqual(0);
      expect(min * 1000).toBeLessThanOrEqual(one.lag);
      expect(max).toBeGreaterThanOrEqual(min);
    }),
    { numRuns: 5_000 },
  );
});

test('nor more than the most, where the clock of the node is right or behind; one that is ahead takes off as much, or what the way took', () => {
  fc.assert(
    fc.property(happening, (one) => {
      const read = published(one);
      fc.pre(read !== null);
      const { max } = boundsOf(one, read);
      expect((max ?? 0) * 1000).toBeGreaterThanOrEqual(one.lag - Math.max(0, Math.min(one.skew, one.travel)));
    }),
    { numRuns: 5_000 },
  );
});

test('a transition without a lower bound has no most', () => {
  const transition = transitionOf({ storedAt: 100, cutAt: 50, epochStart: 0 }, { from: null, to: 20 });
  expect(transition).toEqual({ latest: 70, earliest: null });
  expect(lagOf(transition, { unshown: 5_070, shown: 9_000 })).toEqual({ min: 5, max: null });
});

test('a batch that claims to have been cut before what it tells of says that it arrived later', () => {
  expect(transitionOf({ storedAt: 100, cutAt: 10, epochStart: 0 }, { from: 20, to: 30 })).toEqual({
    latest: 100,
    earliest: 20,
  });
});

test('bounds are as tight as the reads: one that shows it at once leaves what the window and the way leave', () => {
  const transition = transitionOf(
    { storedAt: 10 * SECOND, cutAt: 9 * SECOND, epochStart: 0 },
    { from: 2 * SECOND, to: 5 * SECOND },
  );
  expect(lagOf(transition, { unshown: null, shown: 12 * SECOND })).toEqual({ min: 0, max: 10_000 });
  expect(lagOf(transition, { unshown: 11 * SECOND, shown: 12 * SECOND })).toEqual({
    min: 5_000,
    max: 10_000,
  });
});
