import { expect, test } from 'vitest';
import { parseRecord, type RecordOf } from '../../protocol/record.ts';
import { mono } from '../../protocol/units.ts';
import { Gaps } from './gaps.ts';

const START = mono(1_000_000);
const at = (seconds: number) => mono(START + seconds * 1e6);

function gaps() {
  const records: RecordOf<'gap'>[] = [];
  let minted = 0;
  const mint = () => `00000000-0000-4000-8000-${String(++minted).padStart(12, '0')}`;
  return { gaps: new Gaps(START, mint, (record) => records.push(record)), records };
}

const brief = (records: readonly RecordOf<'gap'>[]) =>
  records.map(({ scope, cause, from, to }) => [scope, cause, from / 1e6, to === null ? null : to / 1e6]);

test('a gap is recorded when it opens and when it closes, under one id', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'broken', at(1), at(2));
  open.close('stream', at(5), at(6));
  expect(brief(records)).toEqual([
    ['stream', 'broken', 1, null],
    ['stream', 'broken', 1, 5],
  ]);
  expect(records.map(({ t }) => t / 1e6)).toEqual([2, 6]);
  expect(new Set(records.map(({ gapId: gap }) => gap)).size).toBe(1);
  for (const record of records) expect(parseRecord(record)).toMatchObject({ ok: true });
});

test('an open gap keeps its first cause and its start', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'unproven', at(1), at(1));
  open.open('stream', 'broken', at(3), at(3));
  open.close('stream', at(5), at(5));
  expect(brief(records)).toEqual([
    ['stream', 'unproven', 1, null],
    ['stream', 'unproven', 1, 5],
  ]);
});

test('gaps of different scopes are independent', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'broken', at(1), at(1));
  open.open('list', 'unavailable', at(2), at(2));
  open.close('list', at(3), at(3));
  expect(brief(records).at(-1)).toEqual(['list', 'unavailable', 2, 3]);
  open.close('stream', at(4), at(4));
  expect(brief(records).at(-1)).toEqual(['stream', 'broken', 1, 4]);
});

test('a gap that is not open cannot be closed', () => {
  const { gaps: open, records } = gaps();
  open.close('stream', at(5), at(5));
  expect(records).toEqual([]);
});

test('a gap never ends before it begins', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'broken', at(3), at(4));
  open.close('stream', at(1), at(5));
  expect(brief(records).at(-1)).toEqual(['stream', 'broken', 3, 3]);
});

test('a gap that has already ended is recorded once, beside one that is open', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'unproven', at(0), at(0));
  open.recordClosed('stream', 'agent_stalled', at(1), at(2), at(3));
  open.close('stream', at(4), at(4));
  expect(brief(records)).toEqual([
    ['stream', 'unproven', 0, null],
    ['stream', 'agent_stalled', 1, 2],
    ['stream', 'unproven', 0, 4],
  ]);
});

test('losses of one cause are one gap until an interval passes without any', () => {
  const { gaps: open, records } = gaps();
  open.addLoss('stream', 'malformed_event', at(1), at(2), at(3));
  expect(brief(records)).toEqual([['stream', 'malformed_event', 1, 2]]);
  open.addLoss('stream', 'malformed_event', at(2), at(4), at(5));
  open.addLoss('stream', 'malformed_event', at(4), at(5), at(5));
  open.endLossInterval(at(6));
  open.addLoss('stream', 'malformed_event', at(6), at(7), at(8));
  open.endLossInterval(at(9));
  open.endLossInterval(at(10));
  expect(brief(records).slice(1)).toEqual([
    ['stream', 'malformed_event', 1, 5],
    ['stream', 'malformed_event', 1, 7],
  ]);
  expect(new Set(records.map(({ gapId: gap }) => gap)).size).toBe(1);

  open.addLoss('stream', 'malformed_event', at(10), at(11), at(12));
  for (const then of [13, 14, 15]) open.endLossInterval(at(then));
  expect(brief(records).slice(3)).toEqual([['stream', 'malformed_event', 10, 11]]);
  expect(new Set(records.map(({ gapId: gap }) => gap)).size).toBe(2);
});

test('losses of different causes are separate gaps, beside one that is open', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'unproven', at(0), at(0));
  open.addLoss('stream', 'malformed_event', at(1), at(2), at(2));
  open.addLoss('stream', 'reader_overflow', at(1), at(3), at(3));
  open.endLosses(at(4));
  open.addLoss('stream', 'reader_overflow', at(5), at(6), at(6));
  expect(brief(records).slice(1)).toEqual([
    ['stream', 'malformed_event', 1, 2],
    ['stream', 'reader_overflow', 1, 3],
    ['stream', 'reader_overflow', 5, 6],
  ]);
  expect(new Set(records.map(({ gapId: gap }) => gap)).size).toBe(4);
});

test('at the end of the agent every gap is closed, and one of the agent opens at the last moment that was observed', () => {
  const { gaps: open, records } = gaps();
  open.open('stream', 'broken', at(1), at(1));
  open.open('list', 'unavailable', at(2), at(2));
  open.stop('stopped', at(3), at(4));
  expect(brief(records).slice(2)).toEqual([
    ['stream', 'broken', 1, 4],
    ['list', 'unavailable', 2, 4],
    ['agent', 'stopped', 3, null],
  ]);
});

test('at the end of the agent a loss ends at its last moment, not later', () => {
  const { gaps: open, records } = gaps();
  open.addLoss('stream', 'reader_overflow', at(1), at(2), at(2));
  open.addLoss('stream', 'reader_overflow', at(2), at(3), at(3));
  open.stop('stopped', at(9), at(9));
  expect(brief(records).slice(1)).toEqual([
    ['stream', 'reader_overflow', 1, 3],
    ['agent', 'stopped', 9, null],
  ]);
});
