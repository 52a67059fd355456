import { expect, test } from 'vitest';
import type { ChangeLag, TimelineAnswer } from '../../api.ts';
import { TimeScale } from '../drawing/timeScale.ts';
import { endOf, type Ghost, ghostsOf, isLong, lengthInWords, trailInWords, trailSentence } from './ghosts.ts';
import { trailLabels, trailShape } from './trailLabels.ts';

const NIGHT = Date.parse('2026-11-22T03:00:00Z');
const at = (second: number) => new Date(NIGHT + second * 1000).toISOString();

const lag = (more: Partial<ChangeLag> = {}): ChangeLag => ({
  ...{
    findingId: 'f1',
    kind: 'missed',
    eventType: 'STOPPED',
    container: 0,
    at: at(60),
    from: at(55),
    to: at(60),
  },
  ...{ occurredAt: null, kubeletKnew: null, kubeletWhy: null, kubeletAtLeastMs: null, kubeletAtMostMs: null },
  ...{ lagMinMs: null, lagMaxMs: null, lagReason: null, isRead: false },
  ...more,
});
const container = { id: 'a', isSandbox: false, podUid: null, podNamespace: null, podName: null, name: 'app' };
const ghosts = (...rows: ChangeLag[]): readonly Ghost[] => {
  const answer: Pick<TimelineAnswer, 'lags' | 'containers'> = {
    lags: { rows, cut: null },
    containers: [container],
  };
  return ghostsOf(answer).get(0) ?? [];
};
const shown = { kubeletKnew: 'shown', kubeletAtLeastMs: 28_000, kubeletAtMostMs: 33_000 };

test('each witness has its own bounds, and one that was not asked has none', () => {
  const [ghost] = ghosts(lag({ ...shown, lagMinMs: 34_000, lagMaxMs: 36_000 }));
  expect(ghost?.trails).toEqual({
    kubelet: { atLeast: 28_000, atMost: 33_000, why: null },
    'API server': { atLeast: 34_000, atMost: 36_000, why: null },
  });
  expect(ghost && endOf(ghost)).toBe(NIGHT + 96_000);
  expect(Object.keys(ghosts(lag(shown))[0]?.trails ?? {})).toEqual(['kubelet']);
});

test('a miss and a late status of one change are one ghost, within the bounds of both', () => {
  const late = lag({
    ...{ findingId: 'f2', kind: 'kubelet_late', kubeletKnew: 'not_shown' },
    kubeletAtLeastMs: 31_000,
  });
  const all = ghosts(lag({ ...shown, lagMinMs: 34_000 }), late);
  expect(all).toHaveLength(1);
  expect(all[0]).toMatchObject({
    findingId: 'f1',
    trails: { kubelet: { atLeast: 31_000, atMost: 33_000 }, 'API server': { atLeast: 34_000 } },
  });
  expect(ghosts(lag(shown), lag({ ...shown, eventType: 'STARTED' }))).toHaveLength(2);
});

test('a finding that accuses nobody is not the one to open', () => {
  expect(ghosts(lag({ ...shown, kind: 'unobservable' }))[0]?.findingId).toBeNull();
});

test('a ghost is long if a witness is proven to have shown the old state for ten seconds, not if it may have', () => {
  const long = (more: Partial<ChangeLag>) => ghosts(lag(more)).some(isLong);
  expect([long({ lagMinMs: 10_000 }), long({ lagMinMs: 9_999, lagMaxMs: 90_000 })]).toEqual([true, false]);
});

test('its length is in words, and its bounds are apart where they differ by more than a tenth', () => {
  const length = (atLeast: number | null, atMost: number | null) =>
    lengthInWords({ atLeast, atMost, why: null });
  expect(length(33_000, 34_500)).toBe('about 35 s');
  expect(length(28_400, 33_000)).toBe('28 to 33 s');
  expect(length(90_000, 300_000)).toBe('90 s to 5 min');
  expect(length(34_900, null)).toBe('at least 34 s');
  expect(length(0, 14_100)).toBe('at most 15 s');
  expect(length(null, 900)).toBe('at most 900 ms');
});

test('the words say who showed what, that it did no harm, and that nobody observed it', () => {
  const words = (type: string, atLeast: number | null, atMost: number | null) =>
    trailInWords('API server', type, { atLeast, atMost, why: null });
  expect(words('STOPPED', 33_000, 34_500)).toEqual({
    ...{ text: 'API server: looked alive for about 35 s', short: 'API: about 35 s' },
  });
  expect(words('STARTED', 12_000, null).text).toBe('API server: not shown running for at least 12 s');
  expect(words('STOPPED', 0, 1_600).text).toBe('API server: showed it within 1.6 s');
  expect(words('STOPPED', null, null).text).toBe('API server: not observed');
});

test('a sentence gives both bounds, or why one is not known', () => {
  const trail = { atLeast: 28_000, atMost: 33_000, why: null };
  expect(trailSentence('kubelet', 'STOPPED', trail)).toBe(
    "The kubelet's own status still showed it running at least 28 s after the stop, and showed the stop at most 33 s after it.",
  );
  const gone = { atLeast: 61_000, atMost: null, why: 'the pod was deleted' };
  expect(trailSentence('API server', 'STARTED', gone)).toBe(
    'The API server still showed it not running at least 1 min 1 s after the start, and when it showed the start is not known: the pod was deleted.',
  );
  const unknown = { atLeast: null, atMost: null, why: 'the watch was broken' };
  expect(trailSentence('kubelet', 'STOPPED', unknown)).toBe(
    "Whether the kubelet's own status showed the stop in time was not observed: the watch was broken.",
  );
});

const scale = new TimeScale({ from: NIGHT, to: NIGHT + 1_000_000 }, 0, 1000);
const ghost = (second: number, atLeast: number | null, atMost: number | null): Ghost => ({
  ...{ type: 'STOPPED', from: NIGHT + second * 1000, findingId: null },
  trails: { kubelet: { atLeast, atMost, why: null } },
});
const shapeOf = (each: Ghost) => each.trails.kubelet && trailShape(each, each.trails.kubelet, scale);

test('a trail is filled as far as it is proven, and has no end where nobody saw one', () => {
  expect(shapeOf(ghost(100, 50_000, 80_000))).toEqual({ x: 100, proven: 150, end: 180, isOpen: false });
  expect(shapeOf(ghost(100, 50_000, null))).toEqual({ x: 100, proven: 150, end: 168, isOpen: true });
  expect(shapeOf(ghost(100, 0, 1))).toMatchObject({ x: 100, end: 104 });
  expect(shapeOf(ghost(1_001, 1, 2))).toBeUndefined();
});

const labels = (...all: Ghost[]) => trailLabels(all, 'kubelet', scale, { left: 0, right: 1000 });

test('words stand right of a trail, left of it where there is no room, and those of several are words of all', () => {
  expect(labels(ghost(100, 30_000, 40_000))).toEqual([
    { text: 'kubelet: looked alive for 30 to 40 s', x: 146, anchor: 'start', tone: 'late' },
  ]);
  expect(labels(ghost(900, 30_000, 40_000))[0]).toMatchObject({ x: 894, anchor: 'end' });
  const many = labels(ghost(100, 30_000, 40_000), ghost(160, 50_000, 52_000), ghost(200, null, null));
  expect(many.map(({ text }) => text)).toEqual([
    'kubelet: 2 shown late, the longest about 52 s, 1 not observed',
  ]);
});

test('in a narrow drawing the words are short, and stay within it', () => {
  const narrow = new TimeScale({ from: NIGHT, to: NIGHT + 1_000_000 }, 0, 200);
  const [label] = trailLabels([ghost(400, 30_000, 40_000)], 'kubelet', narrow, { left: 0, right: 200 });
  expect(label).toMatchObject({ text: 'kubelet: 30 to 40 s', anchor: 'start', x: 0 });
});
