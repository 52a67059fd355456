import { expect, test } from 'vitest';
import type { ReadyCondition } from '../kube/projection.ts';
import { type Recorded, transitionOf } from './transition.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z') * 1000;
const MINUTE = 60_000_000;
const ago = (minutes: number): number => NOW - minutes * MINUTE;

const condition = (more: Partial<ReadyCondition>): ReadyCondition => ({
  status: 'True',
  reason: 'KubeletReady',
  message: 'kubelet is posting ready status',
  transitionAt: ago(60),
  heartbeatAt: ago(1),
  ...more,
});

const ILL = 'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s';
const ill = (more: Partial<ReadyCondition> = {}): ReadyCondition =>
  condition({
    ...{ status: 'False', reason: 'KubeletNotReady', message: ILL },
    ...{ transitionAt: ago(10), heartbeatAt: more.transitionAt ?? ago(10) },
    ...more,
  });
const wasIll: Recorded = { ill: true, status: 'False', at: ago(10) };
const wasWell: Recorded = { ill: false, status: 'True', at: ago(60) };

test('a node that is well, and of which nothing was recorded, makes no row', () => {
  expect(transitionOf(null, condition({}), NOW)).toBeNull();
});

test('trouble with PLEG is recorded at the moment of the transition, with what the message says', () => {
  expect(transitionOf(wasWell, ill(), NOW)).toEqual({
    ill: true,
    at: ago(10),
    status: 'False',
    reason: 'KubeletNotReady',
    message: ILL,
    seenAgoMs: 185_000,
    thresholdMs: 180_000,
  });
});

test('a node that is not ready for another reason makes no row', () => {
  expect(transitionOf(wasWell, ill({ message: 'container runtime is down' }), NOW)).toBeNull();
});

test('a Ready node is well, whatever its message speaks of', () => {
  expect(transitionOf(null, condition({ message: 'PLEG was not healthy' }), NOW)).toBeNull();
});

test('the same trouble told anew, with another "seen ago", is no transition', () => {
  const again = ill({ message: ILL.replace('3m5s', '4m5s'), heartbeatAt: ago(0) });
  expect(transitionOf(wasIll, again, NOW)).toBeNull();
});

test('the end is recorded when the node is Ready again', () => {
  const end = transitionOf(wasIll, condition({ transitionAt: ago(2) }), NOW);
  expect(end).toMatchObject({ ill: false, status: 'True', at: ago(2), seenAgoMs: null, thresholdMs: null });
});

test('the end is recorded when only PLEG is well again, at the heartbeat that said so', () => {
  const other = ill({ message: 'container runtime is down', heartbeatAt: ago(3) });
  expect(transitionOf(wasIll, other, NOW)).toMatchObject({ ill: false, status: 'False', at: ago(3) });
});

test('trouble that joins another is recorded at its heartbeat, not when the node became not ready', () => {
  const recorded: Recorded = { ill: false, status: 'False', at: ago(8) };
  expect(transitionOf(recorded, ill({ heartbeatAt: ago(4) }), NOW)).toMatchObject({ at: ago(4) });
});

test('trouble that joins another, of which nothing was recorded, begins when the threshold had passed', () => {
  // Not ready for ten minutes, and 5 s over the threshold at the heartbeat a minute ago.
  expect(transitionOf(null, ill({ heartbeatAt: ago(1) }), NOW)).toMatchObject({ at: ago(1) - 5_000_000 });
  expect(transitionOf(null, ill({ heartbeatAt: null }), NOW)).toMatchObject({ at: ago(10) });
});

test('a node that was well in between, unseen, makes a row of its own', () => {
  expect(transitionOf(wasIll, ill({ transitionAt: ago(5) }), NOW)).toMatchObject({ ill: true, at: ago(5) });
});

test.each([
  ['none', null],
  ['the year 1', Date.parse('0001-01-01T00:00:00Z') * 1000],
  ['in ten years', NOW + 3_650 * 24 * 60 * MINUTE],
])('a time that is %s is replaced by the present', (_, time) => {
  expect(transitionOf(wasWell, ill({ transitionAt: time, heartbeatAt: null }), NOW)?.at).toBe(NOW);
});
