import { describe, expect, test } from 'vitest';
import type { EventType } from '../../src/protocol/record.ts';
import { account, announced, type PassedEvent, type SoakEvidence } from './account.ts';
import { transitionOf } from './witness.ts';

const event = (id: string, type: EventType, dropped = false, at = 100_000): PassedEvent => ({
  id,
  type,
  at,
  dropped,
});
const finding = (id: string, type: EventType, kind = 'missed', resolved = false) => ({
  ...{ id, type, kind, resolved },
});
const NOTHING: SoakEvidence = { transitions: [], passed: [], stored: new Set(), findings: [], gaps: [] };
const CREATED = event('a', 'CREATED', true);

describe('the account of a soak', () => {
  test('counts each id that was seen created and deleted as completed', () => {
    const transitions = [event('a', 'CREATED'), event('a', 'DELETED'), event('b', 'DELETED')];
    expect(account({ ...NOTHING, transitions })).toMatchObject({ completed: 1, transitions: 3 });
  });

  test.each([
    ['missed', { findings: [finding('a', 'CREATED')] }],
    ['unobservable', { findings: [finding('a', 'CREATED', 'unobservable')] }],
    ['inGap', { gaps: [{ from: 130_000, to: null }] }],
  ])('accounts for a drop by %s', (field, evidence) => {
    const result = account({ ...NOTHING, passed: [CREATED], ...evidence });
    expect(result).toMatchObject({ drops: 1, overlooked: [], falseMisses: [], [field]: 1 });
  });

  test.each([
    ['nothing', {}],
    ['a miss of another event', { findings: [finding('a', 'STARTED')] }],
    ['a miss that was resolved', { findings: [finding('a', 'CREATED', 'missed', true)] }],
    ['a gap long before', { gaps: [{ from: 0, to: 50_000 }] }],
  ])('calls a drop overlooked of which the database has %s', (_, evidence) => {
    expect(account({ ...NOTHING, passed: [CREATED], ...evidence }).overlooked).toEqual(['a CREATED']);
  });

  test('calls a miss false if the event was passed on, or if its transition never happened', () => {
    const findings = [finding('a', 'CREATED'), finding('b', 'CREATED'), finding('c', 'CREATED')];
    const result = account({
      ...NOTHING,
      passed: [event('a', 'CREATED')],
      transitions: [event('a', 'CREATED'), event('c', 'CREATED')],
      findings,
    });
    expect(result.falseMisses).toEqual(['a CREATED', 'b CREATED']);
    expect(result.neverAnnounced).toEqual(['c CREATED']);
  });

  test('calls an event lost that was passed on outside every gap and is not stored', () => {
    const passed = [event('a', 'CREATED'), event('b', 'CREATED'), event('c', 'CREATED', false, 10_000)];
    const gaps = [
      { from: 5_000, to: 11_000 },
      { from: 130_000, to: 140_000 },
    ];
    expect(account({ ...NOTHING, passed, stored: new Set(['a CREATED']), gaps }).lost).toEqual(['b CREATED']);
  });

  test('excuses an event that a gap interrupted before the next transition of its container, and no other', () => {
    const created = event('a', 'CREATED', false, 100_000);
    const started = event('a', 'STARTED', false, 106_000);
    const lost = (from: number, ...transitions: PassedEvent[]) =>
      account({ ...NOTHING, passed: announced(transitions), gaps: [{ from, to: from + 1_000 }] }).lost;
    expect(lost(104_000, created, started)).toEqual([]);
    expect(lost(104_000, created, event('b', 'STARTED', false, 106_000))).toEqual(['a CREATED']);
    expect(lost(109_000, created, started)).toEqual(['a CREATED', 'a STARTED']);
    expect(lost(96_000, created, started)).toEqual(['a CREATED', 'a STARTED']);
  });
});

describe("a line of containerd's event exchange", () => {
  const line = (topic: string, fields: object) =>
    `2026-01-01 10:00:00.500123456 +0000 UTC k8s.io ${topic} ${JSON.stringify(fields)}`;

  test.each([
    ['/containers/create', { id: 'a', image: 'x' }, 'CREATED'],
    ['/tasks/start', { container_id: 'a', pid: 7 }, 'STARTED'],
    ['/tasks/exit', { container_id: 'a', id: 'a', pid: 7 }, 'STOPPED'],
    ['/containers/delete', { id: 'a' }, 'DELETED'],
  ])('of %s is a transition', (topic, fields, type) => {
    expect(transitionOf(line(topic, fields))).toEqual({
      id: 'a',
      type,
      at: Date.UTC(2026, 0, 1, 10, 0, 0, 500),
    });
  });

  test.each([
    [
      'the exit of a process that was executed in a container',
      '/tasks/exit',
      { container_id: 'a', id: 'exec' },
    ],
    ['another topic', '/tasks/oom', { container_id: 'a' }],
  ])('is no transition if it is about %s', (_, topic, fields) => {
    expect(transitionOf(line(topic, fields))).toBeNull();
  });

  test('is no transition if it cannot be read', () => {
    expect(transitionOf('ctr: failed to dial')).toBeNull();
  });
});
