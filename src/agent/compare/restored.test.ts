/*
 * Timelines of containers and pods that are restored from a checkpoint, of which runtimes announce less than of others.
 */
import { describe, expect, test } from 'vitest';
import {
  C1_CREATED,
  C1_RUNNING,
  CONTAINERD_2_5,
  CRIO,
  compare,
  covered,
  listed,
  opened,
  received,
  S1_RUNNING,
  status,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import type { PlegProfile } from '../../protocol/eventProfile.ts';

const ran = times({ created: 6, started: 6.5 });
const restored = { ...ran, trait: 'unnamed_log' } as const;
/** The container c1 of a pod that is up. */
const shown: readonly TimelineStep[] = [
  received(4, 's1', 'STARTED', { times: times({ created: 4 }) }),
  listed(5, S1_RUNNING),
  listed(10, C1_RUNNING),
];

const verdictsOn = (profile: PlegProfile, id: string, steps: readonly TimelineStep[]): string[] =>
  compare([...covered, ...steps], { until: 120, profile })
    .findings.filter(({ kind, containerId }) => containerId === id && kind !== 'short_life')
    .map(({ kind, eventType, cause }) => `${kind} ${eventType} ${cause}`);

describe('on CRI-O', () => {
  const verdicts = (...steps: readonly TimelineStep[]) => verdictsOn(CRIO, 'c1', [...shown, ...steps]);
  const IN_DOUBT = [
    'unobservable CREATED may_have_been_restored',
    'unobservable STARTED may_have_been_restored',
  ];

  test('a container whose log is named after its id may have been restored, so neither its CREATED nor its STARTED is missed', () => {
    expect(verdicts(status(13, 'c1', restored))).toEqual(IN_DOUBT);
  });

  test('a container of which neither CREATED nor STARTED came, and whose status is not known, may have been restored', () => {
    expect(verdicts(status(13, 'c1', null))).toEqual(IN_DOUBT);
  });

  test('a container whose log was named was created like any other, and both its CREATED and its STARTED are missed', () => {
    expect(verdicts(status(13, 'c1', ran))).toEqual([
      'missed CREATED unannounced_by_list',
      'missed STARTED unannounced_by_list',
    ]);
  });

  test('a container whose STARTED came may have been restored if its log is named after its id: its CREATED is not missed', () => {
    expect(verdicts(received(6.5, 'c1', 'STARTED', { times: restored }))).toEqual([
      'unobservable CREATED may_have_been_restored',
    ]);
    expect(verdicts(received(6.5, 'c1', 'STARTED', { times: ran }))).toEqual(['missed CREATED sequence']);
  });

  test('a container whose CREATED came was not restored, and its STARTED is missed', () => {
    expect(verdicts(received(6, 'c1', 'CREATED', { times: restored }))).toEqual([
      'missed STARTED unannounced_by_list',
    ]);
  });

  test('the STOPPED of a restored container is missed like any other', () => {
    const ends = [
      status(13, 'c1', restored),
      listed(15, { s1: 'running', c1: 'exited' }),
      status(18, 'c1', { ...restored, finishedNs: times({ finished: 14 }).finishedNs }),
    ];
    expect(verdicts(...ends)).toEqual([...IN_DOUBT, 'missed STOPPED unannounced_by_list']);
  });

  test('the STARTED of a sandbox is missed: its sandbox is not restored', () => {
    expect(verdictsOn(CRIO, 's1', [listed(5, S1_RUNNING)])).toEqual([
      'unannounced CREATED never_sent',
      'missed STARTED unannounced_by_list',
    ]);
  });
});

describe('on a runtime that restores pods and may announce only starts', () => {
  const verdicts = (...steps: readonly TimelineStep[]) =>
    verdictsOn(CONTAINERD_2_5, 'c1', [...shown, ...steps]);

  test('a container whose STARTED came first may have been restored, so its CREATED is not missed', () => {
    expect(verdicts(received(6.5, 'c1', 'STARTED', { times: ran }))).toEqual([
      'unobservable CREATED may_have_been_restored',
    ]);
  });

  test('a container of which neither CREATED nor STARTED came may have been restored, whatever its status', () => {
    expect(verdicts(status(13, 'c1', ran))).toEqual([
      'unobservable CREATED may_have_been_restored',
      'unobservable STARTED may_have_been_restored',
    ]);
  });

  test('a container whose CREATED came was not restored, and its STARTED is missed', () => {
    expect(verdicts(received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }))).toEqual([
      'missed STARTED unannounced_by_list',
    ]);
  });

  test('a CREATED that is replayed shows that its container was not restored', () => {
    const again = compare(
      [
        listed(0, S1_RUNNING),
        opened(1),
        received(2, 's0', 'STARTED'),
        received(2.1, 'c1', 'CREATED', { built: 0.5, times: times({ created: 0.5 }) }),
        listed(3, C1_CREATED),
        listed(8, C1_RUNNING),
      ],
      { until: 120, profile: CONTAINERD_2_5 },
    );
    expect(again.everMissed).toEqual(['c1 STARTED']);
  });

  test('a sandbox of which no CREATED came may have been restored too', () => {
    expect(verdictsOn(CONTAINERD_2_5, 's1', shown)).toEqual(['unobservable CREATED may_have_been_restored']);
  });
});
