/*
 * Events that lists contradict: when they are spurious, and what then is due.
 */
import { describe, expect, test } from 'vitest';
import {
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  compare,
  covered,
  listed,
  listedAlike,
  received,
  S1_EXITED,
  S1_RUNNING,
  status,
  times,
} from '../../../test/engine/timeline.ts';
import { findingsOf, proofsOf, running, summaries } from '../../../test/engine/timelinePods.ts';
import type { EventType } from '../../protocol/record.ts';

describe('spurious', () => {
  const still = (...at: number[]) => at.map((each) => listed(each, C1_RUNNING));

  test('an event that two lists contradict is spurious', () => {
    expect(findingsOf([...running, received(6, 'c1', 'STOPPED'), ...still(7, 12)])).toEqual([
      'spurious c1 STOPPED lists_contradict',
    ]);
  });

  test('a spurious finding says which lists contradict the event, and what they showed', () => {
    const lists = [
      { from: 7_010_000, to: 7_020_000, shown: 'running' },
      { from: 12_010_000, to: 12_020_000, shown: 'running' },
    ];
    expect(proofsOf('spurious', [...running, received(6, 'c1', 'STOPPED'), ...still(7, 12)])).toMatchObject([
      { received: 6_000_000, lists },
    ]);
  });

  test('one list does not make an event spurious', () => {
    expect(findingsOf([...running, received(6, 'c1', 'STOPPED'), ...still(7)])).toEqual([]);
  });

  test('a list that began before the event does not contradict it', () => {
    const slow = listed(5.2, C1_RUNNING, { took: 0.7 });
    const steps = [...running, received(6, 'c1', 'STOPPED'), slow, ...still(12)];
    expect(
      findingsOf(
        steps.sort((a, b) => a.at - b.at),
        14,
      ),
    ).toEqual([]);
  });

  test('a sandbox may be listed for as long as the lead after its DELETED', () => {
    const up = (at: number) => listed(at, S1_EXITED);
    const steps = [...running.slice(0, 2), received(5, 's1', 'STOPPED'), received(6, 's1', 'DELETED')];
    expect(findingsOf([...steps, up(7), up(12), up(15), listed(20, {})])).toEqual([]);
    expect(findingsOf([...steps, up(7), up(17), up(22)])).toEqual(['spurious s1 DELETED lists_contradict']);
  });

  const stopsLater = [
    ...running,
    received(6, 'c1', 'STOPPED'),
    ...still(7, 12, 17),
    ...listedAlike(C1_EXITED, 22, 27),
  ];
  const finishedAt = (s: number) => status(25, 'c1', times({ created: 4.2, started: 5, finished: s }));

  test('a spurious event discharges nothing: what it announced is due when it happens', () => {
    expect(compare([...covered, ...stopsLater, finishedAt(20)], { until: 90 })).toMatchObject({
      missed: ['c1 STOPPED'],
    });
  });

  test('a spurious finding is resolved where the exact time says that the event was right and the lists wrong', () => {
    const outcome = compare([...covered, ...stopsLater, finishedAt(5.9)], { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    const summaries = outcome.findings.find(({ kind }) => kind === 'spurious');
    expect(outcome.records).toContainEqual(
      expect.objectContaining({ type: 'finding_resolved', findingId: summaries?.findingId }),
    );
  });

  test('an event is not spurious where its exact time is known already: the lists are wrong', () => {
    const announced = received(6, 'c1', 'STOPPED', {
      times: times({ created: 4.2, started: 5, finished: 6 }),
    });
    expect(findingsOf([...running, announced, ...still(7, 12)])).toEqual([]);
  });

  test('after a spurious event nothing is missed if nothing shows whether it or the lists were wrong', () => {
    const outcome = compare([...covered, ...stopsLater], { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.unobservable).toContain('c1 STOPPED contradicted');
  });

  test('each event that lists contradict is spurious', () => {
    const again = [received(13, 'c1', 'STOPPED'), ...still(14, 19)];
    expect(findingsOf([...running, received(6, 'c1', 'STOPPED'), ...still(7, 12), ...again])).toEqual([
      'spurious c1 STOPPED lists_contradict',
      'spurious c1 STOPPED lists_contradict',
    ]);
  });

  test('an event that came again is not spurious with the first, until lists contradict it too', () => {
    const outcome = compare(
      [
        ...covered,
        ...running,
        received(6, 'c1', 'STOPPED'),
        ...still(7),
        // It stops after this list has read it.
        listed(10, C1_RUNNING, { took: 1 }),
        received(11.5, 'c1', 'STOPPED'),
        listed(17, C1_EXITED),
      ],
      { until: 90 },
    );
    expect(summaries(outcome)).toEqual([
      'duplicate c1 STOPPED same_type_again',
      'spurious c1 STOPPED lists_contradict',
    ]);
    expect(outcome.counters).toMatchObject({ expected: 5, matched: 5 });
  });

  test('two events that came before any list are each spurious only after two lists of their own', () => {
    const spurious = (...at: number[]) => {
      const both = [received(6, 'c1', 'STOPPED'), ...still(7), received(8, 'c1', 'STOPPED'), ...still(...at)];
      return findingsOf([...running, ...both]).filter((each) => each.startsWith('spurious'));
    };
    expect(spurious(12)).toHaveLength(1);
    expect(spurious(12, 17)).toHaveLength(1);
    expect(spurious(12, 17, 22)).toHaveLength(2);
  });

  test('UNKNOWN contradicts a DELETED and no other event', () => {
    const unknown = [7, 12, 17].map((each) => listed(each, { s1: 'running', c1: 'unknown' }));
    const spurious = (type: EventType) =>
      findingsOf([...running, received(6, 'c1', type), ...unknown]).filter((each) =>
        each.startsWith('spurious'),
      );
    expect(spurious('DELETED')).toEqual(['spurious c1 DELETED lists_contradict']);
    expect(spurious('STOPPED')).toEqual([]);
  });

  test('a spurious DELETED leaves the later removal unobservable', () => {
    const steps = [...running, received(6, 'c1', 'DELETED'), ...still(7, 12), listed(17, S1_RUNNING)];
    expect(findingsOf(steps, 60)).toContain('unobservable c1 DELETED contradicted');
  });

  test('a spurious event does not prove that the id ran', () => {
    const shown = (at: number, state: 'created' | 'exited') => listed(at, { s1: 'running', c1: state });
    const steps = [
      ...running.slice(0, 3),
      received(4.5, 'c1', 'STOPPED'),
      shown(5, 'created'),
      shown(10, 'created'),
    ];
    expect(
      compare([...covered, ...steps, shown(15, 'exited'), shown(20, 'exited')], { until: 90 }),
    ).toMatchObject({ everMissed: [] });
  });

  test('a spurious event is in no counter', () => {
    const { counters } = compare([...covered, ...running, received(6, 'c1', 'STOPPED'), ...still(7, 12)], {
      until: 30,
    });
    expect(counters).toMatchObject({ expected: 4, matched: 4 });
  });

  test('an event is not spurious where its exact time confirms it within the error of the wall clock', () => {
    expect(compare([...covered, ...stopsLater, finishedAt(6.3)], { until: 90 }).everMissed).toEqual([]);
    expect(compare([...covered, ...stopsLater, finishedAt(6.6)], { until: 90 }).everMissed).toEqual([
      'c1 STOPPED',
    ]);
  });

  test('a spurious event puts nothing out of order', () => {
    const created = (at: number) => listed(at, C1_CREATED);
    const early = [...running.slice(0, 3), received(4.5, 'c1', 'STOPPED'), created(5), created(10)];
    const summaries = findingsOf([...early, received(11, 'c1', 'STARTED')]);
    expect(summaries.filter((each) => each.startsWith('out_of_order'))).toEqual([]);
  });

  test('a stage that was concluded from a spurious event is not missed', () => {
    const steps = [...running.slice(0, 3), listed(4.5, C1_CREATED), received(6, 'c1', 'STOPPED')];
    const created = (at: number) => listed(at, C1_CREATED);
    const outcome = compare([...covered, ...steps, created(7), created(60), created(65)], { until: 120 });
    expect(outcome.everMissed).toEqual([]);
    expect(summaries(outcome)).toContain('spurious c1 STOPPED lists_contradict');
  });
});
