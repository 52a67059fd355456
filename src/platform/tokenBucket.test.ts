import { expect, test } from 'vitest';
import { millis, mono } from '../protocol/units.ts';
import { perSecond, TokenBucket } from './tokenBucket.ts';

const at = (ms: number) => mono(ms * 1000);

/** How many of `count` tries at `ms` succeed. */
const taken = (bucket: TokenBucket, ms: number, count: number): number =>
  Array.from({ length: count }, () => bucket.tryTake(at(ms))).filter(Boolean).length;

test('a bucket holds its capacity at first, then gains one token per interval, and counts what it denied', () => {
  const bucket = new TokenBucket({ capacity: 3, interval: millis(1000) });
  expect(taken(bucket, 0, 5)).toBe(3);
  expect(bucket.denied).toBe(2);
  expect(taken(bucket, 999, 1)).toBe(0);
  expect(taken(bucket, 2500, 5)).toBe(2);
  expect(taken(bucket, 1_000_000, 10)).toBe(3);
  expect(bucket.denied).toBe(2 + 1 + 3 + 7);
});

test('whether there is a token is known without taking it', () => {
  const bucket = new TokenBucket({ capacity: 1, interval: millis(1000) });
  expect([bucket.has(at(0)), bucket.has(at(0)), bucket.tryTake(at(0)), bucket.has(at(999))]).toEqual([
    true,
    true,
    true,
    false,
  ]);
  expect(bucket.has(at(1000))).toBe(true);
  expect(bucket.denied).toBe(0);
});

test('an interval may be longer than a second', () => {
  const bucket = new TokenBucket({ capacity: 3, interval: perSecond(0.5) });
  expect(taken(bucket, 0, 5)).toBe(3);
  expect(taken(bucket, 1_999, 1)).toBe(0);
  expect(taken(bucket, 4_000, 3)).toBe(2);
});

test('asking every second does not lose fractions of a token', () => {
  const bucket = new TokenBucket({ capacity: 2, interval: millis(30_000) });
  let count = 0;
  for (let second = 1; second <= 86_400; second += 1) count += taken(bucket, second * 1000, 1);
  expect(count).toBe(86_400 / 30 + 1);
});

test('a clock that goes back gives no tokens', () => {
  const bucket = new TokenBucket({ capacity: 1, interval: millis(1000) });
  expect(taken(bucket, 5_000, 2)).toBe(1);
  expect(taken(bucket, 1_000, 1)).toBe(0);
  expect(taken(bucket, 5_999, 1)).toBe(0);
  expect(taken(bucket, 6_000, 1)).toBe(1);
});

test('reservations beyond the capacity wait at the rate, in order', () => {
  const bucket = new TokenBucket({ capacity: 20, interval: perSecond(20) });
  const waits = Array.from({ length: 24 }, () => bucket.reserve(at(0)));
  expect(waits.slice(0, 20)).toEqual(Array(20).fill(0));
  expect(waits.slice(20)).toEqual([50, 100, 150, 200].map(millis));
  expect(bucket.reserve(at(200))).toBe(millis(50));
});

test('unused tokens are kept up to the capacity', () => {
  const bucket = new TokenBucket({ capacity: 20, interval: perSecond(20) });
  bucket.reserve(at(0));
  const free = Array.from({ length: 30 }, () => bucket.reserve(at(3_600_000))).filter((wait) => wait === 0);
  expect(free).toHaveLength(20);
});
