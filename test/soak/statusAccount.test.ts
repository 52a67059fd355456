import { describe, expect, test } from 'vitest';
import type { EventType } from '../../src/protocol/record.ts';
import { type StatusEvidence, statusAccount, statusFaultsOf } from './statusAccount.ts';

const event = (id: string, type: EventType, at = 100_000) => ({ id, type, at });

describe("the account of the kubelet's own status", () => {
  const sight = (id: string, type: EventType, at = 101_000, isTerminating = false) => ({
    ...{ id, type, at, isTerminating },
    watchedSince: 50_000,
  });
  /** The start of `a`, whose event is stored, was shown a second later. */
  const shown = (status: Partial<StatusEvidence>): StatusEvidence => ({
    ...{ transitions: [event('a', 'STARTED')], stored: new Set(['a STARTED']) },
    ...{ sights: [sight('a', 'STARTED')], counted: NONE, late: [], gaps: [] },
    ...status,
  });
  const once = { STARTED: 1, STOPPED: 0 };
  const NONE = { STARTED: 0, STOPPED: 0 };

  test('a start that was shown outside every gap is counted once', () => {
    const result = statusAccount(shown({ counted: once }));
    expect(result).toMatchObject({ shownStarts: 1, countedStarts: 1, clearlyShown: 1, longestLag: 1_000 });
    expect(result.miscounted).toEqual([]);
    expect(statusAccount(shown({})).miscounted).toEqual(['STARTED: 0 counted, of 1 to 1']);
    expect(statusAccount(shown({ counted: { STARTED: 2, STOPPED: 0 } })).miscounted).toHaveLength(1);
    expect(statusAccount(shown({ counted: { STARTED: 1, STOPPED: 1 } })).miscounted).toHaveLength(1);
  });

  test.each<[string, Partial<StatusEvidence>]>([
    ['in a gap', { gaps: [{ from: 100_500, to: 100_600 }] }],
    ['of a pod that is terminating', { sights: [sight('a', 'STARTED', 101_000, true)] }],
    ['so late that the agent asks for it', { sights: [sight('a', 'STARTED', 111_000)] }],
    ['by a watch that began after it', { sights: [{ ...sight('a', 'STARTED'), watchedSince: 100_500 }] }],
  ])('a start that was shown %s may be counted or not', (_, status) => {
    for (const counted of [once, NONE])
      expect(statusAccount(shown({ ...status, counted })).miscounted).toEqual([]);
  });

  test('the kubelet is falsely accused of what the witness had seen when the agent asked', () => {
    const late = (asked: number) => shown({ counted: once, late: [{ id: 'a', type: 'STARTED', asked }] });
    expect(statusAccount(late(113_000))).toMatchObject({ late: 1, falselyLate: ['a STARTED'] });
    expect(statusFaultsOf(statusAccount(late(113_000)))).toEqual(['late falsely: a STARTED']);
    expect(statusAccount(late(100_900))).toMatchObject({ late: 1, falselyLate: [] });
    const unseen = shown({ sights: [], late: [{ id: 'a', type: 'STARTED', asked: 113_000 }] });
    expect(statusAccount(unseen).falselyLate).toEqual([]);
  });
});
