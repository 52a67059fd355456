import { expect, test } from 'vitest';
import type { ListedItem, ShownState } from '../../protocol/observation.ts';
import { LIST_FIELDS, parseRecord, RELIST_BOUNDS_MS } from '../../protocol/record.ts';
import { type Mono, millis, mono, shift, wall } from '../../protocol/units.ts';
import type { ComparisonCounters } from '../compare/comparison.ts';
import { FIRST_MINUTE, MINUTE, RelistMinute } from './relistMinute.ts';

const START = mono(5_000_000);
const BEGUN = { now: START, wall: wall(1_699_999_940e6) };
const END = { now: mono(65_000_000), wall: wall(1_700_000_000e6) };
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
const known = (counters = figures(), decidedUntil = START) => ({ counters, decidedUntil });
const stats = (ms: number) => ({ took: millis(ms), sandboxListBytes: 200, containerListBytes: 300 });
const list = (start: Mono, ms: number, whole = true, states: readonly ShownState[] = []) => ({
  start,
  end: shift(start, ms * 1000),
  items: new Map(states.map((state, i): [string, ListedItem] => [`${i}`, { object: object(`${i}`), state }])),
  whole,
});
const object = (id: string) => ({
  ...{ id, sandbox: id, isSandbox: true, podUid: 'u', namespace: 'n', pod: 'p', container: '', attempt: 0 },
});
const relist = (start: Mono, ms = 1) => ({
  sandboxes: list(start, ms),
  containers: list(shift(start, ms * 1000), ms),
});

test('an uneventful minute is a record of zeros', () => {
  const record = new RelistMinute({ ...BEGUN, now: mono(START + 60e6) }, MINUTE, figures()).record(
    START,
    { now: mono(START + 70e6), wall: wall(1_700_000_070e6) },
    known(),
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
  const minute = new RelistMinute(BEGUN, MINUTE, figures());
  for (const ms of [0.2, 1, 1.001, 5, 65_536, 65_537, 1e6]) minute.addRelist(relist(START), null, stats(ms));
  const { hist, relists, max } = minute.record(START, END, known());
  expect(relists).toBe(7);
  expect(max).toBe(1e9);
  expect(hist).toHaveLength(RELIST_BOUNDS_MS.length + 1);
  expect(hist.slice(0, 6)).toEqual([2, 1, 0, 0, 1, 0]);
  expect(hist.slice(-2)).toEqual([1, 2]);
});

test('sizes are those of the last relist, errors are counted', () => {
  const minute = new RelistMinute(BEGUN, MINUTE, figures());
  minute.addRelist(relist(START), null, stats(1));
  minute.addRelist(
    {
      sandboxes: list(START, 1, true, ['running', 'exited', 'unknown']),
      containers: list(START, 1, true, ['exited', 'created', 'running', 'exited']),
    },
    null,
    { took: millis(1), sandboxListBytes: 7, containerListBytes: 9 },
  );
  minute.addFailure({ from: START, at: START }, null);
  minute.addFailure({ from: START, at: START }, null);
  expect(minute.record(START, END, known())).toMatchObject({
    ...{ sandboxes: 3, exitedSandboxes: 1, sandboxListBytes: 7 },
    ...{ containers: 4, exitedContainers: 2, containerListBytes: 9 },
    errors: 2,
  });
});

test('the counters of a minute are the increase since it started', () => {
  const before = figures({ expected: 10, matched: 8, unobservable: 1, covered: 1000.4 });
  const minute = new RelistMinute(BEGUN, MINUTE, before);
  // Later changes of the figures do not reach back.
  Object.assign(before, { expected: 99 });
  const after = figures({ expected: 15, matched: 12, unobservable: 1, covered: 61_000_000.9 });
  const record = minute.record(START, END, known(after));
  expect(record).toMatchObject({ expected: 5, matched: 4, unobservable: 0, covered: 60_999_001 });
  expect(parseRecord(record)).toMatchObject({ ok: true });
});

test('a minute says until when everything was decided when it ended', () => {
  const record = new RelistMinute(BEGUN, MINUTE, figures()).record(
    START,
    END,
    known(figures(), shift(START, 7e6)),
  );
  expect(record.decided).toBe(7e6);
});

test('a minute says when each of its list calls began and ended, which answers were incomplete, which relists failed and which events came before', () => {
  const minute = new RelistMinute(BEGUN, MINUTE, figures());
  minute.addRelist(
    { sandboxes: list(shift(START, -500), 2), containers: list(shift(START, 1_600), 3, false) },
    null,
    stats(5),
  );
  minute.addFailure({ from: shift(START, 5e6), at: shift(START, 5.2e6) }, shift(START, 4e6));
  minute.addRelist(
    { sandboxes: list(shift(START, 9e6), 1, false), containers: list(shift(START, 9.001e6), 1) },
    shift(START, 9.0005e6),
    stats(2),
  );
  const record = minute.record(START, END, known());
  expect(record.lists).toEqual([
    ...[-500, 1_500, 1_600, 4_600, 2, -2_147_483_647],
    ...[5_000_000, 5_200_000, 5_000_000, 5_200_000, 4, 4_000_000],
    ...[9_000_000, 9_001_000, 9_001_000, 9_002_000, 1, 9_000_500],
  ]);
  expect(parseRecord(record)).toMatchObject({ ok: true });
});

test('a minute of more relists than a record takes says when the first of them were', () => {
  const minute = new RelistMinute(BEGUN, MINUTE, figures());
  for (let i = 0; i < 1_500; i++) minute.addRelist(relist(shift(START, i * 1000), 0), null, stats(1));
  const record = minute.record(START, END, known());
  expect(record).toMatchObject({ relists: 1_500 });
  expect(record.lists).toHaveLength(6_000);
  expect(parseRecord(record)).toMatchObject({ ok: true });
});

test('a relist further from the start of its minute than four bytes can say is left out', () => {
  const minute = new RelistMinute(BEGUN, MINUTE, figures());
  minute.addRelist(relist(shift(START, 3e9)), null, stats(1));
  expect(minute.record(START, END, known())).toMatchObject({ relists: 1, lists: [] });
});

const after = (seconds: number, drift = 0) => ({
  now: shift(START, millis(1_000 * seconds)),
  wall: wall(BEGUN.wall + 1e6 * seconds + 1e3 * drift),
});
const begun = (length = MINUTE, clocks = BEGUN, random = 1) =>
  new RelistMinute(clocks, length, figures(), () => random);

test('a minute in which nothing happens goes on for ten at most', () => {
  const minute = begun();
  expect([59, 60, 599].map((seconds) => minute.isOver(after(seconds)))).toEqual([false, false, false]);
  expect([59, 61].map((seconds) => minute.isGoingOn(after(seconds).now))).toEqual([false, true]);
  expect(minute.isOver(after(600))).toBe(true);
});

test('how long a minute goes on is drawn for each, so that nodes do not fall into step', () => {
  const lasts = (random: number) => {
    const minute = begun(MINUTE, BEGUN, random);
    return Array.from({ length: 700 }, (_, seconds) => seconds).find((seconds) =>
      minute.isOver(after(seconds)),
    );
  };
  expect([0, 0.2, 0.5].map(lasts)).toEqual([300, 360, 450]);
});

test('a minute in which something happened is over after a minute, or at once if it went on', () => {
  const minute = begun();
  minute.disturb();
  expect([59, 60].map((seconds) => minute.isOver(after(seconds)))).toEqual([false, true]);
  expect(minute.isGoingOn(after(61).now)).toBe(false);
});

test('the first minute does not go on', () => {
  expect(begun(FIRST_MINUTE).isOver(after(10))).toBe(true);
});

test('a minute goes on neither beyond the first minute of the next hour of UTC nor while the clocks drift apart', () => {
  const beforeTheHour = begun(MINUTE, { now: START, wall: wall(1_699_999_200e6 - 100e6) }, 0.2);
  const clocks = (seconds: number) => ({
    now: after(seconds).now,
    wall: wall(1_699_999_200e6 - 100e6 + seconds * 1e6),
  });
  expect(beforeTheHour.isOver(clocks(113))).toBe(false);
  expect(beforeTheHour.isOver(clocks(114))).toBe(true);
  expect(begun().isOver(after(61, 25))).toBe(false);
  expect(begun().isOver(after(61, 26))).toBe(true);
  expect(begun().isOver(after(61, -26))).toBe(true);
});

test.each([
  [1, [0]],
  [2, [0, 1]],
  [3, [0, 1, 2]],
  [4, [0, 2, 3]],
  [40, [0, 38, 39]],
  [3_000, [0, 2_998, 2_999]],
])(
  'of %i relists in a minute that went on the first and the last two have their times, and all count',
  (relists, kept) => {
    const minute = begun();
    const times = Array.from({ length: relists }, (_, n) => n * (500 / relists));
    for (const seconds of times)
      minute.addRelist(relist(shift(START, millis(1_000 * seconds))), null, stats(1));
    const record = minute.record(START, after(500), known());
    expect(record.relists).toBe(relists);
    expect(record.lists.filter((_, i) => i % LIST_FIELDS.length === 0)).toEqual(
      kept.map((n) => Math.round(1e6 * (times[n] ?? 0))),
    );
  },
);

test('all relists of two minutes have their times', () => {
  const minute = begun();
  for (let n = 0; n < 40; n += 1) minute.addRelist(relist(shift(START, millis(3_000 * n))), null, stats(1));
  expect(minute.record(START, after(120), known()).lists).toHaveLength(40 * LIST_FIELDS.length);
});
