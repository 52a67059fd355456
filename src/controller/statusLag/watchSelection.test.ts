import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { missedFinding } from '../../../test/support/records.ts';
import type { ContainerIdentity, EvidenceRecord, RecordOf } from '../../protocol/record.ts';
import {
  announcedTransitions,
  hasValidPod,
  narrowedBounds,
  overdueWatches,
  type StoredBatch,
} from './watchSelection.ts';

const SECOND = 1_000_000;
const BASE = 1_790_000_000 * SECOND;
/** The batch was sealed when the epoch was a minute old, and stored two seconds later. */
const TIMES = { storedAt: BASE + 62 * SECOND, sealedAt: 60 * SECOND, epochStart: BASE };

const CONTAINER: ContainerIdentity = {
  id: 'c1',
  sandbox: 's1',
  isSandbox: false,
  podUid: 'uid-1',
  namespace: 'shop',
  pod: 'cart-7',
  container: 'app',
  attempt: 2,
};

function batch(records: readonly EvidenceRecord[], container = CONTAINER): StoredBatch {
  const stored = records.map((record, i) => ({ seq: i + 1, at: BASE + record.t, record }));
  const identities = new Map([[container.id, container]]);
  return { records: stored, times: TIMES, identities, lateAfter: SECOND };
}

const overdue = (more: Partial<RecordOf<'event_overdue'>> = {}): RecordOf<'event_overdue'> => ({
  type: 'event_overdue',
  t: 58 * SECOND,
  findingId: '00000000-0000-4000-8000-000000000001',
  containerId: 'c1',
  eventType: 'STOPPED',
  window: { from: 50 * SECOND, to: 55 * SECOND },
  occurred: null,
  ...more,
});

const event = (more: Partial<RecordOf<'container_event'>> = {}): RecordOf<'container_event'> => ({
  type: 'container_event',
  t: 59 * SECOND,
  containerId: 'c1',
  eventType: 2,
  createdNs: '0',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
  ...more,
});

const finding = (more: Partial<RecordOf<'finding'>> = {}) => {
  const window = { from: 50 * SECOND, to: 55 * SECOND };
  const { findingId } = overdue();
  return missedFinding({ t: 59 * SECOND, findingId, containerId: 'c1', window, ...more });
};

/** Offsets from the start of the epoch, in seconds. Delivery took two seconds. */
const secondsOf = ({ latest, earliest }: { latest: number; earliest: number | null }) => ({
  latest: (latest - BASE) / SECOND,
  earliest: earliest === null ? null : (earliest - BASE) / SECOND,
});

test('an overdue transition has the bounds of its window, the latest as if delivery took no time', () => {
  const { watches, withoutPod } = overdueWatches(batch([overdue()]));
  expect(withoutPod).toEqual([]);
  expect(watches).toMatchObject([{ findingId: overdue().findingId, type: 'STOPPED', container: CONTAINER }]);
  expect(watches.map(secondsOf)).toEqual([{ latest: 57, earliest: 50 }]);
});

test.each([
  ['inside the window', 53, { latest: 55.5, earliest: 52.5 }],
  ['at its start', 50, { latest: 52.5, earliest: 50 }],
  ['at its end', 55, { latest: 57, earliest: 54.5 }],
  ['long before it', 20, { latest: 22.5, earliest: 19.5 }],
  ['after it', 58, { latest: 57, earliest: 50 }],
])(
  'an exact time %s narrows the bounds to half a second, unless it is impossible',
  (_, occurred, expected) => {
    const { watches } = overdueWatches(batch([overdue({ occurred: occurred * SECOND })]));
    expect(watches.map(secondsOf)).toEqual([expected]);
    expect(narrowedBounds(batch([finding({ occurred: occurred * SECOND })])).map(secondsOf)).toEqual([
      expected,
    ]);
  },
);

test('a finding without an exact time, or about another event, narrows nothing', () => {
  expect(
    narrowedBounds(
      batch([finding(), finding({ eventType: 'DELETED', occurred: 1 }), finding({ eventType: null })]),
    ),
  ).toEqual([]);
  const late = finding({ kind: 'late', window: null, occurred: 53 * SECOND });
  expect(narrowedBounds(batch([late])).map(secondsOf)).toEqual([{ latest: 55.5, earliest: 52.5 }]);
});

test('a transition without a pod that the API server can have is not watched', () => {
  const hostile = [
    { namespace: '..' },
    { namespace: 'a/b' },
    { pod: '../x' },
    { pod: '' },
    { podUid: '' },
    { pod: 'P' },
  ];
  for (const names of hostile) {
    const container = { ...CONTAINER, ...names };
    expect(hasValidPod(container)).toBe(false);
    expect(overdueWatches(batch([overdue()], container))).toEqual({
      watches: [],
      withoutPod: [overdue().findingId],
    });
    expect(announcedTransitions(batch([event()], container))).toEqual([]);
  }
  expect(overdueWatches({ ...batch([overdue()]), identities: new Map() }).withoutPod).toEqual([
    overdue().findingId,
  ]);
});

test.each([1, 3])(
  'an announced start or stop is fresh: where events are late after %d s, it happened at most this long before its event',
  (late) => {
    const both = { ...batch([event({ eventType: 1 }), event()]), lateAfter: late * SECOND };
    const announced = announcedTransitions(both);
    expect(announced.map(({ type, isFresh }) => [type, isFresh])).toEqual([
      ['STARTED', true],
      ['STOPPED', true],
    ]);
    expect(announced.map(secondsOf)).toEqual(Array(2).fill({ latest: 61, earliest: 59 - late }));
  },
);

test.each<[string, Partial<RecordOf<'container_event'>>]>([
  ['of a sandbox', { isSandbox: true }],
  ['that was replayed', { replayed: true }],
  ['of a creation', { eventType: 0 }],
  ['of an unknown type', { eventType: 77 }],
  ['of an unknown container', { containerId: 'c2' }],
])('an event %s announces no transition whose lag is measured', (_, more) => {
  expect(announcedTransitions(batch([event(more)]))).toEqual([]);
});

test('a transition that a finding is about is not measured as an announced one', () => {
  const late = finding({ findingId: randomUUID(), kind: 'late' });
  expect(announcedTransitions(batch([event(), late]))).toEqual([]);
});

test('an event that waited for its batch, or whose batch was delivered slowly, is not fresh', () => {
  const slow = { ...batch([event()]), times: { ...TIMES, storedAt: BASE + 300 * SECOND } };
  for (const each of [slow, batch([event({ t: 40 * SECOND })])])
    expect(announcedTransitions(each)).toMatchObject([{ isFresh: false }]);
});
