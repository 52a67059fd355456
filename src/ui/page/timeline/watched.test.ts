import { expect, test } from 'vitest';
import type { Gap, Session, TimelineAnswer } from '../../api.ts';
import { cutsInWords } from './cutMark.tsx';
import { decidedPeriods, lengthWithin, noFindingInWords, noGapInWords, watchedPeriods } from './watched.ts';

const NIGHT = Date.parse('2026-11-22T03:00:00Z');
const at = (second: number) => new Date(NIGHT + second * 1000).toISOString();
const range = (from: number, to: number) => ({ from: NIGHT + from * 1000, to: NIGHT + to * 1000 });
const seconds = (periods: ReturnType<typeof watchedPeriods>) =>
  periods.map(({ from, to }) => [(from - NIGHT) / 1000, (to - NIGHT) / 1000]);

const session = (opened: number, armed: number | null, closed: number | null): Session => ({
  ...{ openedAt: at(opened), armedAt: armed === null ? null : at(armed), code: null, message: null },
  ...{ closedAt: closed === null ? null : at(closed), events: 1, replayed: 0 },
});
const gap = (scope: string, from: number, to: number | null, filledAt: string | null = null): Gap => ({
  ...{ scope, cause: 'broken', from: at(from), to: to === null ? null : at(to), filledAt },
});
const rows = <T>(all: readonly T[], until: number | null = null) => ({
  rows: all,
  cut: until === null ? null : { until: at(until) },
});
/** It was heard of until 03:10, and it is 04:00. */
const answer = (more: Partial<TimelineAnswer> = {}): TimelineAnswer => ({
  ...{ cluster: 'east', node: 'n', now: at(3600), from: at(0), to: at(3600) },
  ...{
    firstSeen: at(0),
    lastSeen: at(600),
    decidedThrough: at(600),
    isUnsigned: false,
    containers: [],
    histBoundsMs: [],
    empty: null,
  },
  ...{ sessions: rows([]), gaps: rows([]), hangs: rows([]), modes: rows([]), conditions: rows([]) },
  ...{ relists: rows([]), events: rows([]), changes: rows([]), findings: rows([]) },
  ...{ lags: rows([]), earlier: { events: [], changes: [] } },
  ...more,
});

test('a stream is watched from its first event until it ends, or until the last that is known of its agent', () => {
  const sessions = rows([session(0, 10, 100), session(100, null, 200), session(200, 210, null)]);
  expect(seconds(watchedPeriods(answer({ sessions })))).toEqual([
    [10, 100],
    [210, 600],
  ]);
  expect(watchedPeriods(answer({ sessions, firstSeen: null, lastSeen: null }))).toEqual([]);
});

test('a time in a gap of the stream, the agent or the records is not watched, unless the records came after all', () => {
  const sessions = rows([session(0, 0, null)]);
  const gaps = rows([
    gap('stream', 10, 20),
    gap('stream', 15, 30),
    gap('seq', 40, 50),
    gap('seq', 60, 70, at(3000)),
    gap('list', 80, 90),
    gap('agent', 500, null),
  ]);
  expect(seconds(watchedPeriods(answer({ sessions, gaps })))).toEqual([
    [0, 10],
    [30, 40],
    [50, 500],
  ]);
});

test('nothing is watched for sure before the time until which sessions or gaps are left out', () => {
  const sessions = rows([session(0, 0, null)]);
  expect(seconds(watchedPeriods(answer({ sessions, gaps: rows([], 300) })))).toEqual([[300, 600]]);
  expect(seconds(watchedPeriods(answer({ sessions: { ...sessions, cut: { until: at(200) } } })))).toEqual([
    [200, 600],
  ]);
});

test('a period has no gap only where the node was known all the time', () => {
  const words = (from: number, to: number, more: Partial<TimelineAnswer> = {}) =>
    noGapInWords(answer(more), range(from, to));
  expect(words(0, 600)).toBe('no gap');
  expect(words(0, 3600)).toBe('no gap until 2026-11-22 03:10:00 UTC');
  expect(words(-60, 600)).toBe('no gap from 2026-11-22 03:00:00 UTC');
  expect(words(700, 800)).toBe('nothing is known of this period');
  expect(words(-60, -30)).toBe('nothing is known of this period');
  expect(words(4000, 5000)).toBe('not yet');
  expect(words(0, 600, { firstSeen: null, lastSeen: null })).toBe('no agent: nothing is known');
});

test('that there is no finding says of missed events only as much as was watched and decided', () => {
  const sessions = rows([session(0, 0, null)]);
  const words = (more: Partial<TimelineAnswer>, from = 0, to = 600) =>
    noFindingInWords(answer(more), range(from, to));
  expect(words({ sessions })).toBe('None: every event that was due was received.');
  expect(words({ sessions, decidedThrough: at(420) })).toBe(
    'None until 2026-11-22 03:07:00 UTC: every event that was due was received. Later ones are not decided.',
  );
  expect(words({ sessions, decidedThrough: at(420), gaps: rows([gap('stream', 60, 120)]) })).toMatch(
    /^None in the 6 min of .*60\.0 %/,
  );
  expect(words({ sessions, decidedThrough: at(420) }, 500)).toMatch(/^None, but nothing of it is decided/);
  expect(words({ sessions, decidedThrough: at(420) }, 0, 3600)).toMatch(/^None until /);
  expect(words({ sessions: rows([session(0, 0, 420)]), decidedThrough: at(420) }, 0, 600)).toMatch(
    /^None in the 7 min of .*70\.0 %.* Of the rest nobody knows\.$/,
  );
  expect(words({})).toMatch(/^None, but no stream was watched/);
  expect(words({ sessions }, 600, 3600)).toMatch(/^None, but no stream was watched/);
  expect(words({ sessions, gaps: rows([gap('findings', 0, 300)]) })).toMatch(
    /^None in the 5 min of .*50\.0 %/,
  );
  expect(words({ sessions, empty: 'Nothing is stored.' })).toMatch(/^Nothing is stored of this period/);
});

test('a time in a gap of verdicts is watched and not decided', () => {
  const one = answer({ sessions: rows([session(0, 0, null)]), gaps: rows([gap('findings', 100, 200)]) });
  expect(lengthWithin(watchedPeriods(one), range(0, 600))).toBe(600_000);
  expect(lengthWithin(decidedPeriods(one), range(0, 600))).toBe(500_000);
});

test('each kind of which something is left out is named, if that is within the period', () => {
  const one = answer({ gaps: rows([], 60), events: rows([], 120) });
  expect(cutsInWords(one, range(0, 600))).toBe(
    'This period has more than can be drawn; some are left out: gaps until 2026-11-22 03:01:00, events until 2026-11-22 03:02:00 UTC. Zoom in to see them.',
  );
  expect(cutsInWords(one, range(90, 600))).not.toContain('gaps');
  expect(cutsInWords(one, range(300, 600))).toBeUndefined();
});
