import { expect, test } from 'vitest';
import {
  CRIO,
  compare,
  covered,
  received,
  status,
  type TimelineSettings,
  type TimelineStep,
  times,
} from '../../../test/engine/timeline.ts';
import { EVENT_TYPES } from '../../protocol/record.ts';
import { exitOf } from './events.ts';

const ended = (exitCode: number, reason: string) =>
  exitOf({ createdNs: 1n, startedNs: 2n, finishedNs: 3n, exitCode, reason });

test.each([
  [0, 'Completed'],
  [7, 'Error'],
  [137, 'OOMKilled'],
  [159, 'seccomp killed'],
  [128, 'StartError'],
  [127, 'ContainerCannotRun'],
  [255, 'Unknown'],
] as const)('an exit with %i (%s) is recorded as the runtime says', (code, reason) => {
  expect(ended(code, reason)).toEqual({ code, reason });
});

test.each([-1, 256, -(2 ** 31), 2 ** 31 - 1])(
  'an exit code of %i is one that the runtime does not know',
  (code) => {
    expect(ended(code, 'Error')).toEqual({ code: null, reason: 'Error' });
  },
);

test.each(['', 'oomkilled', 'Evicted', 'x'.repeat(200)])(
  'a reason %j that is none of the known is Other',
  (reason) => {
    expect(ended(1, reason)).toEqual({ code: 1, reason: 'Other' });
  },
);

test.each([0n, -1n])('a status that knows of no end (%d) says nothing of an exit', (finishedNs) => {
  expect(exitOf({ createdNs: 1n, startedNs: 2n, finishedNs, exitCode: 0, reason: '' })).toBeNull();
});

test('an event without a status of its container says nothing of an exit', () => {
  expect(exitOf(null)).toBeNull();
});

const killed = { ...times({ created: 4, started: 5, finished: 8 }), exitCode: 137, reason: 'OOMKilled' };

/** The events of an id as recorded: their type, and the exit that they have. */
function recorded(id: string, steps: readonly TimelineStep[], settings: Partial<TimelineSettings> = {}) {
  const { records } = compare([...covered, ...steps], { until: 60, ...settings });
  return records.flatMap((record) =>
    record.type === 'container_event' && record.containerId === id
      ? [[EVENT_TYPES[record.eventType], record.exit]]
      : [],
  );
}

test('on containerd, only the STOPPED of a container is recorded with its exit', () => {
  const steps = [
    received(4, 'c1', 'CREATED', { times: times({ created: 4 }) }),
    received(5, 'c1', 'STARTED', { times: times({ created: 4, started: 5 }) }),
    received(8, 'c1', 'STOPPED', { times: killed }),
    received(9, 'c1', 'DELETED'),
  ];
  expect(recorded('c1', steps)).toEqual([
    ['CREATED', undefined],
    ['STARTED', undefined],
    ['STOPPED', { code: 137, reason: 'OOMKilled' }],
    ['DELETED', undefined],
  ]);
});

test('the STOPPED of a failed start on CRI-O, whose code it does not know, is recorded with its reason', () => {
  const failed = { ...times({ created: 6, started: 6, finished: 7 }), exitCode: -1, reason: 'Error' };
  const steps = [
    received(6, 'c1', 'CREATED', { times: times({ created: 6 }) }),
    received(7, 'c1', 'STOPPED', { times: failed }),
  ];
  expect(recorded('c1', steps, { profile: CRIO })).toEqual([
    ['CREATED', undefined],
    ['STOPPED', { code: null, reason: 'Error' }],
  ]);
});

test('an event that lacks the exit gets none from a queried status or from the event of another container', () => {
  const steps = [
    received(4, 'c1', 'CREATED'),
    received(5, 'c1', 'STARTED'),
    status(8.5, 'c1', killed),
    received(8.6, 's1', 'CREATED', { others: [{ id: 'c1', state: 'exited', times: killed }] }),
    received(9, 'c1', 'STOPPED'),
  ];
  expect(recorded('c1', steps)).toEqual([
    ['CREATED', undefined],
    ['STARTED', undefined],
    ['STOPPED', undefined],
  ]);
  expect(recorded('s1', steps)).toEqual([['CREATED', undefined]]);
});
