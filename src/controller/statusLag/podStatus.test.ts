import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { type KubeObject, KubeObjectSchema } from '../../kube/object.ts';
import { checkStatus, isPod, publishedPod, type WatchedTransition } from './podStatus.ts';

const ID = 'a'.repeat(64);
const BEFORE = 'b'.repeat(64);
const AFTER = 'c'.repeat(64);

const wanted = (
  type: WatchedTransition['type'],
  more: Partial<WatchedTransition> = {},
): WatchedTransition => ({
  type,
  containerId: ID,
  containerName: 'app',
  attempt: 1,
  wasPresent: false,
  ...more,
});

const running = (id: string) => ({
  containerID: `containerd://${id}`,
  state: { running: { startedAt: 'x' } },
});
const ended = (id: string) => ({ terminated: { exitCode: 0, containerID: `containerd://${id}` } });
const waiting = { waiting: { reason: 'CrashLoopBackOff' } };

function pod(container: object | null, list = 'containerStatuses'): KubeObject {
  const statuses = container === null ? undefined : [{ name: 'app', restartCount: 1, ...container }];
  return v.parse(KubeObjectSchema, {
    metadata: { name: 'cart', uid: 'uid-1' },
    status: { phase: 'Running', [list]: statuses },
  });
}

function checked(object: KubeObject, transition: WatchedTransition) {
  const published = publishedPod(object);
  if (published === null) throw new Error('not a valid pod');
  return checkStatus(published, transition);
}

describe.each(['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'])(
  'in %s',
  (list) => {
    test.each([
      ['is running', { ...running(ID) }, 'published', 'stale'],
      ['has terminated', { containerID: `containerd://${ID}`, state: ended(ID) }, 'published', 'published'],
      [
        'terminated before the present one',
        { ...running(AFTER), restartCount: 2, lastState: ended(ID) },
        'published',
        'published',
      ],
      [
        'terminated while the next one waits',
        { containerID: `containerd://${ID}`, state: waiting, lastState: ended(ID) },
        'published',
        'published',
      ],
      ['has not replaced the previous one yet', { ...running(BEFORE), restartCount: 0 }, 'stale', 'stale'],
      [
        'has not replaced the terminated previous one yet',
        { restartCount: 0, state: ended(BEFORE) },
        'stale',
        'stale',
      ],
      ['has no state', { containerID: `containerd://${ID}` }, 'stale', 'stale'],
      ['waits for its image', { restartCount: 0, state: waiting }, 'stale', 'stale'],
      [
        'was followed by another one that terminated',
        { ...running('d'), restartCount: 3, lastState: ended(AFTER) },
        'superseded',
        'superseded',
      ],
    ])('checks a container that %s', (_, status, started, stopped) => {
      expect(checked(pod(status, list), wanted('STARTED')).is).toBe(started);
      expect(checked(pod(status, list), wanted('STOPPED')).is).toBe(stopped);
    });
  },
);

test('a container that was the present one and no longer is, is superseded if it started, and its stop is published, whatever the restart count', () => {
  const object = pod({ ...running(AFTER), restartCount: 1 });
  expect(checked(object, wanted('STOPPED'))).toEqual({ is: 'stale', present: false });
  expect(checked(object, wanted('STARTED', { wasPresent: true }))).toEqual({ is: 'superseded' });
  expect(checked(object, wanted('STOPPED', { wasPresent: true }))).toEqual({ is: 'published' });
  expect(checked(pod({ ...running(ID) }), wanted('STOPPED'))).toEqual({ is: 'stale', present: true });
});

test('a stop is published by a status that names its container no more, though it had named it as the present one', () => {
  // From kubelet 1.28.15 after its restart: the runtime has the container, and the next status is of its end.
  const lost = pod({
    state: { waiting: { reason: 'ContainerCreating' } },
    lastState: { terminated: { reason: 'ContainerStatusUnknown', exitCode: 137 } },
    restartCount: 2,
  });
  expect(checked(lost, wanted('STOPPED', { wasPresent: true }))).toEqual({ is: 'published' });
  expect(checked(lost, wanted('STOPPED'))).toEqual({ is: 'superseded' });
});

test('another container of the pod neither publishes nor supersedes a transition', () => {
  const object = pod({ ...running(AFTER), name: 'sidecar', restartCount: 9 });
  expect(checked(object, wanted('STOPPED', { wasPresent: true }))).toEqual({ is: 'stale', present: false });
});

test('a pod without a status is stale', () => {
  expect(checked(pod(null), wanted('STARTED'))).toEqual({ is: 'stale', present: false });
  expect(checked(v.parse(KubeObjectSchema, { metadata: {} }), wanted('STARTED')).is).toBe('stale');
});

test('a mirror pod matches the hash of its static pod, and every pod its own UID', () => {
  const mirror = publishedPod(
    v.parse(KubeObjectSchema, {
      metadata: { uid: 'uid-2', annotations: { 'kubernetes.io/config.hash': 'f00d', other: 7 } },
    }),
  );
  if (mirror === null) throw new Error('not a valid pod');
  expect(isPod(mirror, 'f00d')).toBe(true);
  expect(isPod(mirror, 'uid-2')).toBe(true);
  expect(isPod(mirror, 'uid-3')).toBe(false);
  const plain = publishedPod(pod(null));
  expect(plain !== null && isPod(plain, '')).toBe(false);
});

test('an arbitrary object is decoded or rejected, and never publishes a transition', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (status, annotations) => {
      const published = publishedPod({
        metadata: { ...v.parse(KubeObjectSchema, { metadata: {} }).metadata, annotations },
        status,
      });
      if (published !== null) expect(checkStatus(published, wanted('STARTED')).is).not.toBe('published');
    }),
  );
});

test.each([
  ['an id that is too long', { ...running('a'.repeat(600)) }],
  ['a name that is too long', { ...running(ID), name: 'n'.repeat(600) }],
  ['a negative restart count', { ...running(ID), restartCount: -1 }],
])('a pod with %s is rejected', (_, status) => {
  expect(publishedPod(pod(status))).toBeNull();
});

test('a pod with more than 1,000 containers is rejected', () => {
  const many = Array.from({ length: 1_001 }, () => ({ name: 'app', ...running(ID) }));
  const object = v.parse(KubeObjectSchema, { metadata: {}, status: { containerStatuses: many } });
  expect(publishedPod(object)).toBeNull();
});
