/*
 * The stages that an event proves beside its own, and those that it leaves open: by the statuses in it, without a status, and of an unknown type.
 */
import { describe, expect, test } from 'vitest';
import {
  C1_CREATED,
  C1_RUNNING,
  CONTAINERD,
  compare,
  covered,
  listed,
  received,
  S1_RUNNING,
  status,
  times,
} from '../../../test/engine/timeline.ts';
import { findingsOf, running, summaries } from '../../../test/engine/timelinePods.ts';

describe('the statuses in an event', () => {
  test('the statuses in an event prove what they show of other ids', () => {
    const steps = [
      ...running.slice(0, 2),
      listed(5, C1_CREATED),
      received(6, 's1', 'STARTED', {
        others: [{ id: 'c1', state: 'running', times: times({ created: 4.2, started: 5.5 }) }],
      }),
    ];
    const outcome = compare([...covered, ...steps], { until: 60 });
    expect(outcome.missed).toContain('c1 STARTED');
  });

  test('the statuses in an event prove that a sandbox came up', () => {
    const up = { id: 's1', state: 'running', times: times({ created: 4 }) } as const;
    const steps = [received(4, 's1', 'CREATED'), received(6, 'c1', 'CREATED', { others: [up] })];
    expect(findingsOf(steps, 60)).toEqual(['missed s1 STARTED sequence']);
  });

  test('the statuses in an event prove nothing where they are UNKNOWN', () => {
    const unknown = { id: 'c1', state: 'unknown', times: times({}) } as const;
    const steps = [listed(5, { c1: 'unknown' }), received(6, 's1', 'CREATED', { others: [unknown] })];
    expect(findingsOf(steps, 60)).toEqual([]);
  });
});

describe('a STOPPED without a status', () => {
  const ended = [
    ...running.slice(0, 2),
    received(4.2, 'c1', 'CREATED'),
    listed(5, C1_CREATED),
    received(6, 'c1', 'STOPPED'),
    received(7, 'c1', 'DELETED'),
    listed(10, S1_RUNNING),
    status(12, 'c1', null),
  ];

  test('a STOPPED without a status proves a run where a failed start is known never to be announced', () => {
    expect(findingsOf(ended, 60)).toEqual(['missed c1 STARTED sequence']);
  });

  test.each([{ failedStartsUnannounced: false }, { failedStartsMayBeUnknown: true }])(
    'a STOPPED without a status proves no run where a failed start may be announced (%o)',
    (announced) => {
      const profile = { ...CONTAINERD, ...announced };
      expect(summaries(compare([...covered, ...ended], { until: 60, profile }))).toEqual([]);
    },
  );
});

test('an event of an unknown type may have been what is due already', () => {
  const steps = [
    ...running.slice(0, 3),
    listed(5, C1_CREATED),
    listed(10, C1_RUNNING),
    received(12, 'c1', 9),
  ];
  expect(findingsOf(steps, 60)).toEqual(['unobservable c1 STARTED unknown_event_type']);
});

test('an event of an unknown type may have been any that is due of its id, and of no other', () => {
  const steps = [
    ...running.slice(0, 3),
    listed(5, C1_CREATED),
    received(6, 'c1', 9),
    listed(10, C1_RUNNING),
    listed(15, { s1: 'exited', c1: 'running' }),
  ];
  expect(compare([...covered, ...steps], { until: 60 })).toMatchObject({
    everMissed: ['s1 STOPPED'],
    unobservable: ['c1 STARTED before_baseline'],
  });
});
