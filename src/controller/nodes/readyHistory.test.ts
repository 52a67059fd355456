import { describe, expect, test } from 'vitest';
import type { ReadyCondition } from '../../kube/projection.ts';
import { notReadyCauses, type ReadyChange, readyChange } from './readyHistory.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z') * 1000;
const ago = (minutes: number): number => NOW - minutes * 60_000_000;
const condition = (more: Partial<ReadyCondition>): ReadyCondition => ({
  ...{ status: 'False', reason: 'KubeletNotReady', message: 'container runtime is down' },
  ...{ transitionAt: ago(10), heartbeatAt: ago(1) },
  ...more,
});
const READY = condition({ status: 'True', reason: 'KubeletReady', message: '', transitionAt: ago(2) });
const down: ReadyChange = { at: ago(10), status: 'False', reason: 'KubeletNotReady', causes: ['runtime'] };

describe('the causes of a Node that is not Ready', () => {
  test.each([
    ['pleg', 'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s'],
    ['runtime', 'container runtime is down'],
    ['runtime', 'container runtime not ready: RuntimeReady=false reason:X message:y'],
    [
      'network',
      'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized',
    ],
    ['storage', 'CSINode is not yet initialized'],
    ['capacity', 'missing node capacity for resources: ephemeral-storage'],
    ['shutdown', 'node is shutting down'],
    ['other', 'something that a later kubelet says'],
    ['other', ''],
    ['runtime,network', '[container runtime is down, network plugin is not ready]'],
  ])('are %s where its message is "%s"', (causes, message) => {
    expect(`${notReadyCauses(condition({ message }))}`).toBe(causes);
  });

  test('are kubelet_silent where the node controller wrote the condition', () => {
    const message = 'Kubelet stopped posting node status.';
    expect(notReadyCauses(condition({ status: 'Unknown', reason: 'NodeStatusUnknown', message }))).toEqual([
      'kubelet_silent',
    ]);
  });
});

test('a Node that is Ready when it is first seen has no change, and one that is not Ready has one', () => {
  expect(readyChange(null, READY, NOW)).toBeNull();
  expect(readyChange(null, condition({}), NOW)).toEqual(down);
});

test('another cause is a change at the heartbeat that brought it, and another text of the same cause is none', () => {
  const same = condition({ message: 'container runtime status check may not have completed yet' });
  expect(readyChange(down, same, NOW)).toBeNull();
  const other = condition({ message: '[container runtime is down, CSINode is not yet initialized]' });
  expect(readyChange(down, other, NOW)).toMatchObject({ at: ago(1), causes: ['runtime', 'storage'] });
});

test('a Node that is Ready again has a change at its transition, later than the one before it', () => {
  expect(readyChange(down, READY, NOW)).toEqual({
    ...{ at: ago(2), status: 'True', reason: 'KubeletReady', causes: [] },
  });
  const sameSecond = { ...READY, transitionAt: down.at };
  expect(readyChange(down, sameSecond, NOW)?.at).toBe(down.at + 1);
});
