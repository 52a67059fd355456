import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codePoint } from '../../test/support/codePoint.ts';
import { ContainerIdentitySchema } from '../protocol/record.ts';
import { cleanText } from '../protocol/text.ts';
import { mono } from '../protocol/units.ts';
import { parse } from '../protocol/validation.ts';
import { digestEvent, readContainer, readEvent, readSandbox, sandboxAnswer } from './items.ts';
import { MAX_ITEM_BYTES, MalformedMessage } from './malformed.ts';
import {
  Container,
  ContainerEventResponse,
  ContainerStatus,
  NamespaceMode,
  PodSandbox,
  PodSandboxStatus,
} from './runtime.ts';

const NOW = mono(1);
const HUGE = 512 * 1024;

type PartialEvent = Parameters<typeof ContainerEventResponse.fromPartial>[0];
/** `more`: enum values that the protocol does not define. */
const event = (partial: PartialEvent, more = {}) =>
  readEvent(
    ContainerEventResponse.encode(Object.assign(ContainerEventResponse.fromPartial(partial), more)).finish(),
    3,
    NOW,
  );
const containerOf = (partial: Parameters<typeof Container.fromPartial>[0], more = {}) =>
  readContainer(Container.encode(Object.assign(Container.fromPartial(partial), more)).finish());
const sandboxOf = (partial: Parameters<typeof PodSandbox.fromPartial>[0], more = {}) =>
  readSandbox(PodSandbox.encode(Object.assign(PodSandbox.fromPartial(partial), more)).finish());

const status = {
  id: 's1',
  metadata: { name: 'web', uid: 'u1', namespace: 'shop', attempt: 1 },
  createdAt: 5n,
};

test('an event identifies its container and has its created, started and finished times', () => {
  const own = ContainerStatus.fromPartial({
    id: 'c1',
    metadata: { name: 'app', attempt: 4 },
    createdAt: 1n,
    startedAt: 2n,
    finishedAt: 3n,
    exitCode: 137,
    reason: 'Error',
    logPath: '/var/log/pods/shop_web_u1/app/4.log',
  });
  const other = ContainerStatus.fromPartial({
    id: 'c2',
    startedAt: 9n,
    logPath: '/var/log/pods/shop_web_u1/c2.log',
  });
  expect(
    event({
      containerId: 'c1',
      containerEventType: 2,
      createdAt: 7n,
      podSandboxStatus: status,
      containersStatuses: [other, own],
    }),
  ).toEqual({
    session: 3,
    received: NOW,
    id: 'c1',
    type: 2,
    createdNs: 7n,
    hasSandboxStatus: true,
    object: {
      id: 'c1',
      sandbox: 's1',
      isSandbox: false,
      podUid: 'u1',
      namespace: 'shop',
      pod: 'web',
      container: 'app',
      attempt: 4,
    },
    times: { createdNs: 1n, startedNs: 2n, finishedNs: 3n, exitCode: 137, reason: 'Error' },
    others: [
      {
        id: 'c2',
        state: 'created',
        times: {
          createdNs: 0n,
          startedNs: 9n,
          finishedNs: 0n,
          exitCode: 0,
          reason: '',
          trait: 'unnamed_log',
        },
      },
      {
        id: 's1',
        state: 'running',
        times: { createdNs: 5n, startedNs: 0n, finishedNs: 0n, exitCode: 0, reason: '' },
      },
    ],
  });
});

test('a status of a sandbox says whether its containers share a PID namespace, where it names namespaces at all', () => {
  const traitOf = (pid: NamespaceMode | null) =>
    sandboxAnswer(
      PodSandboxStatus.fromPartial(
        pid === null ? { id: 's1' } : { id: 's1', linux: { namespaces: { options: { pid } } } },
      ),
    ).times.trait;
  const { POD, CONTAINER, NODE } = NamespaceMode;
  expect([traitOf(POD), traitOf(CONTAINER), traitOf(NODE), traitOf(null)]).toEqual([
    'shared_pid',
    undefined,
    undefined,
    undefined,
  ]);
});

test("an event of a sandbox has the sandbox's created time", () => {
  const read = event({ containerId: 's1', createdAt: 7n, podSandboxStatus: status });
  expect(read?.object).toMatchObject({ id: 's1', isSandbox: true, pod: 'web', container: '', attempt: 1 });
  expect(read?.times).toMatchObject({ createdNs: 5n, startedNs: 0n, finishedNs: 0n });
});

test("an event of a container never has its sandbox's created time", () => {
  expect(event({ containerId: 'c1', podSandboxStatus: status })?.times).toBeNull();
});

test('an event without a sandbox status, or with an empty one, has no identity', () => {
  expect(event({ containerId: 'c1' })).toMatchObject({ hasSandboxStatus: false, object: null });
  const empty = event({ containerId: 'c1', podSandboxStatus: {} });
  expect(empty).toMatchObject({ hasSandboxStatus: false, object: null });
});

test('an event never has the times of a status with an empty id', () => {
  const read = event({
    containerId: 'c1',
    podSandboxStatus: status,
    containersStatuses: [{ startedAt: 9n }],
  });
  expect(read?.times).toBeNull();
});

test.each([
  [0, 0],
  [3, 3],
  [4, 4],
  [254, 254],
  [255, 255],
  [1000, 255],
  [-1, 255],
  [2 ** 31 - 1, 255],
])('an event of type %i is kept as %i', (sent, kept) => {
  expect(event({ containerId: 'c1' }, { containerEventType: sent })?.type).toBe(kept);
});

test.each([
  ['empty', ''],
  ['longer than any runtime makes them', 'x'.repeat(257)],
  ['with a NUL', 'a\0b'],
])('an event whose id is %s is ignored', (_, containerId) => {
  expect(event({ containerId })).toBeNull();
});

test('an event that was reduced to a digest has no identity', () => {
  expect(digestEvent({ id: 'c1', type: 1, createdNs: 5n }, 2, NOW)).toEqual({
    session: 2,
    received: NOW,
    id: 'c1',
    type: 1,
    createdNs: 5n,
    hasSandboxStatus: false,
    object: null,
    times: null,
    others: [],
  });
});

test('an event longer than any real pod can cause is refused, even if well formed', () => {
  const statuses = (count: number) => ({
    containerId: 'c1',
    containersStatuses: Array.from({ length: count }, () => ({
      id: 'c2',
      reason: 'x'.repeat(MAX_ITEM_BYTES / 4),
    })),
  });
  expect(event(statuses(3))?.others).toHaveLength(3);
  expect(() => event(statuses(4))).toThrow(MalformedMessage);
});

test('any bytes are read as an event with a usable id, ignored, or refused as malformed', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      let read: ReturnType<typeof readEvent> = null;
      try {
        read = readEvent(bytes, 1, NOW);
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedMessage);
        return;
      }
      if (read !== null) expect(read.id.length).toBeGreaterThan(0);
    }),
  );
});

describe('hostile text', () => {
  const hostile: Readonly<Record<string, string>> = {
    'a NUL': 'a\0b',
    'half a megabyte': 'x'.repeat(HUGE),
    'half a megabyte of NUL': '\0'.repeat(HUGE),
    'lone surrogates': 'a\ud800b\udfff',
    'a pair cut in the middle': `${'x'.repeat(511)}\u{1f600}`,
  };

  test.each(Object.entries(hostile))(
    '%s in every name gives an identity that the store accepts',
    (_, text) => {
      const metadata = { name: text, uid: text, namespace: text, attempt: 0 };
      const labels = {
        'io.kubernetes.pod.uid': text,
        'io.kubernetes.pod.namespace': text,
        'io.kubernetes.pod.name': text,
      };
      const read = [
        sandboxOf({ id: 's1', metadata })?.object,
        containerOf({ id: 'c1', podSandboxId: text, metadata, labels })?.object,
        event({ containerId: 'c1', podSandboxStatus: { id: text, metadata } })?.object,
      ];
      for (const object of read) {
        const parsed = parse(ContainerIdentitySchema, object);
        expect(parsed).toMatchObject({ ok: true });
        // Postgres accepts neither a NUL nor half a surrogate pair, which JSON writes as an escape.
        expect(JSON.stringify(object)).not.toMatch(/\\u0000|\\ud[89a-f]/i);
      }
    },
  );

  test('any text is cleaned to a well-formed one without NUL and within the limit', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), fc.nat({ max: 20 }), (text, max) => {
        const cleaned = cleanText(text, max);
        expect(cleaned.length).toBeLessThanOrEqual(max);
        expect(cleaned.includes('\0')).toBe(false);
        expect(cleaned.isWellFormed()).toBe(true);
      }),
    );
  });
});

test.each([
  [0, 'created'],
  [1, 'running'],
  [2, 'exited'],
  [3, 'unknown'],
  [99, 'unknown'],
  [-1, 'unknown'],
])('container state %i is %s', (state, shown) => {
  expect(containerOf({ id: 'c1' }, { state })?.state).toBe(shown);
});

test.each([
  [0, 'running'],
  [1, 'exited'],
  [99, 'unknown'],
  [-1, 'unknown'],
])('sandbox state %i is %s', (state, shown) => {
  expect(sandboxOf({ id: 's1' }, { state })?.state).toBe(shown);
});

test('an attempt beyond the range of the store is accepted as it is', () => {
  const parsed = parse(
    ContainerIdentitySchema,
    sandboxOf({ id: 's1', metadata: { attempt: 2 ** 32 - 1 } })?.object,
  );
  expect(parsed).toMatchObject({ ok: true, value: { attempt: 4_294_967_295 } });
});

test('a shortened text does not keep the long one in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const used = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const length = 10 * 1024 * 1024;
  const before = used();
  const kept = Array.from({ length: 20 }, () => cleanText(Buffer.alloc(length, 'x').toString(), 253));
  // Collected memory is not always free at once.
  await expect.poll(() => used() - before, { timeout: 240_000 }).toBeLessThan(2 * length);
  expect(kept).toHaveLength(20);
});
