/*
 * By how much the kubelet's counters grew between two scrapes.
 */
import type { Histogram } from './metrics.ts';

/** A count that a record can carry, whatever the kubelet reports. */
export const toCount = (value: number): number =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value)));

export const toMicros = (seconds: number): number => toCount(seconds * 1e6);

/** A counter that was absent before counts from 0. */
export const increase = (before = 0, now = 0): number => Math.max(0, now - before);

/** The increase of each bucket, by its upper bound. */
export function bucketIncreases(
  before: Histogram | undefined,
  now: Histogram | undefined,
): [number, number][] {
  const countBefore = new Map(before?.buckets.map(({ le, count }) => [le, count]));
  let below = 0;
  return (now?.buckets ?? []).map(({ le, count }) => {
    const upTo = increase(countBefore.get(le), count);
    const inside = Math.max(0, upTo - below);
    below = upTo;
    return [le, inside];
  });
}
