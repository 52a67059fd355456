import { expect, test } from 'vitest';
import { parseRecord, RELIST_BOUNDS_MS } from '../../protocol/record.ts';
import { millis, mono } from '../../protocol/units.ts';
import type { ComparisonCounters } from '../compare/comparison.ts';
import { MINUTE, RelistMinute } from './relistMinute.ts';

const START = mono(5_000_000);
const END = mono(65_000_000);
const figures = (more: Partial<ComparisonCounters> = {}): ComparisonCounters => ({
  expected: 0,
  matched: 0,
  missed: 0,
  unobservable: 0,
  covered: 0,
  untracked: 0,
  overdueSuppressed: 0,
  ...more,
});
const relist = (ms: number) => ({ took: millis(ms), sandboxes: 3, containers: 4, bytes: 500 });

test('an uneventful minute is a record of zeros', () => {
  const record = new RelistMinute(mono(START + 60e6), MINUTE, figures()).record(
    START,
    mono(START + 70e6),
    figures(),
  );
  expect(record).toMatchObject({
    type: 'relist_minute',
    t: 60e6,
    span: 10e6,
    relists: 0,
    errors: 0,
    max: 0,
    expected: 0,
  });
  expect(parseRecord(record)).toMatchObject({ ok: true });
});

test('a relist counts in the first bucket whose bound it does not exceed, a longer one in the last', () => {
  const minute = new RelistMinute(START, MINUTE, figures());
  for (const ms of [0.2, 1, 1.001, 5, 65_536, 65_537, 1e6]) minute.addRelist(relist(ms));
  const { hist, relists, max } = minute.record(START, END, figures());
  expect(relists).toBe(7);
  expect(max).toBe(1e9);
  expect(hist).toHaveLength(RELIST_BOUNDS_MS.length + 1);
  expect(hist.slice(0, 6)).toEqual([2, 1, 0, 0, 1, 0]);
  expect(hist.slice(-2)).toEqual([1, 2]);
});

test('sizes are those of the last relist, errors are counted', () => {
  const minute = new RelistMinute(START, MINUTE, figures());
  minute.addRelist(relist(1));
  minute.addRelist({ took: millis(1), sandboxes: 7, containers: 8, bytes: 9 });
  minute.addFailure();
  minute.addFailure();
  expect(minute.record(START, END, figures())).toMatchObject({
    sandboxes: 7,
    containers: 8,
    bytes: 9,
    errors: 2,
  });
});

test('the counters of a minute are the increase since it started', () => {
  const before = figures({ expected: 10, matched: 8, unobservable: 1, covered: 1000.4 });
  const minute = new RelistMinute(START, MINUTE, before);
  // What happens to the figures later does not reach back.
  Object.assign(before, { expected: 99 });
  const after = figures({ expected: 15, matched: 12, unobservable: 1, covered: 61_000_000.9 });
  const record = minute.record(START, END, after);
  expect(record).toMatchObject({ expected: 5, matched: 4, unobservable: 0, covered: 60_999_001 });
  expect(parseRecord(record)).toMatchObject({ ok: true });
});
