/*
 * The decoder of the kubelet's PodsAPI, on messages as a kubelet encodes them and on damaged ones.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type EncodedContainer,
  type EncodedPod,
  message,
  POD_EVENT,
  podAnswer,
  podBytes,
  podEvent,
  SECRET,
  SYNCED,
} from '../../../../devtools/simulator/podsApiMessages.ts';
import { runsOf } from '../../../../test/support/runs.ts';
import { MAX_ITEM_BYTES, MalformedMessage } from '../../../cri/malformed.ts';
import type { KubeletPod } from '../../../protocol/observation.ts';
import { readPodAnswer, readPodMessage } from './podDecoder.ts';

const added = (pod?: EncodedPod) => readPodMessage(podEvent(POD_EVENT.added, podBytes(pod)));

function containersOf(...containers: readonly EncodedContainer[]) {
  const read = added({ containers });
  if (read.is !== 'pod') throw new Error(`it is ${read.is}`);
  return read.pod.containers;
}

test('a pod has its names, its UID and the states of containers, init containers and ephemeral ones', () => {
  const pod = {
    uid: 'u7',
    name: 'cart',
    namespace: 'shop',
    containers: [{ name: 'app', id: 'containerd://a1', state: 'running' }],
    initContainers: [{ name: 'init', id: 'cri-o://i1', state: 'terminated' }],
    ephemeralContainers: [{ name: 'debug', id: 'containerd://d1', state: 'waiting' }],
  } as const;
  const expected = {
    podUid: 'u7',
    namespace: 'shop',
    pod: 'cart',
    isTerminating: false,
    containers: [
      { id: 'a1', name: 'app', state: 'running' },
      { id: 'i1', name: 'init', state: 'terminated' },
      { id: 'd1', name: 'debug', state: 'waiting' },
    ],
  };
  expect(added(pod)).toEqual({ is: 'pod', pod: expected });
  expect(readPodMessage(podEvent(POD_EVENT.modified, podBytes(pod)))).toEqual({ is: 'pod', pod: expected });
  expect(readPodAnswer(podAnswer(podBytes(pod)))).toEqual(expected);
});

test.each([
  ['Running', 'running', 'runs'],
  ['Running', 'terminated', 'runs'],
  ['Failed', 'running', 'is terminating'],
  ['Succeeded', 'running', 'is terminating'],
  // The status that shows the last end: nothing was delayed by its termination.
  ['Failed', 'terminated', 'has ended'],
  ['Succeeded', 'terminated', 'has ended'],
  ['Failed and what no kubelet says', 'running', 'runs'],
] as const)('a pod in phase %s with a container that is %s %s', (phase, state, expected) => {
  const bytes = podBytes({ phase, containers: [{ id: 'containerd://a1', state }] });
  const said = ({ isTerminating, hasEnded }: KubeletPod) =>
    isTerminating ? 'is terminating' : hasEnded ? 'has ended' : 'runs';
  const sight = readPodMessage(podEvent(POD_EVENT.modified, bytes));
  expect(sight.is === 'pod' && said(sight.pod)).toBe(expected);
  expect(said(readPodAnswer(podAnswer(bytes)))).toBe(expected);
});

test('a pod names the containers that the kubelet has still to create, which have no id', () => {
  const pod = podBytes({
    initContainers: [{ name: 'init', id: 'containerd://i1', state: 'terminated' }],
    containers: [
      { name: 'app', id: 'containerd://a1', state: 'running' },
      { name: 'sidecar', id: '', state: 'waiting' },
      { name: 'restarted', id: 'containerd://r1', state: 'waiting' },
    ],
  });
  expect(readPodAnswer(podAnswer(pod)).uncreated).toEqual(['sidecar']);
});

test('nothing else of a pod leaves the decoder: no value of an environment, no annotation, no volume, no message', () => {
  const bytes = podBytes({
    isTerminating: true,
    containers: [
      { id: 'containerd://a2', state: 'running', lastId: 'containerd://a1' },
      { name: 'job', id: 'containerd://b1', state: 'terminated' },
      { name: 'slow', id: 'containerd://c1', state: 'waiting' },
    ],
  });
  expect(bytes.toString('latin1').split(SECRET).length).toBeGreaterThan(20);
  const read = [readPodMessage(podEvent(POD_EVENT.added, bytes)), readPodAnswer(podAnswer(bytes))];
  expect(JSON.stringify(read)).not.toContain(SECRET);
});

test('the id of a restarted container is terminated, and the id that replaced it has the state of now', () => {
  expect(containersOf({ id: 'containerd://new', state: 'running', lastId: 'containerd://old' })).toEqual([
    { id: 'old', name: 'app', state: 'terminated' },
    { id: 'new', name: 'app', state: 'running' },
  ]);
  // Between two attempts the status keeps the id of the one that ended.
  expect(containersOf({ id: 'containerd://old', state: 'waiting', lastId: 'containerd://old' })).toEqual([
    { id: 'old', name: 'app', state: 'terminated' },
  ]);
  // A kubelet that cannot find a container says terminated without an id in it.
  expect(containersOf({ id: 'containerd://a', state: 'terminated', terminatedId: '' })).toEqual([
    { id: 'a', name: 'app', state: 'terminated' },
  ]);
});

test('a status without a usable id is left out', () => {
  const ids = ['', 'containerd://', 'containerd://a\0b', `containerd://${'a'.repeat(257)}`, 'x'.repeat(400)];
  for (const id of ids) expect(containersOf({ id, state: 'running' })).toEqual([]);
  expect(containersOf({ id: 'plain', state: 'running' })).toMatchObject([{ id: 'plain' }]);
});

test('a pod with a deletionTimestamp is terminating, and a removed one is known by its UID', () => {
  expect(added({ isTerminating: true })).toMatchObject({ pod: { isTerminating: true } });
  const minimal = message([
    [
      1,
      message([
        [1, 'web'],
        [3, 'shop'],
        [5, 'u9'],
      ]),
    ],
  ]);
  expect(readPodMessage(podEvent(POD_EVENT.deleted, minimal))).toEqual({ is: 'removed', podUid: 'u9' });
  expect(readPodMessage(SYNCED)).toEqual({ is: 'synced' });
});

test('a type of event that is not known is neither a pod nor an end of the initial pods', () => {
  for (const type of [0, 5, 127, 300])
    expect(readPodMessage(podEvent(type, podBytes()))).toEqual({ is: 'other' });
});

test('a pod whose containers cannot be decoded is unknown, and one without a UID is malformed', () => {
  const broken = message([
    [1, message([[5, 'u3']])],
    [3, message([[8, Buffer.from([0x0f])]])],
  ]);
  expect(readPodMessage(podEvent(POD_EVENT.modified, broken))).toEqual({ is: 'unknown', podUid: 'u3' });
  expect(() => readPodAnswer(podAnswer(broken))).toThrow(MalformedMessage);
  const many = Array.from({ length: 257 }, (_, i) => ({ id: `containerd://${i}` }));
  expect(added({ containers: many })).toEqual({ is: 'unknown', podUid: 'u1' });
  expect(added({ containers: many.slice(1) })).toMatchObject({ is: 'pod' });
  expect(() => added({ uid: '' })).toThrow(MalformedMessage);
  expect(() => readPodMessage(podEvent(POD_EVENT.added))).toThrow(MalformedMessage);
  expect(() => readPodMessage(Buffer.alloc(MAX_ITEM_BYTES + 1))).toThrow(MalformedMessage);
});

test('names are cut and cleaned as those of lists are', () => {
  const long = '\u{1F600}'.repeat(600);
  const read = added({ name: long, namespace: 'a\0b' });
  if (read.is !== 'pod') throw new Error(`it is ${read.is}`);
  expect(read.pod.pod).toBe('\u{1F600}'.repeat(256));
  expect(read.pod.namespace).toBe('a\uFFFDb');
});

test('any bytes are read or refused as malformed, and no other error is thrown', () => {
  const bytes = podEvent(
    POD_EVENT.added,
    podBytes({ containers: [{ id: 'containerd://a', state: 'running', lastId: 'containerd://b' }] }),
  );
  const damaged = fc
    .array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
    .map((changes) => {
      const copy = Buffer.from(bytes);
      for (const [at, byte] of changes) copy[at] = byte;
      return copy;
    });
  const random = fc.uint8Array({ maxLength: 200 }).map((each) => Buffer.from(each));
  fc.assert(
    fc.property(fc.oneof(damaged, random), (each) => {
      for (const read of [readPodMessage, readPodAnswer]) {
        try {
          read(each);
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedMessage);
        }
      }
    }),
    { numRuns: runsOf(20_000) },
  );
});
