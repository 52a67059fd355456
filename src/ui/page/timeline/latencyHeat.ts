/*
 * The distribution of relist durations over time: each slice of time is a column, each class of duration a cell, as dark as its share of the
 * relists of the column. The cells of one darkness are one path.
 */
import type { RelistSlice } from '../../api.ts';
import { decadeAbove, type LogScale, logScale } from '../drawing/logScale.ts';
import type { TimeScale } from '../drawing/timeScale.ts';
import { msOf } from '../text.ts';

/** Durations from a millisecond up to the longest one, at least a tenth of a second. */
export function durationScale(slices: readonly RelistSlice[]): LogScale {
  const longest = slices.map(({ maxMs, kubeletP99Ms }) => Math.max(maxMs ?? 0, kubeletP99Ms ?? 0));
  return logScale(1, Math.max(100, decadeAbove(longest.reduce((a, b) => Math.max(a, b), 0))));
}

const DARKNESSES = 4;

/** A path for each darkness, the lightest first, in a row of this height. `bounds`: the upper ones of the classes. */
export function heatPaths(
  slices: readonly RelistSlice[],
  bounds: readonly number[],
  scale: TimeScale,
  durations: LogScale,
  height: number,
) {
  const paths = Array.from({ length: DARKNESSES }, () => '');
  for (const slice of slices) {
    const span = spanOf(slice, scale);
    const all = slice.hist.reduce((sum, n) => sum + n, 0);
    if (span === undefined || all === 0) continue;
    for (const [bucket, relists] of slice.hist.entries()) {
      if (relists === 0) continue;
      const darkness = Math.min(DARKNESSES - 1, Math.floor(Math.sqrt(relists / all) * DARKNESSES));
      const top = height * (1 - durations.at(bounds[bucket] ?? Number.POSITIVE_INFINITY));
      const bottom = height * (1 - durations.at(bucket === 0 ? 0 : (bounds[bucket - 1] ?? 0)));
      const tall = Math.max(1.5, bottom - top);
      paths[darkness] += `M${px(span.x)} ${px(top)}h${px(span.width)}v${px(tall)}h${px(-span.width)}z`;
    }
  }
  return paths.map((path, darkness) => ({ darkness, path }));
}

/** A line through one figure of each slice; where it is null, the line is broken. */
export function figureLine(
  slices: readonly RelistSlice[],
  scale: TimeScale,
  durations: LogScale,
  height: number,
  figure: (slice: RelistSlice) => number | null,
): string {
  let path = '';
  let end = Number.NEGATIVE_INFINITY;
  for (const slice of slices) {
    const value = figure(slice);
    const span = spanOf(slice, scale);
    if (value === null || span === undefined) continue;
    const y = px(height * (1 - durations.at(value)));
    path += `${span.x - end > 1.5 ? 'M' : 'L'}${px(span.x)} ${y}h${px(span.width)}`;
    end = span.x + span.width;
  }
  return path;
}

/** A bar for the share of each slice, in a row of this height; none where it is unknown or nothing. */
export function barPath(
  slices: readonly RelistSlice[],
  scale: TimeScale,
  height: number,
  share: (slice: RelistSlice) => number | null,
): string {
  let path = '';
  for (const slice of slices) {
    const tall = px(height * Math.min(1, share(slice) ?? 0));
    const span = spanOf(slice, scale);
    if (tall === 0 || span === undefined) continue;
    path += `M${px(span.x)} ${px(height)}v${-tall}h${px(span.width)}v${tall}z`;
  }
  return path;
}

function spanOf({ at, seconds }: RelistSlice, scale: TimeScale) {
  const from = msOf(at);
  return scale.span(from, from + seconds * 1000);
}

const px = (n: number): number => Math.round(n * 10) / 10;
