/*
 * The period of a pool: whole hours, or whole minutes of a short period whose minutes are stored. Its slices are those of the lines.
 */
import type { Period } from '../parameters.ts';

const [MINUTE, HOUR] = [60_000, 3_600_000];
const MAX_MINUTES_MS = 6 * HOUR;
const MAX_SLICES = 200;
/** The minutes of an agent are not those of the clock: one of two has a record. */
const MIN_SLICE_MINUTES = 2;
/** A minute in which something happens ends a minute after it began, and is stored within seconds; a node that is calm says so later. */
const DUE_AFTER_MS = 2 * MINUTE;

export interface PoolPeriod extends Period {
  readonly isByHour: boolean;
  readonly sliceSeconds: number;
  /** Those of which something could be known by now. */
  readonly slices: number;
}

export function poolPeriod({ from, to }: Period, now: Date, hasMinutes: boolean): PoolPeriod {
  const isByHour = !hasMinutes || to.getTime() - from.getTime() > MAX_MINUTES_MS;
  const unit = isByHour ? HOUR : MINUTE;
  const [first, last] = [Math.floor(from.getTime() / unit), Math.ceil(to.getTime() / unit)];
  const units = Math.max(isByHour ? 1 : MIN_SLICE_MINUTES, Math.ceil((last - first) / MAX_SLICES));
  const known = Math.min(last * unit, now.getTime() - DUE_AFTER_MS) - first * unit;
  return {
    ...{ from: new Date(first * unit), to: new Date(last * unit), isByHour },
    sliceSeconds: (units * unit) / 1000,
    slices: Math.max(0, Math.ceil(known / (units * unit))),
  };
}
