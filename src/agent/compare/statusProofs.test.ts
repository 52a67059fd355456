/*
 * Proofs in the status of a container or sandbox, which is queried when an event is overdue.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  C1_EXITED,
  compare,
  covered,
  listed,
  received,
  S1_EXITED,
  S1_RUNNING,
  sandboxStatus,
  seconds,
  status,
  times,
} from '../../../test/engine/timeline.ts';

test('a stage that no list showed yet is missed too when its status proves it', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    received(6.2, 'c1', 'STOPPED'),
    status(9, 'c1', times({ created: 6, started: 6.1, finished: 6.2 })),
    listed(30, { c1: 'exited' }),
  ];
  expect(compare(steps, { until: 60 }).missed).toEqual(['c1 CREATED', 'c1 STARTED']);
});

test('a stage that a status shows needs no list that confirms the event which proved it first', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    received(6.2, 'c1', 'STOPPED'),
    status(9, 'c1', times({ created: 6, started: 6.1, finished: 6.2 })),
  ];
  expect(compare(steps, { until: 60 }).missed).toEqual(['c1 CREATED', 'c1 STARTED']);
});

test('an end that only a status shows is due once a list shows it', () => {
  const steps = [
    ...covered,
    listed(5, {}),
    received(6, 'c1', 'CREATED'),
    received(6.1, 'c1', 'STARTED'),
    listed(10, { c1: 'running' }),
    status(12, 'c1', times({ created: 6, started: 6.1, finished: 11 })),
    listed(15, { c1: 'exited' }),
  ];
  expect(compare(steps, { until: 14 }).pending).toBe(0);
  expect(compare(steps, { until: 60 }).missed).toEqual(['c1 STOPPED']);
});

test('a start and an end between two lists are both missed when the status proves the run', () => {
  const { missed, findings } = compare(
    [
      ...covered,
      listed(5, {}),
      ...announced(6, 's1', 'CREATED', 'STARTED'),
      received(6.5, 'c1', 'CREATED', { times: times({ created: 6.5 }) }),
      listed(10, C1_EXITED),
      status(10.5, 'c1', times({ created: 6.5, started: 7, finished: 8 })),
      listed(15, C1_EXITED),
    ],
    { until: 60 },
  );
  expect(missed).toEqual(['c1 STARTED', 'c1 STOPPED']);
  // Since the list that lacked it, not since the one that showed it exited.
  const misses = findings.filter(({ kind }) => kind === 'missed');
  expect(misses.map(({ window }) => window?.from)).toEqual([seconds(5.01), seconds(5.01)]);
});

describe('the status of a sandbox', () => {
  const listedTwice = [
    ...covered,
    listed(5, {}),
    listed(10, S1_RUNNING),
    ...announced(10.5, 's1', 'CREATED', 'STARTED'),
  ];

  test('a sandbox status has no end time: the lists around a missed STOPPED remain its proof, and the finding says so', () => {
    const steps = [
      ...listedTwice,
      listed(15, S1_EXITED),
      sandboxStatus(17.5, 's1', 'exited', 6),
      listed(20, S1_EXITED),
    ];
    const { findings, queries } = compare(steps, { until: 60 });
    expect(queries).toEqual(['s1']);
    expect(findings).toMatchObject([
      {
        kind: 'missed',
        eventType: 'STOPPED',
        occurred: null,
        window: { from: seconds(10), to: seconds(15.01) },
        proof: { statusAnswer: 'created_at_and_state_only', exactTimes: { finishedNs: '0' } },
      },
    ]);
    expect(findings[0]?.proof).not.toMatchObject({ exactTimes: { createdNs: '0' } });
  });

  test('a sandbox status proves the end before a list does, and nothing is due twice', () => {
    const steps = [...listedTwice.slice(0, -1), sandboxStatus(13, 's1', 'exited', 6), listed(15, S1_EXITED)];
    const { findings, counters } = compare(steps, { until: 60 });
    expect(findings).toMatchObject([
      { kind: 'missed', eventType: 'STARTED' },
      {
        kind: 'missed',
        eventType: 'STOPPED',
        window: { from: seconds(10), to: seconds(13) },
        proof: { evidence: 'exited in its status' },
      },
    ]);
    expect(counters).toMatchObject({ missed: 2 });
  });

  test('an exited sandbox that was never seen ready proves neither a start nor an end', () => {
    const steps = [...covered, listed(5, {}), listed(10, S1_EXITED), sandboxStatus(13, 's1', 'exited', 6)];
    expect(compare(steps, { until: 60 })).toMatchObject({ everMissed: [], pending: 0 });
  });

  test('a ready sandbox proves only what has happened', () => {
    const steps = [...listedTwice, sandboxStatus(13, 's1', 'running', 6), listed(15, S1_RUNNING)];
    expect(compare(steps, { until: 60 })).toMatchObject({ everMissed: [], unobservable: [], pending: 0 });
  });
});
