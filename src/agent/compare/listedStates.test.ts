/*
 * Lists that are old, wrong, unreadable or say UNKNOWN, and what they prove nevertheless.
 */
import { describe, expect, test } from 'vitest';
import {
  announced,
  armed,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  compare,
  covered,
  type EventDetails,
  listed,
  listedAlike,
  opened,
  received,
  S1_RUNNING,
  seconds,
  status,
  times,
} from '../../../test/engine/timeline.ts';
import { createdPod, everMissed, ofText, runningPod } from '../../../test/engine/timelinePods.ts';

describe('lists that fail so long that events are forgotten', () => {
  const long = 20 * 60;
  const back = [listed(long, C1_RUNNING), listed(long + 5, C1_RUNNING)];
  const events = (how: EventDetails = {}) => [
    received(4, 's1', 'CREATED', how),
    received(4, 's1', 'STARTED', how),
    received(4, 'c1', 'CREATED', how),
    received(5, 'c1', 'STARTED', how),
  ];

  test('a stage that lists show after a long failure is not missed', () => {
    expect(everMissed([...covered, ...events(), ...back], { until: long + 120 })).toEqual([]);
  });

  test('a stage that lists show after a long failure is not missed although its status says when it was created', () => {
    const young = status(long + 2, 'c1', times({ created: long - 30, started: long - 29 }));
    expect(everMissed([...covered, ...back, young], { until: long + 120 })).toEqual([]);
  });

  test('a stage that lists show after a long failure is not missed where the events had no identity', () => {
    expect(everMissed([...covered, ...events({ nameless: true }), ...back], { until: long + 120 })).toEqual(
      [],
    );
  });

  test('a stage that lists show after a long failure is not missed where lists came but each had an unread item', () => {
    const unread = Array.from({ length: 190 }, (_, i) => listed(6 + i * 6, {}, { partial: true }));
    expect(everMissed([...covered, ...events(), ...unread, ...back], { until: long + 120 })).toEqual([]);
  });
});

describe('lists', () => {
  test('an answer older than an event already received is no regression', () => {
    const steps = [
      ...createdPod,
      received(5, 'c1', 'STARTED'),
      received(9.5, 'c1', 'STOPPED'),
      // Asked before the exit, answered after it.
      listed(9, C1_RUNNING, { took: 1 }),
      listed(15, C1_EXITED),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      findings: [],
      counters: { expected: 5, matched: 5 },
    });
  });

  test('an answer that lacks an id does not prove it gone where an event came while it was made', () => {
    const steps = [
      ...covered,
      received(5.5, 's1', 'CREATED'),
      received(5.6, 's1', 'STARTED'),
      listed(5, {}, { took: 1 }),
      listed(10, S1_RUNNING),
    ];
    expect(compare(steps, { until: 90 })).toMatchObject({
      findings: [],
      counters: { expected: 2, matched: 2 },
    });
  });

  test('the two calls of a relist are two moments: what happens between them belongs to the second', () => {
    // The container call lacks c1 at 7 s; it was created at 7.5, its sandbox is in the answer before.
    const steps = [
      ...covered,
      ...announced(4, 's1', 'CREATED', 'STARTED'),
      listed(5, S1_RUNNING, { took: 2 }),
      received(7.5, 'c1', 'CREATED'),
      listed(10, C1_CREATED, { took: 2 }),
    ];
    expect(everMissed(steps)).toEqual([]);
    // A session that began between the two moments of one relist does not cover the first.
    const between = [
      listed(0, {}),
      opened(1),
      received(6, 's0', 'STARTED'),
      listed(5, {}, { took: 2 }),
      listed(10, S1_RUNNING, { took: 2 }),
    ];
    expect(everMissed(between)).toEqual([]);
  });

  test('a list that is compared after newer events proves nothing new', () => {
    const steps = [
      ...createdPod,
      received(5.2, 'c1', 'STARTED'),
      received(6, 'c1', 'STOPPED'),
      received(6.5, 'c1', 'DELETED'),
      listed(5, C1_CREATED, { compared: 2 }),
      listed(10, S1_RUNNING),
    ];
    expect(compare(steps, { until: 90 }).findings).toEqual([]);
  });

  test('an id that a list lacked by mistake is not gone, and is judged when it is removed', () => {
    const steps = [...covered, listed(5, C1_RUNNING), listed(10, S1_RUNNING), listed(15, C1_RUNNING)].concat(
      ['s1 CREATED', 's1 STARTED', 'c1 CREATED', 'c1 STARTED'].map(ofText),
    );
    expect(compare(steps, { until: 90 })).toMatchObject({
      everMissed: [],
      unobservable: ['c1 DELETED listed_again'],
    });
    const gone = compare([...steps, received(17, 'c1', 'STOPPED'), listed(20, S1_RUNNING)], {
      until: 90,
    });
    expect(gone.everMissed).toEqual(['c1 DELETED']);
    // Since it was listed again, not since it was lacked.
    const window = { from: seconds(15.01), to: seconds(20.02) };
    expect(gone.findings).toContainEqual(expect.objectContaining({ kind: 'missed', window }));
  });

  test('a missed removal is resolved when the id is listed again', () => {
    const steps = [
      ...covered,
      listed(5, { c1: 'running' }),
      ...['c1 CREATED', 'c1 STARTED'].map(ofText),
      listed(20, {}),
      listed(60, { c1: 'running' }),
    ];
    expect(compare(steps, { until: 59 }).missed).toEqual(['c1 DELETED']);
    expect(compare(steps, { until: 90 })).toMatchObject({
      missed: [],
      // Nobody saw it end either.
      counters: { expected: 4, matched: 2, missed: 0, unobservable: 2 },
    });
  });

  test('a regression is recorded, and neither start nor stop is due any more', () => {
    const steps = [
      ...createdPod,
      received(5, 'c1', 'STARTED'),
      listed(6, C1_RUNNING),
      listed(10, C1_EXITED),
      listed(15, C1_RUNNING),
      listed(20, C1_EXITED),
    ];
    const outcome = compare(steps, { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.findings.map(({ kind }) => kind)).toEqual(['regression', 'unobservable']);
    expect(everMissed([...steps, listed(25, S1_RUNNING)])).toEqual(['c1 DELETED']);
  });

  test('events of a container that regressed are neither late nor out of order', () => {
    const steps = [
      ...createdPod,
      received(4.5, 'c1', 'STARTED'),
      received(8, 'c1', 'STOPPED'),
      listed(10, C1_EXITED),
      received(12, 'c1', 'STARTED'),
      listed(15, C1_RUNNING),
      received(17, 'c1', 'STARTED'),
    ];
    const { findings } = compare(steps, { until: 60 });
    expect(findings.map(({ kind }) => kind)).toEqual(['short_life', 'duplicate', 'regression']);
  });

  test('the end that went back is not due where its event turns out to be spurious', () => {
    const steps = [
      ...runningPod,
      listed(10, C1_EXITED),
      received(12, 'c1', 'STOPPED'),
      ...listedAlike(C1_RUNNING, 15, 20),
      listed(25, C1_EXITED),
      status(27, 'c1', times({ created: 4, started: 4.5, finished: 22 })),
    ];
    const { findings, counters } = compare(steps, { until: 90 });
    expect(findings.map(({ kind }) => kind)).toEqual(['regression', 'spurious']);
    expect(counters).toMatchObject({ expected: 4, matched: 4 });
  });

  test('a regression over UNKNOWN is a regression too', () => {
    const steps = [
      ...covered,
      listed(5, { c1: 'exited' }),
      listed(10, { c1: 'unknown' }),
      listed(15, { c1: 'running' }),
    ];
    expect(compare(steps, { until: 20 }).findings.map(({ kind }) => kind)).toEqual(['regression']);
  });

  test('a list that is slow or fails for a while only widens the window', () => {
    const steps = [
      ...covered,
      received(30, 's1', 'CREATED'),
      received(50, 's1', 'STARTED'),
      listed(60, S1_RUNNING),
    ];
    expect(everMissed(steps)).toEqual([]);
  });
});

describe('UNKNOWN', () => {
  test('UNKNOWN proves nothing but that the id existed', () => {
    // c1 came and ran before the stream was armed; the baseline shows it as UNKNOWN.
    const steps = [...armed, ...listedAlike({ c1: 'unknown' }, 3, 5), listed(10, { c1: 'running' })];
    expect(everMissed(steps)).toEqual([]);
  });

  test('UNKNOWN in the first list of an agent waives what came before it', () => {
    const steps = [
      opened(0.1),
      received(0.2, 's0', 'STARTED'),
      listed(1, { c1: 'unknown' }),
      listed(5, { c1: 'running' }),
    ];
    expect(everMissed(steps)).toEqual([]);
  });

  test('UNKNOWN for a while hides nothing: the stop within it is due', () => {
    const steps = [
      ...runningPod,
      listed(10, { s1: 'running', c1: 'unknown' }),
      listed(15, C1_RUNNING),
      listed(20, { s1: 'running', c1: 'unknown' }),
      listed(25, C1_EXITED),
    ];
    const { missed, findings } = compare(steps, { until: 90 });
    expect(missed).toEqual(['c1 STOPPED']);
    expect(findings[0]?.window).toEqual({ from: 15_010_000, to: 25_020_000 });
  });
});
