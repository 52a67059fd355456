/*
 * Every kind of finding beside `missed`: when it is told, and when it is not.
 */
import { describe, expect, test } from 'vitest';
import {
  CONTAINERD,
  CRIO,
  clockStepped,
  compare,
  identityOf,
  listed,
  opened,
  readerStalled,
  received,
  status,
  streamGap,
  type TimelineOutcome,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import type { EventType } from '../../protocol/record.ts';

/** A stream that is covered from the list at 3 s on. */
const covered: readonly TimelineStep[] = [
  listed(0, {}),
  opened(1),
  received(2, 's0', 'STARTED', { built: 1.9 }),
  listed(3, {}),
];
/** A pod whose events came in their order; its container runs from 5 s on. */
const running: readonly TimelineStep[] = [
  received(4, 's1', 'CREATED'),
  received(4.1, 's1', 'STARTED'),
  received(4.2, 'c1', 'CREATED', { times: times({ created: 4.2 }) }),
  received(5, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) }),
];

/** The findings as `<verdict> <id> <type> <cause>`, in their order. */
const told = ({ findings }: TimelineOutcome): string[] =>
  findings.map(({ kind: verdict, containerId: id, eventType: type, cause }) =>
    [verdict, id, type, cause].filter(Boolean).join(' '),
  );
/** What the findings of a kind rest on. */
const proofsOf = (kind: string, steps: readonly TimelineStep[], settings = {}) =>
  compare([...covered, ...steps], { until: 60, ...settings })
    .findings.filter(({ kind: verdict }) => verdict === kind)
    .map(({ proof }) => proof);
const of = (steps: readonly TimelineStep[], until = 30) => told(compare([...covered, ...steps], { until }));

test('a life whose events come in time and order is told by no finding', () => {
  const steps = [
    ...running,
    listed(6, { s1: 'running', c1: 'running' }),
    received(12, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 12 }) }),
    listed(13, { s1: 'running', c1: 'exited' }),
    received(14, 'c1', 'DELETED'),
    received(15, 's1', 'STOPPED'),
    listed(16, { s1: 'exited' }),
    received(17, 's1', 'DELETED'),
    listed(28, {}),
  ];
  expect(of(steps, 90)).toEqual([]);
});

describe('duplicate', () => {
  test('the same type again for an id', () => {
    expect(of([...running, received(6, 'c1', 'STARTED')])).toEqual(['duplicate c1 STARTED same_type_again']);
  });

  test('says when the same came first', () => {
    expect(proofsOf('duplicate', [...running, received(6, 'c1', 'STARTED')])).toMatchObject([
      { received: 6_000_000, firstReceived: 5_000_000 },
    ]);
  });

  test('comes before late: one event is one finding', () => {
    const again = received(20, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) });
    expect(of([...running, again])).toEqual(['duplicate c1 STARTED same_type_again']);
  });

  test('is not told of a replayed event', () => {
    const steps = [...running, opened(20, 2), received(20.5, 'c1', 'STARTED', { session: 2, built: 5 })];
    expect(of(steps).filter((each) => each.startsWith('duplicate'))).toEqual([]);
  });
});

describe('late', () => {
  const slow = (at: number, built: number) => [
    ...running.slice(0, 3),
    received(at, 'c1', 'STARTED', { built, times: times({ created: 4.2, started: 5 }) }),
  ];

  test('a start that is received more than the limit after its true time', () => {
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

  test('says whether it was built late or delivered late', () => {
    expect(of(slow(6.5, 5.1))).toEqual(['late c1 STARTED delivered_late']);
  });

  test('is not told within the limit', () => {
    expect(of(slow(5.9, 5.8))).toEqual([]);
  });

  test('is not told of a delay that is as long as the limit', () => {
    expect(of(slow(6, 5.9))).toEqual([]);
    expect(of(slow(6.1, 6))).toEqual(['late c1 STARTED built_late']);
  });

  test('is not told where the reader was silent for so long that it may have been its delay', () => {
    const silent = (from: number, at: number) => [...readerStalled(from, 20), ...slow(at, at - 0.1)];
    expect(of(silent(5.1, 6.4))).toEqual([]);
    // It had taken everything when the start was late already.
    expect(of(silent(6.4, 7.8))).toEqual(['late c1 STARTED built_late']);
  });

  test('is not told of a stream that no list has covered yet', () => {
    const steps = [listed(0, {}), opened(1), received(2, 's0', 'STARTED'), ...slow(6.5, 6.4)];
    expect(told(compare(steps, { until: 20 }))).toEqual([]);
  });

  test('is not told where the time was read after a step that no tick had seen', () => {
    const steps = [
      ...running.slice(0, 3),
      clockStepped(9.1, -5),
      received(9.2, 'c1', 'STARTED', { times: times({ created: 4.2, started: 9.15 }, -5) }),
    ];
    expect(of(steps)).toEqual([]);
  });

  test('is not told of a time from before a step, however long it was known', () => {
    const own = times({ created: 4.2, started: 5 });
    const known = [...running.slice(0, 3), status(5.5, 'c1', own)];
    const later = received(9, 'c1', 'STARTED', { times: own });
    const late = (steps: readonly TimelineStep[]) => of(steps).filter((each) => each.startsWith('late'));
    expect(late([...known, later])).toHaveLength(1);
    expect(late([...known, clockStepped(7, 5), later])).toEqual([]);
  });

  test('an event after its missed, which is resolved', () => {
    const steps = [
      ...running.slice(0, 3),
      listed(6, { s1: 'running', c1: 'running' }),
      listed(11, { s1: 'running', c1: 'running' }),
      received(50, 'c1', 'STARTED'),
    ];
    const outcome = compare([...covered, ...steps], { until: 60 });
    expect(told(outcome)).toEqual(['missed c1 STARTED unannounced_by_list', 'late c1 STARTED after_missed']);
    expect(outcome.missed).toEqual([]);
  });

  test('is not told of a stretch that we did not watch ourselves', () => {
    expect(of([...slow(8, 7.9), streamGap(7)].sort((a, b) => a.at - b.at))).toEqual([]);
  });

  test('is not told across a step of the wall clock', () => {
    const steps = [
      ...running.slice(0, 3),
      clockStepped(5.5, -100),
      received(9, 'c1', 'STARTED', { times: times({ created: 4.2, started: 5 }) }),
    ];
    expect(of(steps).filter((each) => each.startsWith('late'))).toEqual([]);
  });

  test('is never negative', () => {
    const steps = [
      ...running.slice(0, 3),
      received(5, 'c1', 'STARTED', { built: 5.05, times: times({ created: 4.2, started: 5.05 }) }),
    ];
    expect(of(steps)).toEqual([]);
  });

  test('nor is what is told of another kind', () => {
    const ahead = { built: 6.05, times: times({ created: 4.2, started: 6.05 }) };
    const steps = [...running.slice(0, 3), received(5, 'c1', 'STARTED'), received(6, 'c1', 'STARTED', ahead)];
    expect(compare([...covered, ...steps], { until: 20 }).findings).toMatchObject([
      { kind: 'duplicate', lateness: 0, delivery: 0 },
    ]);
  });
});

describe('out_of_order', () => {
  test('an event of a lower stage after one of a higher stage', () => {
    const steps = [...running.slice(0, 3), received(5, 'c1', 'STOPPED'), received(5.1, 'c1', 'STARTED')];
    expect(of(steps)).toEqual(['out_of_order c1 STARTED after_a_later_stage']);
  });

  test('says after which, and where it is a habit of the runtime', () => {
    const early = [...running.slice(0, 3), received(5, 'c1', 'STOPPED'), received(6, 'c1', 'STARTED')];
    const after = { after: 'STOPPED', afterReceived: 5_000_000 };
    expect(proofsOf('out_of_order', early)).toMatchObject([{ ...after, habitOfRuntime: true }]);
    const profile = { ...CONTAINERD, stoppedMayComeFirst: false };
    expect(proofsOf('out_of_order', early, { profile })).toMatchObject([{ ...after, habitOfRuntime: false }]);
  });

  test('comes after late, and before stale', () => {
    const late = { times: times({ created: 4.2, started: 5 }) };
    const [stopped, started] = [received(6.4, 'c1', 'STOPPED'), received(6.5, 'c1', 'STARTED', late)];
    expect(of([...running.slice(0, 3), stopped, started])).toEqual(['late c1 STARTED built_late']);
    const steps = [
      ...running.slice(0, 3),
      listed(6, { s1: 'running', c1: 'exited' }),
      received(14, 'c1', 'STOPPED'),
      received(14.1, 'c1', 'STARTED', { built: 5 }),
    ];
    expect(of(steps)).toContain('out_of_order c1 STARTED after_a_later_stage');
  });

  test('is not told of another id', () => {
    expect(of([...running, received(6, 'c1', 'STOPPED'), received(6.1, 'c2', 'CREATED')])).toEqual([]);
  });
});

describe('stale', () => {
  const lists = [listed(6, { s1: 'running', c1: 'running' }), listed(11, { s1: 'running', c1: 'exited' })];

  test('built before, and received more than the grace after, a list that had shown its stage passed', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(14, 'c1', 'STARTED', { built: 5 }),
      received(14.1, 'c1', 'STOPPED', { built: 10 }),
    ];
    expect(of(steps)).toEqual(['stale c1 STARTED after_the_list']);
    expect(proofsOf('stale', steps)).toMatchObject([{ list: { from: 11_010_000, to: 11_020_000 } }]);
  });

  test('is not told within the grace', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(12, 'c1', 'STARTED', { built: 5 }),
      received(12.1, 'c1', 'STOPPED', { built: 10 }),
    ];
    expect(of(steps)).toEqual([]);
  });

  test('is not told of an event that was built after the list', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      received(14, 'c1', 'STARTED', { built: 13 }),
      received(14.1, 'c1', 'STOPPED', { built: 13.1 }),
    ];
    expect(of(steps)).toEqual([]);
    // Nor when more lists show the same.
    const more = [listed(16, { s1: 'running', c1: 'exited' }), received(20, 'c1', 'STARTED', { built: 13 })];
    expect(of([...running.slice(0, 3), ...lists, ...more], 25)).toEqual([]);
  });

  test('is not told of an event that was built while the list was made', () => {
    const slow = listed(10, { s1: 'running', c1: 'exited' }, { took: 1 });
    const stop = received(15, 'c1', 'STOPPED', { built: 10.5 });
    const started = (built: number) => [received(14.9, 'c1', 'STARTED', { built }), stop];
    expect(of([...running.slice(0, 3), slow, ...started(11.5)])).toEqual([]);
    expect(of([...running.slice(0, 3), slow, ...started(10.9)])).toEqual(['stale c1 STARTED after_the_list']);
  });

  test('counts the grace from the end of the list', () => {
    const slow = listed(10, { s1: 'running', c1: 'exited' }, { took: 1 });
    const started = (at: number) => [
      received(at, 'c1', 'STARTED', { built: 9 }),
      received(15, 'c1', 'STOPPED'),
    ];
    expect(of([...running.slice(0, 3), slow, ...started(13.9)])).toEqual([]);
    expect(of([...running.slice(0, 3), slow, ...started(14.1)])).toEqual(['stale c1 STARTED after_the_list']);
  });

  test('is not told of a stretch that we did not watch ourselves', () => {
    const steps = [
      ...running.slice(0, 3),
      ...lists,
      streamGap(12),
      received(14, 'c1', 'STARTED', { built: 5 }),
    ];
    expect(of(steps, 20).filter((each) => each.startsWith('stale'))).toEqual([]);
  });
});

describe('spurious', () => {
  const still = (...at: number[]) => at.map((each) => listed(each, { s1: 'running', c1: 'running' }));

  test('two lists contradict it', () => {
    expect(of([...running, received(6, 'c1', 'STOPPED'), ...still(7, 12)])).toEqual([
      'spurious c1 STOPPED lists_contradict',
    ]);
  });

  test('says which, and what they showed', () => {
    const lists = [
      { from: 7_010_000, to: 7_020_000, shown: 'running' },
      { from: 12_010_000, to: 12_020_000, shown: 'running' },
    ];
    expect(proofsOf('spurious', [...running, received(6, 'c1', 'STOPPED'), ...still(7, 12)])).toMatchObject([
      { received: 6_000_000, lists },
    ]);
  });

  test('one list does not', () => {
    expect(of([...running, received(6, 'c1', 'STOPPED'), ...still(7)])).toEqual([]);
  });

  test('a list that was begun before it does not', () => {
    const slow = listed(5.2, { s1: 'running', c1: 'running' }, { took: 0.7 });
    const steps = [...running, received(6, 'c1', 'STOPPED'), slow, ...still(12)];
    expect(
      of(
        steps.sort((a, b) => a.at - b.at),
        14,
      ),
    ).toEqual([]);
  });

  test('a sandbox may be listed for as long as the lead after its DELETED', () => {
    const up = (at: number) => listed(at, { s1: 'exited' });
    const steps = [...running.slice(0, 2), received(5, 's1', 'STOPPED'), received(6, 's1', 'DELETED')];
    expect(of([...steps, up(7), up(12), up(15), listed(20, {})])).toEqual([]);
    expect(of([...steps, up(7), up(17), up(22)])).toEqual(['spurious s1 DELETED lists_contradict']);
  });

  const stopsLater = [
    ...running,
    received(6, 'c1', 'STOPPED'),
    ...still(7, 12, 17),
    listed(22, { s1: 'running', c1: 'exited' }),
    listed(27, { s1: 'running', c1: 'exited' }),
  ];
  const finishedAt = (s: number) => status(25, 'c1', times({ created: 4.2, started: 5, finished: s }));

  test('discharges nothing: what it announced is due when it happens', () => {
    const outcome = compare([...covered, ...stopsLater, finishedAt(20)], { until: 90 });
    expect(outcome.missed).toEqual(['c1 STOPPED']);
  });

  test('is taken back where the exact time says that the event was right and the lists were not', () => {
    const outcome = compare([...covered, ...stopsLater, finishedAt(5.9)], { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    const told = outcome.findings.find(({ kind }) => kind === 'spurious');
    expect(outcome.records).toContainEqual(
      expect.objectContaining({ type: 'finding_resolved', findingId: told?.findingId }),
    );
  });

  test('is not told where the exact time is known already: it is the lists that are wrong', () => {
    const said = received(6, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 6 }) });
    expect(of([...running, said, ...still(7, 12)])).toEqual([]);
  });

  test('leaves nobody to accuse where nothing tells which of both was wrong', () => {
    const outcome = compare([...covered, ...stopsLater], { until: 90 });
    expect(outcome.everMissed).toEqual([]);
    expect(outcome.unobservable).toContain('c1 STOPPED contradicted');
  });

  test('is told of each event that is contradicted', () => {
    const again = [received(13, 'c1', 'STOPPED'), ...still(14, 19)];
    expect(of([...running, received(6, 'c1', 'STOPPED'), ...still(7, 12), ...again])).toEqual([
      'spurious c1 STOPPED lists_contradict',
      'spurious c1 STOPPED lists_contradict',
    ]);
  });

  test('is not what was said again, until lists contradict that too', () => {
    const outcome = compare(
      [
        ...covered,
        ...running,
        received(6, 'c1', 'STOPPED'),
        ...still(7),
        // It stops after this list has read it.
        listed(10, { s1: 'running', c1: 'running' }, { took: 1 }),
        received(11.5, 'c1', 'STOPPED'),
        listed(17, { s1: 'running', c1: 'exited' }),
      ],
      { until: 90 },
    );
    expect(told(outcome)).toEqual([
      'duplicate c1 STOPPED same_type_again',
      'spurious c1 STOPPED lists_contradict',
    ]);
    expect(outcome.counters).toMatchObject({ expected: 5, matched: 5 });
  });

  test('is each of two that were said while nothing was known of either, after two lists of its own', () => {
    const spurious = (...at: number[]) => {
      const both = [received(6, 'c1', 'STOPPED'), ...still(7), received(8, 'c1', 'STOPPED'), ...still(...at)];
      return of([...running, ...both]).filter((each) => each.startsWith('spurious'));
    };
    expect(spurious(12)).toHaveLength(1);
    expect(spurious(12, 17)).toHaveLength(1);
    expect(spurious(12, 17, 22)).toHaveLength(2);
  });

  test('is a DELETED that UNKNOWN contradicts, and nothing else', () => {
    const unknown = [7, 12, 17].map((each) => listed(each, { s1: 'running', c1: 'unknown' }));
    const spurious = (type: EventType) =>
      of([...running, received(6, 'c1', type), ...unknown]).filter((each) => each.startsWith('spurious'));
    expect(spurious('DELETED')).toEqual(['spurious c1 DELETED lists_contradict']);
    expect(spurious('STOPPED')).toEqual([]);
  });

  test('says nothing of the end: that it is gone is noticed', () => {
    const steps = [...running, received(6, 'c1', 'DELETED'), ...still(7, 12), listed(17, { s1: 'running' })];
    expect(of(steps, 60)).toContain('unobservable c1 DELETED contradicted');
  });

  test('does not say that it ran', () => {
    const shown = (at: number, state: 'created' | 'exited') => listed(at, { s1: 'running', c1: state });
    const steps = [
      ...running.slice(0, 3),
      received(4.5, 'c1', 'STOPPED'),
      shown(5, 'created'),
      shown(10, 'created'),
    ];
    const outcome = compare([...covered, ...steps, shown(15, 'exited'), shown(20, 'exited')], { until: 90 });
    expect(outcome.everMissed).toEqual([]);
  });

  test('is in no figure', () => {
    const { counters } = compare([...covered, ...running, received(6, 'c1', 'STOPPED'), ...still(7, 12)], {
      until: 30,
    });
    expect(counters).toMatchObject({ expected: 4, matched: 4 });
  });

  test('is not what its exact time bears out, within what the wall clock is trusted with', () => {
    expect(compare([...covered, ...stopsLater, finishedAt(6.3)], { until: 90 }).everMissed).toEqual([]);
    expect(compare([...covered, ...stopsLater, finishedAt(6.6)], { until: 90 }).everMissed).toEqual([
      'c1 STOPPED',
    ]);
  });

  test('puts nothing out of order', () => {
    const created = (at: number) => listed(at, { s1: 'running', c1: 'created' });
    const early = [...running.slice(0, 3), received(4.5, 'c1', 'STOPPED'), created(5), created(10)];
    const told = of([...early, received(11, 'c1', 'STARTED')]);
    expect(told.filter((each) => each.startsWith('out_of_order'))).toEqual([]);
  });

  test('proves nothing: what was concluded from it is nobody’s miss', () => {
    const steps = [
      ...running.slice(0, 3),
      listed(4.5, { s1: 'running', c1: 'created' }),
      received(6, 'c1', 'STOPPED'),
    ];
    const created = (at: number) => listed(at, { s1: 'running', c1: 'created' });
    const outcome = compare([...covered, ...steps, created(7), created(60), created(65)], { until: 120 });
    expect(outcome.everMissed).toEqual([]);
    expect(told(outcome)).toContain('spurious c1 STOPPED lists_contradict');
  });
});

describe('unannounced', () => {
  const failed = [
    ...running.slice(0, 3),
    listed(6, { s1: 'running', c1: 'created' }),
    listed(11, { s1: 'running', c1: 'exited' }),
    status(11.5, 'c1', times({ created: 4.2, finished: 8 })),
  ];

  test('a start that failed, once, and only when its event had the time to come', () => {
    expect(of(failed, 40)).toEqual([]);
    expect(of(failed, 60)).toEqual(['unannounced c1 STOPPED failed_start']);
  });

  test('is not told where its end was announced all the same', () => {
    const said = received(11.2, 'c1', 'STOPPED', { times: times({ created: 4.2, finished: 11 }) });
    expect(of([...failed, said], 60)).toEqual([]);
  });

  test('what a runtime never sends', () => {
    const steps = [
      listed(5, { s1: 'running' }),
      received(5.5, 's1', 'STARTED'),
      listed(10, { s1: 'running' }),
    ];
    const outcome = compare([...covered, ...steps], { until: 60, profile: CRIO });
    expect(told(outcome)).toEqual(['unannounced s1 CREATED never_sent']);
    expect(outcome.counters).toMatchObject({ expected: 1, matched: 1 });
  });

  test('is not told of a runtime that nothing is known of', () => {
    const profile = { ...CONTAINERD, sandboxEvents: [], containerEvents: [] };
    const steps = [
      listed(5, { s1: 'running' }),
      received(5.5, 's1', 'STARTED'),
      listed(10, { s1: 'running' }),
    ];
    expect(told(compare([...covered, ...steps], { until: 60, profile }))).toEqual([]);
  });

  test('what a runtime never sends is not told of a stretch that we did not watch', () => {
    const steps = [
      listed(5, {}),
      streamGap(7),
      listed(10, { s1: 'running' }),
      received(10.5, 's1', 'STARTED'),
    ];
    expect(told(compare([...covered, ...steps], { until: 60, profile: CRIO }))).toEqual([]);
  });

  test('what a runtime never sends, once, although an event said it that lists contradict', () => {
    const up = (at: number) => listed(at, { s1: 'running' });
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
    expect(told(compare([...covered, ...steps], { until: 90, profile: CRIO }))).toEqual([
      'unannounced s1 CREATED never_sent',
      'unannounced s1 DELETED never_sent',
      'spurious s1 DELETED lists_contradict',
      'unobservable s1 STOPPED spurious',
    ]);
  });
});

describe('short_life', () => {
  const short = ({ findings }: TimelineOutcome) => findings.filter(({ kind }) => kind === 'short_life');
  const life = [
    listed(5, { s1: 'running' }),
    received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }),
    received(6.2, 'c1', 'STARTED', { times: times({ created: 6, started: 6.2 }) }),
    received(6.4, 'c1', 'STOPPED', { times: times({ created: 6, started: 6.2, finished: 6.4 }) }),
    received(6.5, 'c1', 'DELETED'),
  ];
  const sandbox = [received(4, 's1', 'CREATED'), received(4.1, 's1', 'STARTED')];

  test('a whole life between two lists, with its length and both lists', () => {
    const steps = [...sandbox, ...life, listed(10, { s1: 'running' })];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      {
        cause: 'life',
        containerId: 'c1',
        proof: { lifeMinMs: 400, lifeMaxMs: 5010, listBefore: 5_020_000, listAfter: 10_010_000 },
      },
    ]);
  });

  test('a run that no list saw', () => {
    const steps = [
      ...sandbox,
      ...life.slice(0, 4),
      listed(10, { s1: 'running', c1: 'exited' }),
      listed(15, { s1: 'running', c1: 'exited' }),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      { cause: 'start', proof: { lifeMinMs: 200, lifeMaxMs: 200 } },
    ]);
  });

  test('an end that no list saw', () => {
    const steps = [
      ...running,
      listed(6, { s1: 'running', c1: 'running' }),
      received(7, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 7 }) }),
      received(7.3, 'c1', 'DELETED'),
      listed(11, { s1: 'running' }),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toMatchObject([
      // When it was removed only the lists can tell: until the second of them had been made.
      { cause: 'exit', proof: { lifeMinMs: 0, lifeMaxMs: 4020 } },
    ]);
  });

  test('is not told where a list failed in between', () => {
    const failing: TimelineStep = { at: 8, act: ({ comparison }) => comparison.listFailed() };
    const steps = [...sandbox, ...life, failing, listed(10, { s1: 'running' })];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('is not told where a list in between could not be read whole', () => {
    const steps = [
      ...sandbox,
      ...life,
      listed(8, { s1: 'running' }, { partial: true }),
      listed(10, { s1: 'running' }),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('is no run of what a list saw before, were it lacked by one since', () => {
    const steps = [
      ...running,
      listed(6, { s1: 'running', c1: 'running' }),
      listed(11, { s1: 'running' }),
      listed(16, { s1: 'running', c1: 'exited' }),
    ];
    const told = short(compare([...covered, ...steps], { until: 20 }));
    expect(told.map(({ cause }) => cause)).toEqual(['exit']);
  });

  test('is told once although an event of it came again while the list was made', () => {
    const slow = listed(10, { s1: 'running' }, { took: 1 });
    const steps = [...sandbox, ...life, slow, received(11.5, 'c1', 'DELETED')];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toHaveLength(1);
  });

  test('is not told of a life that was not over for sure when the second list was begun', () => {
    const slow = listed(10, { s1: 'running' }, { took: 1 });
    const ends = (at: number) => [...life.slice(0, 4), received(at, 'c1', 'DELETED'), slow];
    expect(short(compare([...covered, ...sandbox, ...ends(10.9)], { until: 20 }))).toHaveLength(1);
    expect(short(compare([...covered, ...sandbox, ...ends(11.5)], { until: 20 }))).toEqual([]);
  });

  test('is not told of a start that failed, when others had said so', () => {
    const failed = times({ created: 6, finished: 6.4 });
    const steps = [
      ...sandbox,
      listed(5, { s1: 'running' }),
      received(6, 'c1', 'CREATED'),
      received(6.4, 'c1', 'STOPPED'),
      received(6.5, 'c1b', 'CREATED', { others: [{ id: 'c1', state: 'exited', times: failed }] }),
      listed(10, { s1: 'running', c1: 'exited', c1b: 'created' }),
    ];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('is not told where we paused while the list before was made', () => {
    const [, ...events] = life;
    const slow = listed(4.2, { s1: 'running' }, { took: 0.7 });
    const pause = { ...streamGap(5.5), at: 5.55 };
    const steps = [...sandbox, slow, pause, ...events, listed(10, { s1: 'running' })];
    const paused = steps.filter((step) => step !== pause);
    expect(short(compare([...covered, ...paused], { until: 20 }))).toHaveLength(1);
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });

  test('is not told where the stream was not covered from the list before on', () => {
    const steps = [...sandbox, ...life, streamGap(7), listed(10, { s1: 'running' })];
    expect(short(compare([...covered, ...steps], { until: 20 }))).toEqual([]);
  });
});

describe('duplicate_container', () => {
  /** c1 and c1b are containers of one pod and one name. */
  const both = (at: number) => listed(at, { s1: 'running', c1: 'running', c1b: 'running' });
  const twins = (steps: readonly TimelineStep[]) =>
    of(steps, 25).filter((each) => each.startsWith('duplicate_container'));

  test('both RUNNING in two lists in a row, told once', () => {
    expect(identityOf('c1b')).toMatchObject({
      podUid: identityOf('c1').podUid,
      container: identityOf('c1').container,
    });
    expect(twins([both(10), both(15), both(20)])).toEqual(['duplicate_container c1 both_listed_running']);
  });

  test('one list is no proof: its items are read one after the other', () => {
    expect(twins([both(10), listed(15, { s1: 'running', c1b: 'running' })])).toEqual([]);
  });

  test('one that ran after the other is none', () => {
    const steps = [
      listed(10, { s1: 'running', c1: 'exited', c1b: 'running' }),
      listed(15, { s1: 'running', c1: 'exited', c1b: 'running' }),
    ];
    expect(twins(steps)).toEqual([]);
  });

  const exits = (started: number) => [
    listed(10, { s1: 'running', c1: 'exited', c1b: 'exited' }),
    status(11, 'c1', times({ created: 4, started: 5, finished: 8 })),
    status(11.2, 'c1b', times({ created: 6, started, finished: 9 })),
    listed(15, { s1: 'running', c1: 'exited', c1b: 'exited' }),
  ];

  test('exact times that overlap, although no list saw both', () => {
    expect(twins(exits(7))).toEqual(['duplicate_container c1 times_overlap']);
  });

  test('says when lists showed each of them running, and their exact times', () => {
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
    listed(10, { s1: 'running', c1: 'running' }),
    received(14, 'c1b', 'STOPPED', { times: times({ created: 11, started, finished }) }),
    listed(15, { s1: 'running', c1: 'running' }),
  ];

  test('one that two lists show running, and another that ran in between', () => {
    expect(twins(beside(12, 13.9))).toEqual(['duplicate_container c1 times_overlap']);
    expect(twins(beside(13.5, 13.9))).toEqual([]);
  });

  test('says when both ran', () => {
    expect(proofsOf('duplicate_container', beside(12, 13.9))).toMatchObject([
      { together: { from: 12_000_000, to: 13_900_000 } },
    ]);
  });

  const onlySecond = (at: number) => listed(at, { s1: 'running', c1: 'exited', c1b: 'running' });
  /** c1 ends at 11, and c1b starts at 12.05; the clock is set back in between, and nobody has seen that yet. */
  const steppedBetween = [
    ...running,
    listed(6, { s1: 'running', c1: 'running' }),
    received(11.1, 'c1', 'STOPPED', { times: times({ created: 4.2, started: 5, finished: 11 }) }),
    clockStepped(12.01, -5),
    received(12.06, 'c1b', 'STARTED', { times: times({ created: 12.02, started: 12.05 }, -5) }),
  ];

  test('not one that ran after the other, where the clock was set back before any tick', () => {
    expect(twins([...steppedBetween, onlySecond(12.1), onlySecond(17)])).toEqual([]);
  });

  test('what a step took back is told by the next list, where it holds all the same', () => {
    const up = (at: number) => listed(at, { s1: 'running', c1: 'running' });
    const [before, ended] = beside(12, 13.9);
    const steps = [...running, before, ended, clockStepped(15.01, -5), up(15.05)].filter(
      (step) => step !== undefined,
    );
    expect(twins(steps)).toEqual([]);
    expect(twins([...steps, up(20)])).toEqual(['duplicate_container c1 times_overlap']);
  });

  test('not one whose times lay ahead, of a clock that was set back before the agent began', () => {
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

  test('not one that had stopped running before the other started', () => {
    const [before, ended] = beside(12, 13.9);
    const steps = [before, ended, listed(15, { s1: 'running', c1: 'exited' })].filter(
      (step) => step !== undefined,
    );
    expect(twins(steps)).toEqual([]);
  });

  test('not one that went back to running, and so may not have run all the time', () => {
    const steps = [
      listed(5, { s1: 'running', c1: 'running' }),
      listed(6, { s1: 'running', c1: 'exited' }),
      ...beside(12, 13.9),
    ];
    expect(twins(steps)).toEqual([]);
  });

  test('exact times that overlap by no more than the wall clock is trusted with are no proof', () => {
    expect(twins(exits(7.4))).toHaveLength(1);
    expect(twins(exits(7.6))).toEqual([]);
  });

  test('two sandboxes of one pod that are ready', () => {
    const ready = (at: number) => listed(at, { s1: 'running', s1b: 'running' });
    expect(twins([ready(10), ready(15)])).toEqual(['duplicate_container s1 both_listed_running']);
  });
});

describe('the statuses in an event', () => {
  test('prove what they show of other ids', () => {
    const steps = [
      ...running.slice(0, 2),
      listed(5, { s1: 'running', c1: 'created' }),
      received(6, 's1', 'STARTED', {
        others: [{ id: 'c1', state: 'running', times: times({ created: 4.2, started: 5.5 }) }],
      }),
    ];
    const outcome = compare([...covered, ...steps], { until: 60 });
    expect(outcome.missed).toContain('c1 STARTED');
  });

  test('prove that a sandbox came up', () => {
    const up = { id: 's1', state: 'running', times: times({ created: 4 }) } as const;
    const steps = [received(4, 's1', 'CREATED'), received(6, 'c1', 'CREATED', { others: [up] })];
    expect(of(steps, 60)).toEqual(['missed s1 STARTED sequence']);
  });

  test('prove nothing where they are UNKNOWN', () => {
    const unknown = { id: 'c1', state: 'unknown', times: times({}) } as const;
    const steps = [listed(5, { c1: 'unknown' }), received(6, 's1', 'CREATED', { others: [unknown] })];
    expect(of(steps, 60)).toEqual([]);
  });
});

test('a miss whose true time lies long before the lists noticed says that the runtime was late itself', () => {
  const finished = (at: number) => [
    ...running,
    listed(6, { s1: 'running', c1: 'running' }),
    listed(11, { s1: 'running', c1: 'running' }),
    listed(16, { s1: 'running', c1: 'exited' }),
    status(19, 'c1', times({ created: 4.2, started: 5, finished: at })),
  ];
  expect(of(finished(7), 60)).toEqual(['missed c1 STOPPED runtime_state_late']);
  // Not where they noticed within the grace.
  expect(of(finished(10), 60)).toEqual(['missed c1 STOPPED unannounced_by_list']);
});

test('an event that nobody understands may have been what is due already', () => {
  const steps = [
    ...running.slice(0, 3),
    listed(5, { s1: 'running', c1: 'created' }),
    listed(10, { s1: 'running', c1: 'running' }),
    received(12, 'c1', 9),
  ];
  expect(of(steps, 60)).toEqual(['unobservable c1 STARTED unknown_event_type']);
});

test('an event that nobody understands may have been any that is due of its id, and of no other', () => {
  const steps = [
    ...running.slice(0, 3),
    listed(5, { s1: 'running', c1: 'created' }),
    received(6, 'c1', 9),
    listed(10, { s1: 'running', c1: 'running' }),
    listed(15, { s1: 'exited', c1: 'running' }),
  ];
  const outcome = compare([...covered, ...steps], { until: 60 });
  expect(outcome.everMissed).toEqual(['s1 STOPPED']);
  expect(outcome.unobservable).toEqual(['c1 STARTED before_baseline']);
});

describe('a STOPPED without a status', () => {
  const ended = [
    ...running.slice(0, 2),
    received(4.2, 'c1', 'CREATED'),
    listed(5, { s1: 'running', c1: 'created' }),
    received(6, 'c1', 'STOPPED'),
    received(7, 'c1', 'DELETED'),
    listed(10, { s1: 'running' }),
    status(12, 'c1', null),
  ];

  test('says that it ran where a start that fails is known never to be announced', () => {
    expect(of(ended, 60)).toEqual(['missed c1 STARTED sequence']);
  });

  test('says nothing of that elsewhere', () => {
    const profile = { ...CONTAINERD, failedStartsUnannounced: false };
    expect(told(compare([...covered, ...ended], { until: 60, profile }))).toEqual([]);
  });
});

test('a regression says which list showed it exited and which running', () => {
  const steps = [
    ...running,
    listed(6, { s1: 'running', c1: 'running' }),
    listed(11, { s1: 'running', c1: 'exited' }),
    listed(16, { s1: 'running', c1: 'exited' }),
    listed(21, { s1: 'running', c1: 'running' }),
  ];
  expect(proofsOf('regression', steps)).toMatchObject([
    { listedExited: { from: 11_010_000 }, listedRunning: { from: 21_010_000 } },
  ]);
});

test('a second regression says which list showed it exited that time, not one that lacked it', () => {
  const up = (at: number) => listed(at, { s1: 'running', c1: 'running' });
  const down = (at: number) => listed(at, { s1: 'running', c1: 'exited' });
  const steps = [
    ...running,
    up(6),
    listed(8, { s1: 'running' }),
    down(11),
    up(16),
    down(21),
    down(26),
    up(31),
  ];
  expect(proofsOf('regression', steps)).toMatchObject([
    { listedExited: { from: 11_010_000 }, listedRunning: { from: 16_010_000 } },
    { listedExited: { from: 21_010_000 }, listedRunning: { from: 31_010_000 } },
  ]);
});
