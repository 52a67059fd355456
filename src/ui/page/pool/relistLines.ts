/*
 * How long the relists of the nodes of a pool took, as one line a node. Where nothing is recorded a line has a hole, whose ends are marked; how many
 * nodes that is at each time is a row of its own.
 */
import type { PoolAnswer, PoolNode } from '../../api.ts';
import { fittedScale, type LogScale } from '../drawing/logScale.ts';
import type { TimeScale } from '../drawing/timeScale.ts';
import { msOf } from '../text.ts';

type Answer = Pick<PoolAnswer, 'from' | 'lines' | 'linesLeftOut' | 'medianMs' | 'sliceSeconds' | 'slices'> & {
  readonly nodes: readonly Pick<PoolNode, 'node'>[];
};

/** Relists as long as this multiple of the median of the pool stand out. */
const STANDS_OUT = 2;

export interface Outlier {
  readonly line: number;
  readonly name: string;
  /** Where it took longest. */
  readonly slice: number;
  readonly longestMs: number;
  readonly medianMs: number;
}

/** The node whose relists took longest by far, compared with the median of the pool, slice by slice; undefined if none stands out. */
export function outlierOf({ lines, nodes, medianMs }: Answer): Outlier | undefined {
  let worst: (Outlier & { readonly excess: number }) | undefined;
  for (const [line, { node, longestMs }] of lines.entries()) {
    let excess = 0;
    let most = { slice: 0, longestMs: 0, medianMs: 0 };
    for (const [slice, value] of longestMs.entries()) {
      const usual = medianMs[slice] ?? null;
      if (value === null || usual === null || value <= usual * STANDS_OUT) continue;
      excess += Math.log2(value / usual);
      if (value > most.longestMs) most = { slice, longestMs: value, medianMs: usual };
    }
    if (excess > (worst?.excess ?? 0)) worst = { line, name: nodes[node]?.node ?? '', excess, ...most };
  }
  return worst;
}

/** It fits what is there; undefined if nothing is. */
export function latencyScale({ lines }: Answer): LogScale | undefined {
  let [least, greatest] = [Number.POSITIVE_INFINITY, 0];
  for (const { longestMs } of lines) {
    for (const value of longestMs) {
      if (value === null) continue;
      // A thousandth of a millisecond: there is no logarithm of zero.
      least = Math.min(least, Math.max(value, 0.001));
      greatest = Math.max(greatest, value, 0.001);
    }
  }
  return greatest === 0 ? undefined : fittedScale(least, greatest);
}

export interface DrawnLine {
  readonly path: string;
  /** The ends at which a hole begins or ended. */
  readonly ends: readonly { readonly x: number; readonly y: number }[];
}

/** From the beginning of the first slice to the end of the last one of each stretch that was observed. */
export function drawnLine(
  longestMs: readonly (number | null)[],
  { from, sliceSeconds }: Pick<Answer, 'from' | 'sliceSeconds'>,
  time: TimeScale,
  y: (ms: number) => number,
): DrawnLine {
  const x = (slice: number) =>
    px(Math.min(time.x(msOf(from) + slice * sliceSeconds * 1000), time.x(time.range.to)));
  const ends: { x: number; y: number }[] = [];
  let path = '';
  for (const [n, value] of longestMs.entries()) {
    if (value === null) continue;
    const at = px(y(value));
    const begins = (longestMs[n - 1] ?? null) === null;
    const stops = (longestMs[n + 1] ?? null) === null;
    path += `${begins ? `M${x(n)} ${at}` : ''}L${px((x(n) + x(n + 1)) / 2)} ${at}`;
    if (stops) path += `H${x(n + 1)}`;
    if (begins && n > 0) ends.push({ x: x(n), y: at });
    if (stops && n < longestMs.length - 1) ends.push({ x: x(n + 1), y: at });
  }
  return { path, ends };
}

/** How many nodes have no relist in each slice, of those with a line and those of which nothing is recorded at all. */
export function unobservedNodes({ nodes, lines, linesLeftOut, slices }: Answer) {
  const none = nodes.length - lines.length - linesLeftOut;
  return {
    of: lines.length + none,
    none,
    counts: Array.from(
      { length: slices },
      (_, n) => none + lines.filter(({ longestMs }) => (longestMs[n] ?? null) === null).length,
    ),
  };
}

const px = (n: number): number => Math.round(n * 10) / 10;
