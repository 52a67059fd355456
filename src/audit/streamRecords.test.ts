/*
 * Sessions and gaps must account for the whole time that is audited.
 */
import { expect, test } from 'vitest';
import { mono } from '../protocol/units.ts';
import type { GapRecord, SessionRecord } from './storedEpoch.ts';
import { type StreamRecords, streamDifferences } from './streamRecords.ts';

const SECOND = 1_000_000;

const open: SessionRecord = {
  no: 1,
  opened: mono(0),
  armed: mono(0),
  closed: null,
  firstLiveNs: 1n,
  events: 1,
  replayed: 0,
  firstEvent: mono(0),
  storedEvents: 1,
  storedReplayed: 0,
};

const gap = (from: number, to: number): GapRecord => ({
  gapId: '00000000-0000-4000-8000-000000000001',
  cause: 'agent_stalled',
  from: mono(from * SECOND),
  to: mono(to * SECOND),
  eventInside: null,
});

const records = (changes: Partial<StreamRecords>): StreamRecords => ({
  start: mono(0),
  end: mono(60 * SECOND),
  complete: true,
  sessions: [],
  gaps: [],
  kubeletGaps: [],
  agentGaps: [],
  added: [],
  strayEvents: [],
  ...changes,
});

test('a time that neither a session nor a gap covers is a difference', () => {
  expect(streamDifferences(records({ gaps: [gap(0, 20), gap(30, 60)] }))).toEqual([
    { is: 'undeclared', from: 20 * SECOND, to: 30 * SECOND },
  ]);
  expect(streamDifferences(records({ gaps: [gap(0, 20)] }))).toEqual([
    { is: 'undeclared', from: 20 * SECOND, to: 60 * SECOND },
  ]);
});

test('a session that never ended covers the time until the last minute, and a later gap asks for nothing more', () => {
  expect(streamDifferences(records({ sessions: [open], gaps: [gap(67, 70)] }))).toEqual([]);
});

test('evidence missing before the last minute ended is missing until then, and not until a later gap', () => {
  expect(streamDifferences(records({ gaps: [gap(0, 20), gap(67, 70)] }))).toEqual([
    { is: 'undeclared', from: 20 * SECOND, to: 60 * SECOND },
  ]);
});
