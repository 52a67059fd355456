/*
 * Every kind of finding beside `missed`: when it is reported, and when it is not.
 */
import { describe, expect, test } from 'vitest';
import {
  armed,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  CONTAINERD,
  CRIO,
  clockStepped,
  compare,
  covered,
  identityOf,
  listed,
  listedAlike,
  opened,
  readerStalled,
  received,
  S1_EXITED,
  S1_RUNNING,
  status,
  streamGap,
  type TimelineOutcome,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import type { EventType } from '../../protocol/record.ts';

/** A pod whose events came in their order; its container runs from 5 s on. */
const running: readonly TimelineStep[] = [
  received(4, 's1', 'CREATED'),
  received(4.1, 's1', 'STARTED'),
  received(4.2, 'c1', 'CREATED', { times: times({ created: 4.2 }) }),
  received(5, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) }),
];

/** The findings as `<kind> <id> <type> <cause>`, in their order. */
const summaries = ({ findings }: TimelineOutcome): string[] =>
  findings.map(({ kind, containerId, eventType, cause }) =>
    [kind, containerId, eventType, cause].filter(Boolean).join(' '),
  );
/** The proofs of the findings of a kind. */
const proofsOf = (kind: string, steps: readonly TimelineStep[], settings = {}) =>
  compare([...covered, ...steps], { until: 60, ...settings })
    .findings.filter((finding) => finding.kind === kind)
    .map(({ proof }) => proof);
const findingsOf = (steps: readonly TimelineStep[], until = 30) =>
  summaries(compare([...covered, ...steps], { until }));

test('a container whose events come in time and in order has no finding', () => {
  const steps = [
    ...running,
    listed(6, C1_RUNNING),
    received(12, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 12 }) }),
    listed(13, C1_EXITED),
    received(14, 'c1', 'DELETED'),
    received(15, 's1', 'STOPPED'),
    listed(16, S1_EXITED),
    received(17, 's1', 'DELETED'),
    listed(28, {}),
  ];
  expect(findingsOf(steps, 90)).toEqual([]);
});

describe('duplicate', () => {
  test('the same event type again for an id is a duplicate', () => {
    expect(findingsOf([...running, received(6, 'c1', 'STARTED')])).toEqual([
      'duplicate c1 STARTED same_type_again',
    ]);
  });

  test('a duplicate says when the first event of its type came', () => {
    expect(proofsOf('duplicate', [...running, received(6, 'c1', 'STARTED')])).toMatchObject([
      { received: 6_000_000, firstReceived: 5_000_000 },
    ]);
  });

  test('duplicate takes precedence over late: one event has one finding', () => {
    const again = received(20, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) });
    expect(findingsOf([...running, again])).toEqual(['duplicate c1 STARTED same_type_again']);
  });

  test('a replayed event is never a duplicate', () => {
    const steps = [...running, opened(20, 2), received(20.5, 'c1', 'STARTED', { session: 2, built: 5 })];
    expect(findingsOf(steps).filter((each) => each.startsWith('duplicate'))).toEqual([]);
  });
});

describe('late', () => {
  const slow = (at: number, built: number) => [
    ...running.slice(0, 3),
    received(at, 'c1', 'STARTED', { built, times: times({ created: 4.2, started: 5 }) }),
  ];

  test('a start that is received more than the limit after its true time is late', () => {
    const { findings } = compare([...covered, ...slow(6.5, 6.4)], { until: 20 });
    expect(findings).toMatchObject([
      {
        kind: 'late',
        eventType: 'STARTED',
        cause: 'built_late',
        occurred: 5_000_000,
        lateness: 1_500_000,
        delivery: 100_000,
      },
    ]);
  });

  test('a late event is classified as built late or delivered late', () => {
    expect(findingsOf(slow(6.5, 5.1))).toEqual(['late c1 STARTED delivered_late']);
  });

  test('an event within the limit is not late', () => {
    expect(findingsOf(slow(5.9, 5.8))).toEqual([]);
  });

  test('a delay as long as the limit is not late', () => {
    expect(findingsOf(slow(6, 5.9))).toEqual([]);
    expect(findingsOf(slow(6.1, 6))).toEqual(['late c1 STARTED built_late']);
  });

  test('an event is not late where the reader was silent so long that the delay may be its own', () => {
    const silent = (from: number, at: number) => [...readerStalled(from, 20), ...slow(at, at - 0.1)];
    expect(findingsOf(silent(5.1, 6.4))).toEqual([]);
    // It had taken everything when the start was late already.
    expect(findingsOf(silent(6.4, 7.8))).toEqual(['late c1 STARTED built_late']);
  });

  test('an event is not late in a stream that no list has covered yet', () => {
    const steps = [...armed, ...slow(6.5, 6.4)];
    expect(summaries(compare(steps, { until: 20 }))).toEqual([]);
  });

  test('an event is not late where its time was read after a step that no tick had seen', () => {
    const steps = [
      ...running.slice(0, 3),
      clockStepped(9.1, -5),
      received(9.2, 'c1', 'STARTED', { times: times({ created: 4.2, started: 9.15 }, -5) }),
    ];
    expect(findingsOf(steps)).toEqual([]);
  });

  test('an event is not late by a time from before a step, however long that was known', () => {
    const own = times({ created: 4.2, started: 5 });
    const known = [...running.slice(0, 3), status(5.5, 'c1', own)];
    const later = received(9, 'c1', 'STARTED', { times: own });
    const late = (steps: readonly TimelineStep[]) =>
      findingsOf(steps).filter((each) => each.startsWith('late'));
    expect(late([...known, later])).toHaveLength(1);
    expect(late([...known, clockStepped(7, 5), later])).toEqual([]);
  });

  test('an event after its missed is late, and the miss is resolved', () => {
    const steps = [...running.slice(0, 3), ...listedAlike(C1_RUNNING, 6, 11), received(50, 'c1', 'STARTED')];
    const outcome = compare([...covered, ...steps], { until: 60 });
    expect(summaries(outcome)).toEqual([
      'missed c1 STARTED unannounced_by_list',
      'late c1 STARTED after_missed',
    ]);
    expect(outcome.missed).toEqual([]);
  });

  test('an event is not late over a stretch with a stream gap', () => {
    expect(findingsOf([...slow(8, 7.9), streamGap(7)].sort((a, b) => a.at - b.at))).toEqual([]);
  });

  test('an event is not late across a step of the wall clock', () => {
    const steps = [
      ...running.slice(0, 3),
      clockStepped(5.5, -100),
      received(9, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) }),
    ];
    expect(findingsOf(steps).filter((each) => each.startsWith('late'))).toEqual([]);
  });

  test('lateness is never negative', () => {
    const steps = [
      ...running.slice(0, 3),
      received(5, 'c1', 'STARTED', { built: 5.05, times: times({ created: 4.2, started: 5.05 }) }),
    ];
    expect(findingsOf(steps)).toEqual([]);
  });

  test('lateness and delivery of other kinds are never negative', () => {
    const ahead = { built: 6.05, times: times({ created: 4.2, started: 6.05 }) };
    const steps = [...running.slice(0, 3), received(5, 'c1', 'STARTED'), received(6, 'c1', 'STARTED', ahead)];
    expect(compare([...covered, ...steps], { until: 20 }).findings).toMatchObject([
      { kind: 'duplicate', lateness: 0, delivery: 0 },
    ]);
  });
});

describe('out_of_order', () => {
  test('an event of a lower stage after one of a higher stage is out of order', () => {
    const steps = [...running.slice(0, 3), received(5, 'c1', 'STOPPED'), received(5.1, 'c1', 'STARTED')];
    expect(findingsOf(steps)).toEqual(['out_of_order c1 STARTED after_a_later_stage']);
  });

  test('out_of_order says after which event, and whether that is a habit of the runtime', () => {
    const early = [...running.slice(0, 3), received(5, 'c1', 'STOPPED'), received(6, 'c1', 'STARTED')];
    const after = { after: 'STOPPED', afterReceived: 5_000_000 };
    expect(proofsOf('out_of_order', early)).toMatchObject([{ ...after, habitOfRuntime: true }]);
    const profile = { ...CONTAINERD, stoppedMayComeFirst: false };
    expect(proofsOf('out_of_order', early, { profile })).toMatchObject([{ ...after, habitOfRuntime: false }]);
  });

  test('late takes precedence over out_of_order, and that over stale', () => {
    const late = { times: times({ created: 4.2, started: 5 }) };
    const [stopped, started] = [received(6.4, 'c1', 'STOPPED'), received(6.5, 'c1', 'STARTED', late)];
    expect(findingsOf([...running.slice(0, 3), stopped, started])).toEqual(['late c1 STARTED built_late']);
    const steps = [
      ...running.slice(0, 3),
      listed(6, C1_EXITED),
      received(14, 'c1', 'STOPPED'),
      received(14.1, 'c1', 'STARTED', { built: 5 }),
    ];
    expect(findingsOf(steps)).toContain('out_of_order c1 STARTED after_a_later_stage');
  });

  test('an event is not out of order because of another id', () => {
    expect(findingsOf([...running, received(6, 'c1', 'STOPPED'), received(6.1, 'c2', 'CREATED')])).toEqual(
      [],
    );
  });
});

describe('stale', () => {
  const lists = [listed(6, C1_RUNNING), listed(11, C1_EXITED)];

  test('an event built before, and received long after, a list that had shown its stage passed is stale', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(14, 'c1', 'STARTED', { built: 5 }),
      received(14.1, 'c1', 'STOPPED', { built: 10 }),
    ];
    expect(findingsOf(steps)).toEqual(['stale c1 STARTED after_the_list']);
    expect(proofsOf('stale', steps)).toMatchObject([{ list: { from: 11_010_000, to: 11_020_000 } }]);
  });

  test('an event received before overdueAfter has passed since the list is not stale', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(12, 'c1', 'STARTED', { built: 5 }),
      received(12.1, 'c1', 'STOPPED', { built: 10 }),
    ];
    expect(findingsOf(steps)).toEqual([]);
  });

  test('an event built after the list is not stale', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(14, 'c1', 'STARTED', { built: 13 }),
      received(14.1, 'c1', 'STOPPED', { built: 13.1 }),
    ];
    expect(findingsOf(steps)).toEqual([]);
    // Nor when more lists show the same.
    const more = [listed(16, C1_EXITED), received(20, 'c1', 'STARTED', { built: 13 })];
    expect(findingsOf([...running.slice(0, 3), ...lists, ...more], 25)).toEqual([]);
  });

  test('an event built while the list was made is not stale', () => {
    const slow = listed(10, C1_EXITED, { took: 1 });
    const stop = received(15, 'c1', 'STOPPED', { built: 10.5 });
    const started = (built: number) => [received(14.9, 'c1', 'STARTED', { built }), stop];
    expect(findingsOf([...running.slice(0, 3), slow, ...started(11.5)])).toEqual([]);
    expect(findingsOf([...running.slice(0, 3), slow, ...started(10.9)])).toEqual([
      'stale c1 STARTED after_the_list',
    ]);
  });

  test('overdueAfter counts from the end of the list for a stale event', () => {
    const slow = listed(10, C1_EXITED, { took: 1 });
    const started = (at: number) => [
      received(at, 'c1', 'STARTED', { built: 9 }),
      received(15, 'c1', 'STOPPED'),
    ];
    expect(findingsOf([...running.slice(0, 3), slow, ...started(13.9)])).toEqual([]);
    expect(findingsOf([...running.slice(0, 3), slow, ...started(14.1)])).toEqual([
      'stale c1 STARTED after_the_list',
    ]);
  });

  test('an event is not stale over a stretch with a stream gap', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      streamGap(12),
      received(14, 'c1', 'STARTED', { built: 5 }),
    ];
    expect(findingsOf(steps, 20).filter((each) => each.startsWith('stale'))).toEqual([]);
  });
});

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

  test('what was concluded from a spurious event is not missed', () => {
    const steps = [...running.slice(0, 3), listed(4.5, C1_CREATED), received(6, 'c1', 'STOPPED')];
    const created = (at: number) => listed(at, C1_CREATED);
    const outcome = compare([...covered, ...steps, created(7), created(60), created(65)], { until: 120 });
    expect(outcome.everMissed).toEqual([]);
    expect(summaries(outcome)).toContain('spurious c1 STOPPED lists_contradict');
  });
});

describe('unannounced', () => {
  const failed = [
    ...running.slice(0, 3),
    listed(6, C1_CREATED),
    listed(11, C1_EXITED),
    status(11.5, 'c1', times({ created: 4.2, finished: 8 })),
  ];

  test('a failed start is unannounced once, and only after its event had time to come', () => {
    expect(findingsOf(failed, 40)).toEqual([]);
    expect(findingsOf(failed, 60)).toEqual(['unannounced c1 STOPPED failed_start']);
  });

  test('a failed start whose end was announced is not unannounced', () => {
    const announced = received(11.2, 'c1', 'STOPPED', { times: times({ created: 4.2, finished: 11 }) });
    expect(findingsOf([...failed, announced], 60)).toEqual([]);
  });

  test('a transition whose event the runtime never sends is unannounced', () => {
    const steps = [listed(5, S1_RUNNING), received(5.5, 's1', 'STARTED'), listed(10, S1_RUNNING)];
    const outcome = compare([...covered, ...steps], { until: 60, profile: CRIO });
    expect(summaries(outcome)).toEqual(['unannounced s1 CREATED never_sent']);
    expect(outcome.counters).toMatchObject({ expected: 1, matched: 1 });
  });

  test('nothing is unannounced by an unknown runtime', () => {
    const profile = { ...CONTAINERD, sandboxEvents: [], containerEvents: [] };
    const steps = [listed(5, S1_RUNNING), received(5.5, 's1', 'STARTED'), listed(10, S1_RUNNING)];
    expect(summaries(compare([...covered, ...steps], { until: 60, profile }))).toEqual([]);
  });

  test('nothing is unannounced over a stretch with a stream gap', () => {
    const steps = [listed(5, {}), streamGap(7), listed(10, S1_RUNNING), received(10.5, 's1', 'STARTED')];
    expect(summaries(compare([...covered, ...steps], { until: 60, profile: CRIO }))).toEqual([]);
  });

  test('what a runtime never sends is unannounced once, although a spurious event announced it', () => {
    const up = (at: number) => listed(at, S1_RUNNING);
    const steps = [
      up(5),
      received(5.5, 's1', 'STARTED'),
      // Both the list and the event are wrong.
      listed(10, {}),
      received(11, 's1', 'DELETED'),
      up(15),
      up(20),
      listed(25, {}),
    ];
    expect(summaries(compare([...covered, ...steps], { until: 90, profile: CRIO }))).toEqual([
      'unannounced s1 CREATED never_sent',
      'unannounced s1 DELETED never_sent',
      'spurious s1 DELETED lists_contradict',
      'unobservable s1 STOPPED spurious',
    ]);
  });
});

describe('short_life', () => {
  const short = ({ findings }: TimelineOutcome) => findings.filter(({ kind }) => kind === 'short_life');
  const shortLived = [
    listed(5, S1_RUNNING),
    received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }),
    received(6.2, 'c1', 'STARTED', { times: times({ created: 6, started: 6.2 }) }),
    received(6.4, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.2, finished: 6.4 }) }),
    received(6.5, 'c1', 'DELETED'),
  ];
  const sandbox = [received(4, 's1', 'CREATED'), received(4.1, 's1', 'STARTED')];

  test('a container that lived between two lists is a short life, with its duration and both lists', () => {
    const steps = [...sandbox, ...shortLived, listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      {
        cause: 'life',
        containerId: 'c1',
        proof: { lifeMinMs: 400, lifeMaxMs: 5010, listBefore: 5_020_000, listAfter: 10_010_000 },
      },
    ]);
  });

  test('a container that lived after a list which was compared later is a short life', () => {
    const [, ...events] = shortLived;
    const older = listed(5.5, S1_RUNNING, { compared: 2 });
    const steps = [...sandbox, listed(5, S1_RUNNING), ...events, older, listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'life', containerId: 'c1', proof: { listBefore: 5_520_000, listAfter: 10_010_000 } },
    ]);
  });

  test('a run that no list saw is a short life', () => {
    const steps = [...sandbox, ...shortLived.slice(0, 4), listed(10, C1_EXITED), listed(15, C1_EXITED)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'start', proof: { lifeMinMs: 200, lifeMaxMs: 200 } },
    ]);
  });

  test('an end that no list saw is a short life', () => {
    const steps = [
      ...running,
      listed(6, C1_RUNNING),
      received(7, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 7 }) }),
      received(7.3, 'c1', 'DELETED'),
      listed(11, S1_RUNNING),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      // Only the lists show when it was removed: at the latest when the second one was made.
      { cause: 'exit', proof: { lifeMinMs: 0, lifeMaxMs: 4020 } },
    ]);
  });

  test('a short life is not reported across a failed list', () => {
    const failing: TimelineStep = { at: 8, act: ({ comparison }) => comparison.listFailed() };
    const steps = [...sandbox, ...shortLived, failing, listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a short life is not reported across a list that could not be read whole', () => {
    const steps = [
      ...sandbox,
      ...shortLived,
      listed(8, S1_RUNNING, { partial: true }),
      listed(10, S1_RUNNING),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a container that a list saw before did not run unseen, even if a list lacked it since', () => {
    const steps = [...running, listed(6, C1_RUNNING), listed(11, S1_RUNNING), listed(16, C1_EXITED)];
    const summaries = short(compare([...covered, ...steps], { until: 20 }));
    expect(summaries.map(({ cause }) => cause)).toEqual(['exit']);
  });

  test('a short life is reported once although an event came again while the list was made', () => {
    const slow = listed(10, S1_RUNNING, { took: 1 });
    const steps = [...sandbox, ...shortLived, slow, received(11.5, 'c1', 'DELETED')];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toHaveLength(1);
  });

  test('a container that may have ended after the second list began is no short life', () => {
    const slow = listed(10, S1_RUNNING, { took: 1 });
    const ends = (at: number) => [...shortLived.slice(0, 4), received(at, 'c1', 'DELETED'), slow];
    expect(short(compare([...covered, ...sandbox, ...ends(10.9)], { until: 20 }))).toHaveLength(1);
    expect(short(compare([...covered, ...sandbox, ...ends(11.5)], { until: 20 }))).toEqual([]);
  });

  test('a failed start that other statuses show is no short life', () => {
    const failed = times({ created: 6, finished: 6.4 });
    const steps = [
      ...sandbox,
      listed(5, S1_RUNNING),
      received(6, 'c1', 'CREATED'),
      received(6.4, 'c1', 'STOPPED'),
      received(6.5, 'c1b', 'CREATED', { others: [{ id: 'c1', state: 'exited', times: failed }] }),
      listed(10, { s1: 'running', c1: 'exited', c1b: 'created' }),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a short life is not reported after a stream gap while the list before was made', () => {
    const [, ...events] = shortLived;
    const slow = listed(4.2, S1_RUNNING, { took: 0.7 });
    const pause = { ...streamGap(5.5), at: 5.55 };
    const steps = [...sandbox, slow, pause, ...events, listed(10, S1_RUNNING)];
    const paused = steps.filter((step) => step !== pause);
    expect(short(compare([...covered, ...paused], { until: 20 }))).toHaveLength(1);
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('a time from after a step that no tick had seen does not bound a short life', () => {
    const steps = [
      ...sandbox,
      ...shortLived.slice(0, 3),
      clockStepped(6.3, -5),
      received(6.4, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.2, finished: 6.4 - 5 }) }),
      listed(6.42, C1_EXITED),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'start', proof: { lifeMinMs: 0, lifeMaxMs: 1430 } },
    ]);
  });

  test('a short life is not reported where the stream was not covered since the list before', () => {
    const steps = [...sandbox, ...shortLived, streamGap(7), listed(10, S1_RUNNING)];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });
});

describe('duplicate_container', () => {
  /** c1 and c1b are containers of one pod and one name. */
  const both = (at: number) => listed(at, { s1: 'running', c1: 'running', c1b: 'running' });
  const duplicates = (steps: readonly TimelineStep[]) =>
    findingsOf(steps, 25).filter((each) => each.startsWith('duplicate_container'));

  test('two containers of one name that two lists in a row show running are duplicates, reported once', () => {
    expect(identityOf('c1b')).toMatchObject({
      podUid: identityOf('c1').podUid,
      container: identityOf('c1').container,
    });
    expect(duplicates([both(10), both(15), both(20)])).toEqual([
      'duplicate_container c1 both_listed_running',
    ]);
  });

  test('one list proves no duplicates: its items are read one after the other', () => {
    expect(duplicates([both(10), listed(15, { s1: 'running', c1b: 'running' })])).toEqual([]);
  });

  test('a container that ran after the other is no duplicate', () => {
    const steps = [...listedAlike({ s1: 'running', c1: 'exited', c1b: 'running' }, 10, 15)];
    expect(duplicates(steps)).toEqual([]);
  });

  const exits = (started: number) => [
    listed(10, { s1: 'running', c1: 'exited', c1b: 'exited' }),
    status(11, 'c1', times({ created: 4, started: 5, finished: 8 })),
    status(11.2, 'c1b', times({ created: 6, started, finished: 9 })),
    listed(15, { s1: 'running', c1: 'exited', c1b: 'exited' }),
  ];

  test('containers whose exact times overlap are duplicates, although no list saw both', () => {
    expect(duplicates(exits(7))).toEqual(['duplicate_container c1 times_overlap']);
  });

  test('a duplicate finding says when lists showed each running, and the exact times of both', () => {
    expect(proofsOf('duplicate_container', [both(10), both(15)])).toMatchObject([
      {
        other: 'c1b',
        listedRunning: [{ from: 10_010_000 }, { from: 15_010_000 }],
        listedRunningOfOther: [{ from: 10_010_000 }, { from: 15_010_000 }],
      },
    ]);
    expect(proofsOf('duplicate_container', exits(7))).toMatchObject([
      { exactTimes: { exitCode: 0 }, exactTimesOfOther: { exitCode: 0 }, listedRunning: [null, null] },
    ]);
  });

  /** c1 runs all the time; c1b comes and goes between two lists. */
  const beside = (started: number, finished: number) => [
    listed(10, C1_RUNNING),
    received(14, 'c1b', 'STOPPED', { times: times({ created: 11, started, finished }) }),
    listed(15, C1_RUNNING),
  ];

  test('a container that ran while two lists show another running is its duplicate', () => {
    expect(duplicates(beside(12, 13.9))).toEqual(['duplicate_container c1 times_overlap']);
    expect(duplicates(beside(13.5, 13.9))).toEqual([]);
  });

  test('a duplicate finding says when both ran', () => {
    expect(proofsOf('duplicate_container', beside(12, 13.9))).toMatchObject([
      { together: { from: 12_000_000, to: 13_900_000 } },
    ]);
  });

  const onlySecond = (at: number) => listed(at, { s1: 'running', c1: 'exited', c1b: 'running' });
  /** c1 ends at 11, and c1b starts at 12.05; the clock is set back in between, and no tick has seen that yet. */
  const steppedBetween = [
    ...running,
    listed(6, C1_RUNNING),
    received(11.1, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 11 }) }),
    clockStepped(12.01, -5),
    received(12.06, 'c1b', 'STARTED', { times: times({ created: 12.02, started: 12.05 }, -5) }),
  ];

  test('a container that ran after the other is no duplicate where the clock was set back before any tick', () => {
    expect(duplicates([...steppedBetween, onlySecond(12.1), onlySecond(17)])).toEqual([]);
  });

  test('a duplicate that a clock step took back is reported by the next list, where it still holds', () => {
    const up = (at: number) => listed(at, C1_RUNNING);
    const [before, ended] = beside(12, 13.9);
    const steps = [...running, before, ended, clockStepped(15.01, -5), up(15.05)].filter(
      (step) => step !== undefined,
    );
    expect(duplicates(steps)).toEqual([]);
    expect(duplicates([...steps, up(20)])).toEqual(['duplicate_container c1 times_overlap']);
  });

  test('a container whose times lay ahead, by a clock set back before the agent started, is no duplicate', () => {
    const old = times({ created: 90, started: 100, finished: 200 });
    const now = (at: number) => listed(at, { s1: 'running', c1b: 'running' });
    const steps = [
      received(5, 'c1', 'STOPPED', { times: old }),
      received(105.5, 'c1b', 'STARTED', { times: times({ created: 104, started: 105 }) }),
      ...[110, 160, 210].map(now),
      received(250, 'c1', 'DELETED', { times: old }),
      now(260),
    ];
    const { findings } = compare([...covered, ...steps], { until: 280 });
    expect(findings.filter(({ kind }) => kind === 'duplicate_container')).toEqual([]);
  });

  test('a container that had stopped before the other started is no duplicate', () => {
    const [before, ended] = beside(12, 13.9);
    const steps = [before, ended, listed(15, C1_EXITED)].filter((step) => step !== undefined);
    expect(duplicates(steps)).toEqual([]);
  });

  test('a container that went back to running is no duplicate, as it may not have run all the time', () => {
    const steps = [listed(5, C1_RUNNING), listed(6, C1_EXITED), ...beside(12, 13.9)];
    expect(duplicates(steps)).toEqual([]);
  });

  test('exact times that overlap within the error of the wall clock prove no duplicates', () => {
    expect(duplicates(exits(7.4))).toHaveLength(1);
    expect(duplicates(exits(7.6))).toEqual([]);
  });

  test('two ready sandboxes of one pod are duplicates', () => {
    const ready = (at: number) => listed(at, { s1: 'running', s1b: 'running' });
    expect(duplicates([ready(10), ready(15)])).toEqual(['duplicate_container s1 both_listed_running']);
  });
});

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

test('a miss whose true time lies long before the lists noticed has the cause runtime_state_late', () => {
  const finished = (at: number) => [
    ...running,
    ...listedAlike(C1_RUNNING, 6, 11),
    listed(16, C1_EXITED),
    status(19, 'c1', times({ created: 4.2, started: 5, finished: at })),
  ];
  expect(findingsOf(finished(7), 60)).toEqual(['missed c1 STOPPED runtime_state_late']);
  // Not where they noticed before the event was overdue.
  expect(findingsOf(finished(10), 60)).toEqual(['missed c1 STOPPED unannounced_by_list']);
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

  test('a STOPPED without a status proves no run where a failed start may be announced', () => {
    const profile = { ...CONTAINERD, failedStartsUnannounced: false };
    expect(summaries(compare([...covered, ...ended], { until: 60, profile }))).toEqual([]);
  });
});

test('a regression says which lists showed it exited and running', () => {
  const steps = [
    ...running,
    listed(6, C1_RUNNING),
    ...listedAlike(C1_EXITED, 11, 16),
    listed(21, C1_RUNNING),
  ];
  expect(proofsOf('regression', steps)).toMatchObject([
    { listedExited: { from: 11_010_000 }, listedRunning: { from: 21_010_000 } },
  ]);
});

test('a second regression says which list showed it exited that time, not one that lacked it', () => {
  const up = (at: number) => listed(at, C1_RUNNING);
  const down = (at: number) => listed(at, C1_EXITED);
  const steps = [...running, up(6), listed(8, S1_RUNNING), down(11), up(16), down(21), down(26), up(31)];
  expect(proofsOf('regression', steps)).toMatchObject([
    { listedExited: { from: 11_010_000 }, listedRunning: { from: 16_010_000 } },
    { listedExited: { from: 21_010_000 }, listedRunning: { from: 31_010_000 } },
  ]);
});
