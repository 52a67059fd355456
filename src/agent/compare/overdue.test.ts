/*
 * Overdue reports: a start or stop whose event has not come, before it is judged.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  C1_EXITED,
  C1_RUNNING,
  compare,
  covered,
  listed,
  opened,
  received,
  S1_EXITED,
  seconds,
  status,
  times,
} from '../../../test/engine/timeline.ts';
import type { EvidenceRecord, RecordOf } from '../../protocol/record.ts';

const created = [...covered, ...announced(4, 's1', 'CREATED', 'STARTED'), received(4.2, 'c1', 'CREATED')];

const overdueIn = (records: readonly EvidenceRecord[]): RecordOf<'event_overdue'>[] =>
  records.filter((record) => record.type === 'event_overdue');

const runs = [received(4.3, 'c1', 'STARTED'), listed(5, C1_RUNNING)];
const exits = listed(10, C1_EXITED);

describe('a stop that is not announced', () => {
  test('an unannounced stop is reported overdue after overdueAfter, with the id of its later finding', () => {
    const { records, findings } = compare([...created, ...runs, exits], { until: 60 });
    const [overdue, ...others] = overdueIn(records);
    expect(others).toEqual([]);
    expect(overdue).toMatchObject({ containerId: 'c1', eventType: 'STOPPED', occurred: null });
    // One list showed it running, the next one that it had exited.
    expect(overdue?.window.from).toBeLessThanOrEqual(seconds(5.1));
    expect(overdue?.window.to).toBeGreaterThanOrEqual(seconds(10));
    expect(overdue?.t).toBeGreaterThanOrEqual((overdue?.window.to ?? 0) + seconds(2));
    expect(findings).toMatchObject([{ kind: 'missed', eventType: 'STOPPED', findingId: overdue?.findingId }]);
    expect(records.findIndex(({ type }) => type === 'event_overdue')).toBeLessThan(
      records.findIndex(({ type }) => type === 'finding'),
    );
  });

  test('an overdue report, a late finding and an unobservable finding of one event share one id', () => {
    const exact = { times: times({ created: 4.2, started: 4.3, finished: 7 }) };
    const late = compare([...created, ...runs, exits, received(20, 'c1', 'STOPPED', exact)], { until: 60 });
    expect(late.findings).toMatchObject([
      { kind: 'late', findingId: overdueIn(late.records)[0]?.findingId, eventType: 'STOPPED' },
    ]);
    const unknown = compare([...created, ...runs, exits, opened(20, 2)], { until: 60 });
    expect(unknown.findings).toContainEqual(
      expect.objectContaining({ kind: 'unobservable', findingId: overdueIn(unknown.records)[0]?.findingId }),
    );
  });

  test('an overdue event is reported once, and a finding after the resolution has an id of its own', () => {
    const after = received(50, 'c1', 'STOPPED');
    const { records, findings } = compare([...created, ...runs, exits, after], { until: 60 });
    expect(overdueIn(records)).toHaveLength(1);
    expect(findings.map(({ kind }) => kind)).toEqual(['missed', 'late']);
    expect(new Set(findings.map(({ findingId }) => findingId)).size).toBe(2);
  });

  test('an overdue report carries the exact time where that is known', () => {
    const exact = times({ created: 4.2, started: 4.3, finished: 7 });
    const { records } = compare([...created, ...runs, exits, status(11, 'c1', exact)], { until: 60 });
    const [overdue] = overdueIn(records);
    expect(overdue?.occurred).toBeGreaterThan(seconds(6.4));
    expect(overdue?.occurred).toBeLessThan(seconds(7.6));
  });
});

test('nothing is reported overdue where the event comes in time, nor for sandboxes, creations and removals', () => {
  const stopped = compare([...created, ...runs, exits, received(11, 'c1', 'STOPPED')], { until: 60 });
  expect(overdueIn(stopped.records)).toEqual([]);
  const others = compare(
    [
      ...created,
      ...runs,
      received(7, 'c1', 'STOPPED'),
      listed(10, C1_EXITED),
      listed(15, S1_EXITED),
      listed(45, {}),
    ],
    { until: 120 },
  );
  expect(others.missed).toContain('s1 STOPPED');
  expect(overdueIn(others.records)).toEqual([]);
});

test('overdue reports are rate limited, the others are counted, and every judgement still comes', () => {
  const ids = Array.from({ length: 300 }, (_, i) => `c${i + 1}`);
  const all = (state: 'running' | 'exited') => Object.fromEntries(ids.map((id) => [id, state]));
  const { records, counters, missed } = compare(
    [
      ...created,
      ...ids.slice(1).map((id) => received(4.2, id, 'CREATED')),
      ...ids.map((id) => received(4.3, id, 'STARTED')),
      listed(5, all('running')),
      listed(10, all('exited')),
    ],
    { until: 60 },
  );
  expect(missed).toHaveLength(300);
  expect(overdueIn(records)).toHaveLength(200);
  expect(counters.overdueSuppressed).toBe(100);
});
