import { expect, test } from 'vitest';
import { mono, wall } from '../../../protocol/units.ts';
import type { Scrape } from './client.ts';
import { readMetrics } from './metrics.ts';
import { RelistSpeed } from './relistSpeed.ts';

const START_S = 1_700_000_000;
const BOUNDS_S = [0.005, 1, 5, 10, Number.POSITIVE_INFINITY];

interface Reported {
  /** Durations of all relists so far, in seconds. */
  readonly relists: readonly number[];
  /** How long ago it last relisted, in seconds; null: it never did. */
  readonly seenAgo?: number | null;
  readonly gate?: 0 | 1;
  readonly start?: number;
}

function scrape(seconds: number, { relists, seenAgo = 1, gate = 0, start = START_S }: Reported): Scrape {
  const name = 'kubelet_pleg_relist_duration_seconds';
  const figures = readMetrics(
    [
      ...BOUNDS_S.map((bound) => {
        const le = Number.isFinite(bound) ? bound : '+Inf';
        return `${name}_bucket{le="${le}"} ${relists.filter((one) => one <= bound).length}`;
      }),
      `${name}_sum ${relists.reduce((sum, one) => sum + one, 0)}`,
      `${name}_count ${relists.length}`,
      `kubelet_pleg_last_seen_seconds ${seenAgo === null ? 0 : START_S + seconds - seenAgo}`,
      `kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"} ${gate}`,
      'kubernetes_build_info{git_version="v1.36.2"} 1',
      `process_start_time_seconds ${start}`,
    ].join('\n'),
  );
  if (figures === null) throw new Error('not a kubelet');
  const at = mono(seconds * 1e6);
  const times = { started: at, ended: at, wall: wall((START_S + seconds) * 1e6) };
  return { ok: true, figures, identity: 'Verified', ...times };
}

const failed = (seconds: number): Scrape => ({
  ok: false,
  reason: 'Timeout',
  message: '',
  ended: mono(seconds * 1e6),
});

function areSlowAfter(...scrapes: readonly Scrape[]): boolean {
  const speed = new RelistSpeed();
  for (const each of scrapes) speed.add(each);
  return speed.areSlow;
}

test('relists of up to five seconds are quick', () => {
  expect(new RelistSpeed().areSlow).toBe(false);
  expect(areSlowAfter(scrape(10, { relists: [] }), scrape(20, { relists: [0.004, 1, 4.9] }))).toBe(false);
});

test('a relist of more than five seconds is slow, until one that is quick has ended', () => {
  const before = [scrape(10, { relists: [1] }), scrape(20, { relists: [1, 7] })];
  expect(areSlowAfter(...before)).toBe(true);
  expect(areSlowAfter(...before, scrape(30, { relists: [1, 7] }))).toBe(true);
  expect(areSlowAfter(...before, scrape(30, { relists: [1, 7] }), scrape(40, { relists: [1, 7, 1] }))).toBe(
    false,
  );
});

test('slow relists from before the first scrape, or of an earlier run of the kubelet, say nothing of the present', () => {
  expect(areSlowAfter(scrape(10, { relists: [60, 60] }))).toBe(false);
  const restarted = scrape(20, { relists: [1], start: START_S + 15 });
  expect(areSlowAfter(scrape(10, { relists: [60, 60] }), restarted)).toBe(false);
});

test('a kubelet that has not relisted for more than ten seconds is slow, until it relists', () => {
  const hanging = scrape(10, { relists: [1], seenAgo: 11 });
  expect(areSlowAfter(scrape(10, { relists: [1], seenAgo: 10 }))).toBe(false);
  expect(areSlowAfter(hanging)).toBe(true);
  expect(areSlowAfter(hanging, scrape(20, { relists: [1, 2] }))).toBe(false);
});

test('a kubelet that has not relisted yet is not known to be slow', () => {
  expect(areSlowAfter(scrape(10, { relists: [], seenAgo: null }))).toBe(false);
});

test('with the gate on the time of the last relist says nothing', () => {
  expect(areSlowAfter(scrape(10, { relists: [1], seenAgo: 290, gate: 1 }))).toBe(false);
});

test('a kubelet that cannot be scraped is not known to be slow', () => {
  const slow = [scrape(10, { relists: [1] }), scrape(20, { relists: [1, 7], seenAgo: 11 })];
  expect(areSlowAfter(...slow, failed(30))).toBe(false);
});
