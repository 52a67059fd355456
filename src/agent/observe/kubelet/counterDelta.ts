/*
 * What was added to the kubelet's counters between two looks.
 */
import type { Histogram } from './metrics.ts';

/** What a record can carry: a kubelet may tell anything. */
export const whole = (value: number): number =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value)));

/** Seconds as whole microseconds. */
export const micros = (seconds: number): number => whole(seconds * 1e6);

/** A figure that was not told before is new. */
export const grown = (before = 0, now = 0): number => Math.max(0, now - before);

/** What was added to each bucket, by its upper bound. */
export function addedTo(before: Histogram | undefined, now: Histogram | undefined): [number, number][] {
  const was = new Map(before?.buckets.map(({ le, count }) => [le, count]));
  let below = 0;
  return (now?.buckets ?? []).map(({ le, count }) => {
    const upTo = grown(was.get(le), count);
    const inside = Math.max(0, upTo - below);
    below = upTo;
    return [le, inside];
  });
}
