/*
 * The gap of what the first lists of a session, or after a gap within it, cannot decide.
 */
import { expect, test } from 'vitest';
import {
  C1_CREATED,
  C1_RUNNING,
  closed,
  compare,
  covered,
  listed,
  opened,
  received,
  S1_EXITED,
  S1_RUNNING,
  seconds,
  streamGap,
  type TimelineStep,
} from '../../../test/engine/timeline.ts';

function gapsOf(...steps: readonly TimelineStep[]) {
  return compare(steps, { until: 60 }).records.filter(({ type }) => type === 'gap');
}

const gap = (from: number, to: number) => ({
  scope: 'findings',
  cause: 'first_lists',
  from: seconds(from),
  to: seconds(to),
});

test('between the first event of a stream and the end of the first lists an event may lack without a finding: that is a gap', () => {
  // The STOPPED of s1 was dropped, or it had stopped before.
  const first = listed(5, S1_EXITED);
  const steps = [opened(1), received(2, 's0', 'STARTED'), first, listed(10, S1_EXITED)];
  const about = compare(steps, { until: 60 }).findings.filter(({ containerId }) => containerId === 's1');
  expect(about).toEqual([]);
  expect(gapsOf(...steps)).toMatchObject([gap(2, 5.02)]);
});

test('a STOPPED that is lost with its DELETED after the first event of a later session has no finding, and lies within a gap', () => {
  const running = [...covered, listed(20, C1_RUNNING), closed(25)];
  const steps = [...running, opened(26, 2), received(27, 's0', 'STARTED'), listed(30, S1_RUNNING)];
  const about = compare(steps, { until: 60 }).findings.filter(({ eventType }) => eventType === 'STOPPED');
  expect(about).toEqual([]);
  expect(gapsOf(...steps).at(-1)).toMatchObject(gap(27, 30.02));
});

test('a session that ends before its first lists leaves a gap until the first ones after it', () => {
  const steps = [...covered, listed(20, C1_RUNNING), closed(25)];
  const short = [opened(26, 2), received(27, 's0', 'STARTED'), closed(28)];
  const next = [
    opened(29, 3),
    received(29.5, 's0', 'STOPPED'),
    listed(30, C1_RUNNING),
    listed(35, C1_RUNNING),
  ];
  const before = gapsOf(...steps);
  expect(gapsOf(...steps, ...short, ...next).slice(before.length)).toMatchObject([gap(27, 30.02)]);
});

test('a list that lacks something does not end the first lists', () => {
  const partial = listed(5, S1_RUNNING, { partial: true });
  expect(
    gapsOf(opened(1), received(2, 's0', 'STARTED'), partial, listed(10, S1_EXITED), listed(15, S1_EXITED)),
  ).toMatchObject([gap(2, 10.02)]);
});

test('lists that began before the first event are not the first lists, whenever that event is compared', () => {
  const held = { ...received(5.01, 's0', 'STARTED'), at: 6 };
  const next = listed(10, S1_EXITED);
  expect(gapsOf(opened(1), listed(5, S1_EXITED), held, next)).toMatchObject([gap(5.01, 10.02)]);
});

test('an event between the lists before the first event and the ones after it may lack without a finding too', () => {
  expect(gapsOf(listed(0, {}), opened(1), received(2, 's0', 'STARTED'), listed(5, {}))).toMatchObject([
    gap(2, 5.02),
  ]);
});

test('a stream that received its first event has no such gap again', () => {
  const first = [opened(1), received(2, 's0', 'STARTED'), listed(5, {})];
  expect(gapsOf(...first, received(7, 's0', 'STOPPED'), listed(10, {}))).toMatchObject([gap(2, 5.02)]);
});

test('a start and an end that are lost after a gap within a session have no finding, and lie within a gap', () => {
  const created = [listed(5, S1_RUNNING), received(6, 'c1', 'CREATED'), listed(10, C1_CREATED)];
  const steps = [...covered, ...created, streamGap(12), listed(15, S1_RUNNING), listed(20, S1_RUNNING)];
  const about = compare(steps, { until: 60 }).findings.filter(({ containerId }) => containerId === 'c1');
  expect(about.map(({ eventType }) => eventType)).toEqual(['DELETED']);
  expect(gapsOf(...steps).slice(gapsOf(...covered).length)).toMatchObject([gap(12, 15.02)]);
});

test('lists that began before the end of a gap within a session are not the first lists', () => {
  const long = listed(5, S1_RUNNING, { took: 2 });
  const steps = [...covered, long, streamGap(6), listed(10, S1_RUNNING)];
  expect(gapsOf(...steps).slice(gapsOf(...covered).length)).toMatchObject([gap(6, 10.02)]);
});

test('a list of sandboxes that began before the end of a gap within a session is not one of the first lists', () => {
  const both = listed(5, S1_RUNNING, { took: 2 });
  const between = [...covered, both, { ...streamGap(6), at: 9.5 }, listed(10, S1_RUNNING)];
  expect(gapsOf(...between).slice(gapsOf(...covered).length)).toMatchObject([gap(6, 10.02)]);
});

test('lists that began between two gaps within a session, and ended after the second, are not the first lists', () => {
  const steps = [...covered, streamGap(4), streamGap(6), listed(5, {}, { took: 2 }), listed(10, {})];
  expect(gapsOf(...steps).slice(gapsOf(...covered).length)).toMatchObject([gap(4, 10.02)]);
});

test('gaps within a session that no lists separate have their first lists in common', () => {
  const late = { ...streamGap(7), at: 11 };
  const steps = [...covered, streamGap(8), late, listed(7.5, {}, { compared: 4 }), listed(15, {})];
  expect(gapsOf(...steps).slice(gapsOf(...covered).length)).toMatchObject([gap(7, 15.02)]);
});

test('a gap before the first event of a session has no first lists of its own', () => {
  expect(gapsOf(opened(1), streamGap(1.5), received(2, 's0', 'STARTED'), listed(5, {}))).toMatchObject([
    gap(2, 5.02),
  ]);
});
