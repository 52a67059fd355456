import { expect, test } from 'vitest';
import { type FakeFigures, metricsText } from '../../../../test/support/fakeKubelet.ts';
import { type EvidenceRecord, MAX_OFFSET, parseRecord } from '../../../protocol/record.ts';
import { mono, wall } from '../../../protocol/units.ts';
import { Gaps } from '../gaps.ts';
import type { Scrape, ScrapeProblem } from './client.ts';
import { KubeletMode } from './kubeletMode.ts';
import { readMetrics } from './metrics.ts';
import type { Remembered } from './modeTracker.ts';

const START = mono(1_000_000);
const BORN = 1.75e9 - 100;

function look(seconds: number, figures: FakeFigures = {}): Scrape {
  const read = readMetrics(metricsText({ gate: 1, successes: 1, start: BORN, ...figures }));
  if (read === null) throw new Error('not a kubelet');
  const ended = mono(seconds * 1e6);
  return { ok: true, figures: read, started: ended, ended, wall: wall(1.75e15 + seconds * 1e6) };
}

const failed = (seconds: number, problem: ScrapeProblem): Scrape => ({
  ok: false,
  problem,
  message: '',
  ended: mono(seconds * 1e6),
});

function watching(remembered: Remembered | null = null) {
  const records: EvidenceRecord[] = [];
  const saved: unknown[] = [];
  const emit = (record: EvidenceRecord) => void records.push(record);
  let no = 0;
  const mintId = () => `00000000-0000-4000-8000-${String(++no).padStart(12, '0')}`;
  const mode = new KubeletMode({
    epochStart: START,
    remembered,
    memory: { save: ({ state }) => void saved.push(state.mode) },
    gaps: new Gaps(START, mintId, emit),
    emit,
  });
  return { mode, records, saved };
}

test('a change is a record that the store takes, and is kept for the next agent', () => {
  const { mode, records, saved } = watching();
  for (const scrape of [null, look(2), look(12, { errors: 5 })]) mode.take(scrape);
  expect(records).toMatchObject([
    { type: 'mode_change', t: 1e6, notBefore: -101e6, from: 'Unknown', to: 'Evented' },
    { type: 'mode_change', t: 11e6, notBefore: 1e6, from: 'Evented', to: 'Fallback', reason: 'StreamBroke' },
  ]);
  for (const record of records) expect(parseRecord(record)).toMatchObject({ ok: true });
  expect(saved).toEqual(['Evented', 'Fallback']);
});

test('a look that is told twice means nothing', () => {
  const { mode, records } = watching();
  const once = look(2);
  mode.take(once);
  mode.take(once);
  expect(records).toHaveLength(1);
  expect(mode.cutMinute()).toMatchObject({ relists: 0 });
});

test('while the kubelet cannot be asked there is one gap, from the last look that was good to the next', () => {
  const { mode, records } = watching();
  for (const scrape of [look(2), failed(12, 'BadStatus'), failed(22, 'Timeout'), look(32)]) mode.take(scrape);
  const gaps = records.filter(({ type }) => type === 'gap');
  expect(gaps).toMatchObject([
    { scope: 'kubelet', cause: 'bad_status', from: 1e6, to: null },
    { scope: 'kubelet', cause: 'bad_status', from: 1e6, to: 31e6 },
  ]);
  for (const gap of gaps) expect(parseRecord(gap)).toMatchObject({ ok: true });
});

test('a kubelet that never answered was not asked since the agent began, and nothing is kept of it', () => {
  const { mode, records, saved } = watching();
  mode.take(failed(12, 'Unauthorized'));
  expect(records).toMatchObject([{ type: 'gap', cause: 'unauthorized', from: 0, to: null }]);
  expect(mode.cutMinute()).toBeUndefined();
  expect(mode.state).toMatchObject({ mode: 'Unknown', reason: 'Unauthorized' });
  expect(saved).toEqual([]);
});

test('a kubelet that runs for longer than a record may reach back gives one that the store takes', () => {
  const { mode, records } = watching();
  mode.take(look(2, { start: 1.6e9, errors: 5 }));
  expect(records).toMatchObject([{ to: 'Fallback', notBefore: -MAX_OFFSET }]);
  expect(parseRecord(records[0])).toMatchObject({ ok: true });
});
