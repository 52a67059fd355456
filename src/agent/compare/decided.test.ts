/*
 * Until when everything is decided.
 */
import { expect, test } from 'vitest';
import {
  announced,
  C1_CREATED,
  C1_EXITED,
  C1_RUNNING,
  CRIO,
  compare,
  covered,
  listed,
  listedAlike,
  readerStalled,
  received,
  S1_RUNNING,
  seconds,
  status,
  times,
} from '../../../test/engine/timeline.ts';

test('a listed state is decided until the list began, less the time for which a sandbox may be listed after its DELETED', () => {
  const steps = [...covered, ...listedAlike({}, 10, 15)];
  expect(compare(steps, { until: 20 }).decided).toBe(seconds(5));
  expect(compare(steps, { until: 20, profile: CRIO }).decided).toBe(seconds(15));
});

test('a list decides once every event until its end was received', () => {
  const steps = [...covered, ...listedAlike({}, 10, 20), ...readerStalled(12, 22)];
  const settings = { profile: CRIO };
  expect(compare(steps, { ...settings, until: 21 }).decided).toBe(seconds(10));
  expect(compare(steps, { ...settings, until: 23 }).decided).toBe(seconds(20));
});

test('the start of a container that a list first shows exited is undecided until its status was asked for', () => {
  const created = [...announced(4, 's1', 'CREATED', 'STARTED'), received(4, 'c1', 'CREATED')];
  const steps = [...covered, ...created, listed(5, C1_CREATED), ...listedAlike(C1_EXITED, 10, 30)];
  expect(compare(steps, { until: 32 }).decided).toBe(seconds(5.01));
  expect(compare([...steps, status(31, 'c1', null)], { until: 32 }).decided).toBe(seconds(20));
  const ran = times({ created: 4, started: 6, finished: 7 });
  expect(compare([...steps, status(31, 'c1', ran)], { until: 32 })).toMatchObject({
    decided: seconds(5.01),
    pending: 2,
  });
});

test('nothing more is decided while a later event may still date what one has proven', () => {
  const steps = [...covered, ...listedAlike({}, 10, 15), received(16, 'c1', 'STARTED')];
  const gone = [...steps, ...listedAlike({}, 20, 25)];
  expect(compare(gone, { until: 40 }).decided).toBe(seconds(5));
  expect(compare(gone, { until: 90 })).toMatchObject({
    decided: seconds(15),
    unobservable: ['c1 CREATED no_lower_bound', 'c1 DELETED no_lower_bound', 'c1 STOPPED end_not_shown'],
  });
});

test('the stage of an UNKNOWN container is undecided, whether its CREATED was understood or not', () => {
  const unknown = [listed(5, {}), ...listedAlike({ c1: 'unknown' }, 10, 20)];
  const settings = { until: 22, profile: CRIO };
  for (const nameless of [false, true]) {
    const steps = [...covered, received(6, 'c1', 'CREATED', { nameless }), ...unknown];
    expect(compare(steps, settings).decided).toBe(seconds(5.01));
  }
});

test('whether it ran is undecided until its status says so, whatever lists show after they showed it exited', () => {
  const up = [received(4, 's1', 'STARTED'), listed(5, S1_RUNNING), received(6, 'c1', 'CREATED')];
  // Only its digest could be kept: it does not say whether the container ran. The list that shows it exited is not whole.
  const ended = [received(7, 'c1', 'STOPPED', { nameless: true }), listed(10, C1_EXITED, { partial: true })];
  const ran = times({ created: 6, started: 6.5, finished: 7 });
  for (const [later, pending] of [
    [{ ...S1_RUNNING, c1: 'unknown' }, 0],
    [S1_RUNNING, 1],
  ] as const) {
    const steps = [...covered, ...up, ...ended, listed(15, later)];
    const settings = { until: 16, profile: CRIO };
    expect(compare(steps, settings)).toMatchObject({ decided: seconds(5.01), queries: ['c1'], pending });
    const answered = compare([...steps, status(15.5, 'c1', ran)], settings);
    expect(answered).toMatchObject({ decided: seconds(5.01), pending: pending + 1 });
  }
});

test('whether it ran is undecided until a query that began after a list showed it exited is answered, or fails', () => {
  const up = [received(4, 's1', 'STARTED'), listed(5, S1_RUNNING), listed(10, C1_CREATED)];
  const settings = { until: 76, profile: CRIO };
  const ended = [...covered, ...up, ...listedAlike(C1_CREATED, 30, 60), ...listedAlike(C1_EXITED, 70, 75)];
  // Its CREATED is overdue; the answers are from before it started.
  const early = status(13, 'c1', times({ created: 6 }));
  const slow = status(70.5, 'c1', times({ created: 6 }), 60.5);
  const ran = times({ created: 6, started: 61, finished: 62 });
  for (const answers of [[early], [status(13, 'c1', null)], [slow]]) {
    const steps = [...ended, ...answers];
    expect(compare(steps, settings)).toMatchObject({ decided: seconds(60.01), queries: ['c1', 'c1'] });
    expect(compare([...steps, status(75.5, 'c1', null)], settings).decided).toBe(seconds(75));
    const proven = [...steps, status(75.5, 'c1', ran)];
    expect(compare(proven, settings).decided).toBe(seconds(60.01));
    const { missed } = compare(proven, { ...settings, until: 120 });
    expect(missed).toEqual(expect.arrayContaining(['c1 STARTED', 'c1 STOPPED']));
  }
});

test('the end of what ran is undecided until a list lacks what its DELETED announced', () => {
  const up = [
    ...announced(4, 's1', 'CREATED', 'STARTED'),
    received(4, 'c1', 'CREATED'),
    listed(5, C1_CREATED),
  ];
  // The STARTED comes after the DELETED, and the next list may be older than both.
  const ended = [received(10.05, 'c1', 'DELETED'), received(10.15, 'c1', 'STARTED')];
  const older = listed(10, S1_RUNNING, { took: 0.1 });
  const settings = { until: 22, profile: CRIO };
  expect(compare([...covered, ...up, ...ended, older], settings).decided).toBe(seconds(5.01));
});

test('the removal of what a list lacks is undecided while that list may be older than its last event', () => {
  const up = [...announced(4, 's1', 'CREATED', 'STARTED'), ...announced(4, 'c1', 'CREATED', 'STARTED')];
  const stopped = [received(10.15, 'c1', 'STOPPED'), listed(10, S1_RUNNING, { took: 0.1 })];
  const steps = [...covered, ...up, listed(5, C1_RUNNING), ...stopped];
  const settings = { until: 22, profile: CRIO };
  expect(compare(steps, settings).decided).toBe(seconds(5.01));
  const deleted = [received(12, 'c1', 'DELETED'), listed(15, S1_RUNNING)];
  expect(compare([...steps, ...deleted], settings).decided).toBe(seconds(15));
});

test('a stage that lists prove and nothing can date keeps nothing from being decided', () => {
  // A sandbox that never came up: nobody knows when its DELETED may have come.
  const steps = [...covered, listed(5, { s1: 'exited' }), ...listedAlike({}, 10, 15)];
  expect(compare(steps, { until: 20 })).toMatchObject({ decided: seconds(5), pending: 1 });
});
