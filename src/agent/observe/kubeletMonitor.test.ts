import { pino } from 'pino';
import { expect, test } from 'vitest';
import { type FakeFigures, metricsText } from '../../../test/support/fakeKubelet.ts';
import { type EvidenceRecord, MAX_OFFSET, type Mode, parseRecord } from '../../protocol/record.ts';
import { mono, wall } from '../../protocol/units.ts';
import { Gaps } from './gaps.ts';
import type { Scrape } from './kubelet/client.ts';
import type { GoodScrape } from './kubelet/gate.ts';
import { readMetrics } from './kubelet/metrics.ts';
import type { ModeState, SavedMode } from './kubelet/modeTracker.ts';
import type { ScrapeFailure } from './kubelet/scrapeError.ts';
import { summarize } from './kubelet/scrapeSummary.ts';
import { KubeletMonitor } from './kubeletMonitor.ts';

const START = mono(1_000_000);
const BORN = 1.75e9 - 100;

function scrapeAt(seconds: number, figures: FakeFigures = {}): GoodScrape {
  const read = readMetrics(metricsText({ gate: 1, successes: 1, start: BORN, ...figures }));
  if (read === null) throw new Error('not a kubelet');
  const ended = mono(seconds * 1e6);
  return {
    ok: true,
    figures: read,
    identity: 'Verified',
    started: ended,
    ended,
    wall: wall(1.75e15 + seconds * 1e6),
  };
}

const failed = (seconds: number, reason: ScrapeFailure): Scrape => ({
  ok: false,
  reason,
  message: '',
  ended: mono(seconds * 1e6),
});

function monitorWith(previous: SavedMode | null = null) {
  const records: EvidenceRecord[] = [];
  const saved: unknown[] = [];
  const modes: Mode[] = [];
  const identities: (string | null)[] = [];
  const calm: unknown[] = [];
  const states: ModeState[] = [];
  const report = (record: EvidenceRecord) => void records.push(record);
  let no = 0;
  const mintId = () => `00000000-0000-4000-8000-${String(++no).padStart(12, '0')}`;
  const monitor = new KubeletMonitor({
    epochStart: START,
    saved: previous,
    store: { save: ({ state }) => void saved.push(state.mode) },
    gaps: new Gaps(START, mintId, report),
    log: pino({ level: 'silent' }),
    metrics: {
      setKubeletIdentity: (identity) => void identities.push(identity),
      setKubeletMode: (published) => void modes.push(published),
    },
    nodeState: {
      setKubeletIdentity: (identity) => void identities.push(`node is ${identity}`),
      setMode: (state) => void states.push(state),
    },
    reporter: { report, endCalm: () => void calm.push(monitor.takeMinute()) },
  });
  return { monitor, records, saved, modes, states, identities, calm };
}

test('a mode change is a valid record, and is saved for the next agent', () => {
  const { monitor, records, saved } = monitorWith();
  for (const scrape of [null, scrapeAt(2), scrapeAt(12, { errors: 5 })]) monitor.take(scrape);
  expect(records).toMatchObject([
    { type: 'mode_change', t: 1e6, notBefore: -101e6, from: 'Unknown', to: 'Evented' },
    { type: 'mode_change', t: 11e6, notBefore: 1e6, from: 'Evented', to: 'Fallback', reason: 'StreamBroke' },
  ]);
  for (const record of records) expect(parseRecord(record)).toMatchObject({ ok: true });
  expect(saved).toEqual(['Evented', 'Fallback']);
});

test('where a scrape shows a slow relist, what was calm ends without it', () => {
  const { monitor, calm } = monitorWith();
  const slow = readMetrics(
    metricsText({ gate: 1, successes: 1, start: BORN, relists: 13 }).replace(
      /(relist_duration_seconds_bucket{le="0.005"}) 12/,
      '$1 11',
    ),
  );
  if (slow === null) throw new Error('not a kubelet');
  monitor.take(scrapeAt(2, { relists: 10 }));
  monitor.take(scrapeAt(12, { relists: 11 }));
  expect(calm).toEqual([]);
  monitor.take({ ...scrapeAt(22), figures: slow });
  expect(calm).toMatchObject([{ relists: 1 }]);
  expect(monitor.takeMinute()).toMatchObject({ relists: 2 });
});

test('the identity of the kubelet is that of the last scrape, and none after a failed one', () => {
  const { monitor, identities } = monitorWith();
  monitor.take(scrapeAt(2));
  monitor.take(failed(12, 'Tls'));
  expect(identities).toEqual(['Verified', 'node is Verified', null]);
});

test('a scrape that is passed twice is ignored', () => {
  const { monitor, records } = monitorWith();
  const once = scrapeAt(2);
  monitor.take(once);
  monitor.take(once);
  expect(records).toHaveLength(1);
  expect(monitor.takeMinute()).toMatchObject({ relists: 0 });
});

test('while scrapes fail there is one gap, from the last good scrape to the next', () => {
  const { monitor, records } = monitorWith();
  for (const scrape of [scrapeAt(2), failed(12, 'BadStatus'), failed(22, 'Timeout'), scrapeAt(32)])
    monitor.take(scrape);
  const gaps = records.filter(({ type }) => type === 'gap');
  expect(gaps).toMatchObject([
    { scope: 'kubelet', cause: 'bad_status', from: 1e6, to: null },
    { scope: 'kubelet', cause: 'bad_status', from: 1e6, to: 31e6 },
  ]);
  for (const gap of gaps) expect(parseRecord(gap)).toMatchObject({ ok: true });
});

test('a kubelet that never answered is a gap from the start of the agent, and no mode is saved', () => {
  const { monitor, records, saved, states } = monitorWith();
  monitor.take(failed(12, 'Unauthorized'));
  expect(records).toMatchObject([{ type: 'gap', cause: 'unauthorized', from: 0, to: null }]);
  expect(monitor.takeMinute()).toBeUndefined();
  expect(states.at(-1)).toMatchObject({ mode: 'Unknown', reason: 'Unauthorized' });
  expect(saved).toEqual([]);
});

test('a kubelet older than a record may reach back still makes a valid record', () => {
  const { monitor, records } = monitorWith();
  monitor.take(scrapeAt(2, { start: 1.6e9, errors: 5 }));
  expect(records).toMatchObject([{ to: 'Fallback', notBefore: -MAX_OFFSET }]);
  expect(parseRecord(records[0])).toMatchObject({ ok: true });
});

test('a mode that is not confirmed for two minutes ends at the last good scrape, in the records, the metric and the state', () => {
  const { monitor, records, saved, modes, states } = monitorWith();
  monitor.take(scrapeAt(2));
  monitor.take(failed(12, 'Tls'));
  monitor.tick(mono(122e6));
  expect(modes.at(-1)).toBe('Evented');
  monitor.tick(mono(122e6 + 1));
  const changes = records.filter(({ type }) => type === 'mode_change');
  expect(changes).toMatchObject([
    { to: 'Evented' },
    { t: 1e6, notBefore: 1e6, from: 'Evented', to: 'Unknown', model: 'Unknown', reason: 'NotObserved' },
  ]);
  for (const record of records) expect(parseRecord(record)).toMatchObject({ ok: true });
  expect(modes.at(-1)).toBe('Unknown');
  expect(states.at(-1)).toMatchObject({ mode: 'Unknown', reason: 'NotObserved', since: 2e6 });
  expect(saved).toEqual(['Evented', 'Unknown']);
});

test('the first scrape after a stall of two minutes ends the mode before it and begins another', () => {
  const { monitor, records } = monitorWith();
  monitor.take(scrapeAt(2));
  monitor.take(scrapeAt(302));
  expect(records).toMatchObject([
    { from: 'Unknown', to: 'Evented', t: 1e6 },
    { from: 'Evented', to: 'Unknown', t: 1e6, reason: 'NotObserved' },
    { from: 'Unknown', to: 'Evented', t: 301e6 },
  ]);
});

test('the mode that the previous agent saved is neither published nor reported before a scrape', () => {
  const { monitor, records, modes, states } = monitorWith({
    model: 'EventedCache',
    mode: 'Evented',
    reason: 'Connected',
    scrape: summarize(scrapeAt(0)),
    since: wall(1.75e15 - 60e6),
    sameBoot: true,
  });
  monitor.take(failed(2, 'Tls'));
  monitor.tick(mono(200e6));
  expect(new Set(modes)).toEqual(new Set(['Unknown']));
  expect(states.map(({ reason }) => reason)).toEqual(['NotScrapedYet', 'Tls', 'NotObserved']);
  expect(records.filter(({ type }) => type === 'mode_change')).toEqual([]);
});
