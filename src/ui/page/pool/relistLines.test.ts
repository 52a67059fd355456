import { expect, test } from 'vitest';
import { TimeScale } from '../drawing/timeScale.ts';
import { drawnLine, latencyScale, outlierOf, unobservedNodes } from './relistLines.ts';

const FROM = '2026-11-26T00:00:00.000Z';
const HOUR = 3_600_000;

/** A line for each list; of as many nodes more nothing is recorded. */
function pool(lists: (number | null)[][], medianMs: (number | null)[], none = 0) {
  const names = Array.from({ length: lists.length + none }, (_, n) => ({ node: `n${n}` }));
  return {
    ...{ from: FROM, sliceSeconds: 3600, slices: medianMs.length, medianMs, linesLeftOut: 0 },
    nodes: names,
    lines: lists.map((longestMs, node) => ({ node, longestMs })),
  };
}

test('the node that took more than twice the median stands out, where it took longest', () => {
  const answer = pool(
    [
      [4, 5, 4],
      [5, 40, 12],
      [4, 11, 4],
    ],
    [4, 5, 4],
  );
  expect(outlierOf(answer)).toMatchObject({ line: 1, name: 'n1', slice: 1, longestMs: 40, medianMs: 5 });
});

test('no node stands out within twice the median, nor where too few relisted for a median', () => {
  expect(outlierOf(pool([[8], [5], [4]], [5]))).toBeUndefined();
  expect(outlierOf(pool([[900], [5]], [null]))).toBeUndefined();
});

test('a scale begins and ends with round values around what is there', () => {
  expect(latencyScale(pool([[4.2, null, 31]], [null, null, null]))?.ticks).toEqual([2, 5, 10, 20, 50]);
  expect(latencyScale(pool([[5, 5]], [null, null]))?.ticks).toEqual([5, 10]);
  expect(latencyScale(pool([[0.4, 12_000]], [null, null]))?.ticks).toEqual([1, 10, 100, 1000, 10_000]);
  expect(latencyScale(pool([[null]], [null]))).toBeUndefined();
});

test('a line covers the slices that were observed and nothing else, and its ends at a hole are marked', () => {
  const time = new TimeScale({ from: Date.parse(FROM), to: Date.parse(FROM) + 6 * HOUR }, 0, 600);
  const { path, ends } = drawnLine(
    [null, 1, 2, null, 3, 4],
    { from: FROM, sliceSeconds: 3600 },
    time,
    (ms) => 10 * ms,
  );
  expect(path).toBe('M100 10L150 10L250 20H300M400 30L450 30L550 40H600');
  expect(ends).toEqual([
    { x: 100, y: 10 },
    { x: 300, y: 20 },
    { x: 400, y: 30 },
  ]);
});

test('each slice counts the nodes that nobody observed, those without any relist included', () => {
  const answer = pool(
    [
      [1, null],
      [null, null],
    ],
    [null, null],
    3,
  );
  expect(unobservedNodes(answer)).toEqual({ of: 5, none: 3, counts: [4, 5] });
  expect(unobservedNodes({ ...answer, linesLeftOut: 2 })).toEqual({ of: 3, none: 1, counts: [2, 3] });
});
