import { expect, test } from 'vitest';
import { millis } from '../../protocol/units.ts';
import { KubeletLagCounts } from './kubeletLagCounts.ts';
import { STARTED, STOPPED } from './stages.ts';

test('a lag belongs to the first bucket whose bound it does not exceed, and empty buckets at the end are left out', () => {
  const counts = new KubeletLagCounts();
  for (const ms of [0, 1, 1.001, 4]) counts.add(STARTED, millis(ms));
  counts.add(STOPPED, millis(65_537));
  expect(counts.take()).toEqual({ starts: [2, 1, 1], stops: [...Array.from({ length: 17 }, () => 0), 1] });
});

test('lags that were handed over are not counted again', () => {
  const counts = new KubeletLagCounts();
  counts.add(STARTED, millis(1));
  counts.add(STOPPED, millis(1));
  expect([counts.take(), counts.take()]).toEqual([{ starts: [1], stops: [1] }, null]);
});
