import { expect, it } from 'vitest';
import { divideSeqs } from './rowQuota.ts';

const RANGES = [
  { from: 3, to: 5 },
  { from: 9, to: 10 },
];

it.each([
  [0, [], RANGES],
  [2, [{ from: 3, to: 4 }], [{ from: 5, to: 5 }, RANGES[1]]],
  [3, [RANGES[0]], [RANGES[1]]],
  [4, [RANGES[0], { from: 9, to: 9 }], [{ from: 10, to: 10 }]],
  [9, RANGES, []],
])('of five seqs in two ranges, the first %i are within the quota', (count, within, beyond) => {
  expect(divideSeqs(RANGES, count)).toEqual({ within, beyond });
});
