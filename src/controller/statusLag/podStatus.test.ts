import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { type KubeObject, KubeObjectSchema } from '../kube/object.ts';
import { isPod, look, publishedPod, type Wanted } from './podStatus.ts';

const ID = 'a'.repeat(64);
const BEFORE = 'b'.repeat(64);
const AFTER = 'c'.repeat(64);

const wanted = (type: Wanted['type'], more: Partial<Wanted> = {}): Wanted => ({
  type,
  containerId: ID,
  containerName: 'app',
  attempt: 1,
  seen: false,
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

function looked(object: KubeObject, one: Wanted) {
  const published = publishedPod(object);
  if (published === null) throw new Error('it cannot be read');
  return look(published, one);
}

describe.each(['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'])(
  'in %s',
  (list) => {
    test.each([
      ['is running', { ...running(ID) }, 'shown', 'unshown'],
      ['has ended', { containerID: `containerd://${ID}`, state: ended(ID) }, 'shown', 'shown'],
      [
        'ended before the present one',
        { ...running(AFTER), restartCount: 2, lastState: ended(ID) },
        'shown',
        'shown',
      ],
      [
        'ended and the next one waits',
        { containerID: `containerd://${ID}`, state: waiting, lastState: ended(ID) },
        'shown',
        'shown',
      ],
      ['is still the one before', { ...running(BEFORE), restartCount: 0 }, 'unshown', 'unshown'],
      ['is still the end of the one before', { restartCount: 0, state: ended(BEFORE) }, 'unshown', 'unshown'],
      ['is there without a state', { containerID: `containerd://${ID}` }, 'unshown', 'unshown'],
      ['waits for its image', { restartCount: 0, state: waiting }, 'unshown', 'unshown'],
      [
        'was followed by another that ended',
        { ...running('d'), restartCount: 3, lastState: ended(AFTER) },
        'superseded',
        'superseded',
      ],
    ])('a container that %s', (_, status, started, stopped) => {
      expect(looked(pod(status, list), wanted('STARTED')).is).toBe(started);
      expect(looked(pod(status, list), wanted('STOPPED')).is).toBe(stopped);
    });
  },
);

test('a container that was there and is no more the present one is superseded, whatever the count of restarts says', () => {
  const object = pod({ ...running(AFTER), restartCount: 1 });
  expect(looked(object, wanted('STOPPED'))).toEqual({ is: 'unshown', present: false });
  expect(looked(object, wanted('STOPPED', { seen: true }))).toEqual({ is: 'superseded' });
  expect(looked(pod({ ...running(ID) }), wanted('STOPPED'))).toEqual({ is: 'unshown', present: true });
});

test('another container of the pod neither shows it nor takes its place', () => {
  const object = pod({ ...running(AFTER), name: 'sidecar', restartCount: 9 });
  expect(looked(object, wanted('STOPPED', { seen: true }))).toEqual({ is: 'unshown', present: false });
});

test('a pod without a status shows nothing', () => {
  expect(looked(pod(null), wanted('STARTED'))).toEqual({ is: 'unshown', present: false });
  expect(looked(v.parse(KubeObjectSchema, { metadata: {} }), wanted('STARTED')).is).toBe('unshown');
});

test('a mirror pod is the static pod whose hash it carries, and any other pod the one with its uid', () => {
  const mirror = publishedPod(
    v.parse(KubeObjectSchema, {
      metadata: { uid: 'uid-2', annotations: { 'kubernetes.io/config.hash': 'f00d', other: 7 } },
    }),
  );
  if (mirror === null) throw new Error('it cannot be read');
  expect(isPod(mirror, 'f00d')).toBe(true);
  expect(isPod(mirror, 'uid-2')).toBe(true);
  expect(isPod(mirror, 'uid-3')).toBe(false);
  const plain = publishedPod(pod(null));
  expect(plain !== null && isPod(plain, '')).toBe(false);
});

test('an object of any shape at all is read or refused, and never shows what it does not name', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (status, annotations) => {
      const published = publishedPod({
        metadata: { ...v.parse(KubeObjectSchema, { metadata: {} }).metadata, annotations },
        status,
      });
      if (published !== null) expect(look(published, wanted('STARTED')).is).not.toBe('shown');
    }),
  );
});

test.each([
  ['an id without an end', { ...running('a'.repeat(600)) }],
  ['a name without an end', { ...running(ID), name: 'n'.repeat(600) }],
  ['restarts below nothing', { ...running(ID), restartCount: -1 }],
])('%s is refused', (_, status) => {
  expect(publishedPod(pod(status))).toBeNull();
});

test('more containers than a pod can have are refused', () => {
  const many = Array.from({ length: 1_001 }, () => ({ name: 'app', ...running(ID) }));
  const object = v.parse(KubeObjectSchema, { metadata: {}, status: { containerStatuses: many } });
  expect(publishedPod(object)).toBeNull();
});
