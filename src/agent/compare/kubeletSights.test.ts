import { describe, expect, test } from 'vitest';
import { seconds } from '../../../test/engine/timeline.ts';
import type { KubeletContainer, KubeletSight } from '../../protocol/observation.ts';
import { KubeletSights } from './kubeletSights.ts';
import { STARTED, STOPPED } from './stages.ts';

type Shown = Readonly<Record<string, KubeletContainer['state']>>;

const podSight = (at: number, podUid: string, shown: Shown = {}, isTerminating = false): KubeletSight => {
  const containers = Object.entries(shown).map(([id, state]) => ({ id, name: 'app', state }));
  return { is: 'pod', at: seconds(at), pod: { podUid, namespace: '', pod: '', isTerminating, containers } };
};
const opened = (at: number): KubeletSight => ({ is: 'opened', at: seconds(at) });
const synced = (at: number): KubeletSight => ({ is: 'synced', at: seconds(at) });
const broken = (at: number): KubeletSight => ({ is: 'broken', at: seconds(at) });
const removed = (at: number, podUid: string): KubeletSight => ({ is: 'removed', at: seconds(at), podUid });

function sightsOf(...sights: readonly KubeletSight[]): KubeletSights {
  const all = new KubeletSights();
  for (const sight of sights) all.see(sight);
  return all;
}
const shownOf = (sights: KubeletSights, stage: typeof STARTED | typeof STOPPED, id = 'c1') =>
  sights.pod('u1')?.containers.get(id)?.shown(stage) ?? null;
const ids = (count: number): Shown =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, 'running'] as const));

describe('coverage of the watch', () => {
  test('a watch covers nothing before it has reported every pod', () => {
    expect(sightsOf(opened(1)).covers(seconds(2))).toBe(false);
    expect(sightsOf(opened(1), synced(2)).covers(seconds(2))).toBe(true);
    expect(sightsOf(opened(1), synced(2)).covers(seconds(1))).toBe(false);
  });

  test('a watch that is opened again covers nothing until it has reported every pod', () => {
    const sights = sightsOf(opened(1), synced(2), opened(3));
    expect({ since: sights.since, firstSince: sights.firstSince }).toEqual({
      since: null,
      firstSince: seconds(2),
    });
  });

  test('a watch that broke covers nothing', () => {
    expect(sightsOf(opened(1), synced(2), broken(3)).covers(seconds(2.5))).toBe(false);
  });

  test('a pod that a new watch does not report has ended, and its containers are not shown to have stopped', () => {
    const before = [opened(1), podSight(1, 'u1', { c1: 'running' }), synced(2), broken(3)];
    const sights = sightsOf(...before, opened(4), synced(5));
    expect(sights.pod('u1')?.ended).toBe(seconds(5));
    expect(shownOf(sights, STOPPED)).toBeNull();
  });

  test('a pod that a new watch reports has not ended', () => {
    const before = [opened(1), podSight(1, 'u1'), synced(2), broken(3)];
    expect(sightsOf(...before, opened(4), podSight(4, 'u1'), synced(5)).pod('u1')?.ended).toBeNull();
  });
});

describe('the first status of a stage', () => {
  test('a running container has started, and a terminated one has started and stopped', () => {
    const running = sightsOf(podSight(1, 'u1', { c1: 'running' }));
    const terminated = sightsOf(podSight(1, 'u1', { c1: 'terminated' }));
    const shown = { watched: seconds(1), answered: null, whileTerminating: false };
    expect([shownOf(running, STARTED), shownOf(running, STOPPED)]).toEqual([shown, null]);
    expect([shownOf(terminated, STARTED), shownOf(terminated, STOPPED)]).toEqual([shown, shown]);
  });

  test('a waiting container has neither started nor stopped', () => {
    const sights = sightsOf(podSight(1, 'u1', { c1: 'waiting' }));
    expect([shownOf(sights, STARTED), shownOf(sights, STOPPED)]).toEqual([null, null]);
  });

  test('the first message that shows a stage counts', () => {
    const sights = sightsOf(podSight(1, 'u1', { c1: 'running' }), podSight(2, 'u1', { c1: 'running' }));
    expect(shownOf(sights, STARTED)?.watched).toBe(seconds(1));
  });

  test('a stage in an answer is kept apart from one in a message', () => {
    const sights = sightsOf(podSight(1, 'u1'));
    const pod = podSight(2, 'u1', { c1: 'running' });
    const call = { podUid: 'u1', asked: seconds(1.5), at: seconds(2) };
    if (pod.is === 'pod') sights.answered({ ...call, found: true, pod: pod.pod });
    sights.see(podSight(3, 'u1', { c1: 'running' }));
    expect(shownOf(sights, STARTED)).toMatchObject({ watched: seconds(3), answered: seconds(2) });
  });

  test('the end of a pod shows the starts and stops of all its containers', () => {
    const sights = sightsOf(podSight(1, 'u1', { c1: 'waiting', c2: 'running' }), removed(5, 'u1'));
    expect(shownOf(sights, STOPPED)?.watched).toBe(seconds(5));
    expect(shownOf(sights, STARTED, 'c2')?.watched).toBe(seconds(1));
    expect(shownOf(sights, STOPPED, 'c2')?.watched).toBe(seconds(5));
  });

  test('a pod whose phase is final has ended, whether a message shows it or an answer, where the message of its end is missing', () => {
    const pod = { podUid: 'u1', namespace: '', pod: '', isTerminating: false, containers: [] };
    const ended = { ...pod, hasEnded: true } as const;
    const shown = sightsOf(podSight(1, 'u1'), { is: 'pod', at: seconds(5), pod: ended });
    expect(shown.pod('u1')?.ended).toBe(seconds(5));
    const asked = sightsOf(podSight(1, 'u1'));
    const call = { podUid: 'u1', asked: seconds(5), at: seconds(6), found: true } as const;
    asked.answered({ ...call, pod });
    expect(asked.pod('u1')?.ended).toBeNull();
    asked.answered({ ...call, pod: ended });
    expect(asked.pod('u1')?.ended).toBe(seconds(6));
  });

  test('a stage of a pod that was terminating before is shown while it is terminating', () => {
    const sights = sightsOf(
      podSight(1, 'u1', { c1: 'running' }, true),
      podSight(9, 'u1', { c1: 'terminated' }),
    );
    expect(shownOf(sights, STOPPED)).toMatchObject({ watched: seconds(9), whileTerminating: true });
  });

  test('a pod that was terminating still is, until another one with its uid begins', () => {
    const terminating = [podSight(1, 'u1', {}, true), podSight(2, 'u1')];
    expect(sightsOf(...terminating).pod('u1')?.isTerminating).toBe(true);
    const again = sightsOf(...terminating, removed(3, 'u1'), podSight(4, 'u1'));
    expect([again.pod('u1')?.isTerminating, again.pod('u1')?.ended]).toEqual([false, null]);
  });
});

describe('limits of memory', () => {
  test('no more than 2,000 pods are remembered that have not ended, and the others are counted', () => {
    const all = Array.from({ length: 2_001 }, (_, i) => podSight(1, `u${i}`));
    const sights = sightsOf(...all);
    expect([sights.pod('u1999') === undefined, sights.pod('u2000') === undefined]).toEqual([false, true]);
    expect(sights.unobserved).toBe(1);
    sights.see(removed(2, 'u0'));
    sights.see(podSight(3, 'u2000'));
    expect(sights.pod('u2000')).toBeDefined();
  });

  test('a pod with more than 256 containers is not observed until a message has fewer', () => {
    const sights = sightsOf(podSight(1, 'u1', ids(256)), podSight(2, 'u1', ids(257)));
    expect([sights.pod('u1')?.isUnknown, sights.unobserved]).toEqual([true, 1]);
    sights.see(podSight(3, 'u1', ids(2)));
    expect(sights.pod('u1')?.isUnknown).toBe(false);
  });

  test('a pod with too many containers forgets the oldest ones that its last status does not name', () => {
    const sights = sightsOf(
      podSight(1, 'u1', ids(256)),
      podSight(2, 'u1', { new: 'running', c1: 'running' }),
    );
    const { containers } = sights.pod('u1') ?? { containers: new Map() };
    expect([containers.size, containers.has('c0'), containers.has('c1'), containers.has('new')]).toEqual([
      ...[256, false, true, true],
    ]);
  });

  test('an ended pod is forgotten after five minutes', () => {
    const sights = sightsOf(podSight(1, 'u1'), removed(2, 'u1'));
    sights.forget(seconds(301));
    expect(sights.pod('u1')).toBeDefined();
    sights.forget(seconds(313));
    expect(sights.pod('u1')).toBeUndefined();
  });

  test('no more than 1,000 ended pods are remembered', () => {
    const all = Array.from({ length: 1_001 }, (_, i) => [podSight(1, `u${i}`), removed(2, `u${i}`)]);
    const sights = sightsOf(...all.flat());
    expect([sights.pod('u0') === undefined, sights.pod('u1') === undefined]).toEqual([true, false]);
  });

  test('a container that no status has named for five minutes is forgotten, and one of the last status is not', () => {
    const sights = sightsOf(podSight(1, 'u1', { c1: 'running' }), podSight(2, 'u1', { c2: 'running' }));
    sights.forget(seconds(400));
    expect([...(sights.pod('u1')?.containers.keys() ?? [])]).toEqual(['c2']);
  });
});
