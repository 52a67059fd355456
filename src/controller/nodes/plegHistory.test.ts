import { expect, test } from 'vitest';
import type { ReadyCondition } from '../../kube/projection.ts';
import { conditionChange, type RecordedCondition } from './plegHistory.ts';

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

const MESSAGE = 'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s';
const unhealthy = (more: Partial<ReadyCondition> = {}): ReadyCondition =>
  condition({
    ...{ status: 'False', reason: 'KubeletNotReady', message: MESSAGE },
    ...{ transitionAt: ago(10), heartbeatAt: more.transitionAt ?? ago(10) },
    ...more,
  });
const wasUnhealthy: RecordedCondition = { unhealthy: true, status: 'False', at: ago(10) };
const wasHealthy: RecordedCondition = { unhealthy: false, status: 'True', at: ago(60) };

test('a healthy node without any record makes no row', () => {
  expect(conditionChange(null, condition({}), NOW)).toBeNull();
});

test('unhealthy PLEG is recorded at the time of the transition, with the durations of the message', () => {
  expect(conditionChange(wasHealthy, unhealthy(), NOW)).toEqual({
    unhealthy: true,
    at: ago(10),
    status: 'False',
    reason: 'KubeletNotReady',
    message: MESSAGE,
    seenAgoMs: 185_000,
    thresholdMs: 180_000,
  });
});

test('a node that is not Ready for another reason makes no row', () => {
  expect(conditionChange(wasHealthy, unhealthy({ message: 'container runtime is down' }), NOW)).toBeNull();
});

test('a Ready node is healthy, whatever its message', () => {
  expect(conditionChange(null, condition({ message: 'PLEG was not healthy' }), NOW)).toBeNull();
});

test('a message that differs only in its "seen ago" makes no row', () => {
  const again = unhealthy({ message: MESSAGE.replace('3m5s', '4m5s'), heartbeatAt: ago(0) });
  expect(conditionChange(wasUnhealthy, again, NOW)).toBeNull();
});

test('healthy PLEG is recorded when the node is Ready again', () => {
  const end = conditionChange(wasUnhealthy, condition({ transitionAt: ago(2) }), NOW);
  expect(end).toMatchObject({
    unhealthy: false,
    status: 'True',
    at: ago(2),
    seenAgoMs: null,
    thresholdMs: null,
  });
});

test('healthy PLEG is recorded at the heartbeat whose message no longer mentions PLEG, although the node is not Ready', () => {
  const other = unhealthy({ message: 'container runtime is down', heartbeatAt: ago(3) });
  expect(conditionChange(wasUnhealthy, other, NOW)).toMatchObject({
    unhealthy: false,
    status: 'False',
    at: ago(3),
  });
});

test('unhealthy PLEG of a node that was not Ready already is recorded at its heartbeat, not at the transition', () => {
  const recorded: RecordedCondition = { unhealthy: false, status: 'False', at: ago(8) };
  expect(conditionChange(recorded, unhealthy({ heartbeatAt: ago(4) }), NOW)).toMatchObject({ at: ago(4) });
});

test('without any record, unhealthy PLEG of a node that was not Ready already begins when the threshold passed', () => {
  // Not ready for ten minutes, and 5 s over the threshold at the heartbeat a minute ago.
  expect(conditionChange(null, unhealthy({ heartbeatAt: ago(1) }), NOW)).toMatchObject({
    at: ago(1) - 5_000_000,
  });
  expect(conditionChange(null, unhealthy({ heartbeatAt: null }), NOW)).toMatchObject({ at: ago(10) });
});

test('a node that is unhealthy again, with a newer transition time, makes a row', () => {
  expect(conditionChange(wasUnhealthy, unhealthy({ transitionAt: ago(5) }), NOW)).toMatchObject({
    unhealthy: true,
    at: ago(5),
  });
});

test.each([
  ['null', null],
  ['the year 1', Date.parse('0001-01-01T00:00:00Z') * 1000],
  ['ten years ahead', NOW + 3_650 * 24 * 60 * MINUTE],
])('a transition time of %s is replaced by the present time', (_, time) => {
  expect(conditionChange(wasHealthy, unhealthy({ transitionAt: time, heartbeatAt: null }), NOW)?.at).toBe(
    NOW,
  );
});
