import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ContainerIdentity, EvidenceRecord, RecordOf } from '../../protocol/record.ts';
import { announcedOf, type Batched, closerOf, isNamed, overdueOf } from './transitions.ts';

const SECOND = 1_000_000;
const BASE = 1_790_000_000 * SECOND;
/** The batch was cut when the epoch was a minute old, and came two seconds later. */
const RECEIVED = { storedAt: BASE + 62 * SECOND, cutAt: 60 * SECOND, epochStart: BASE };

const OBJECT: ContainerIdentity = {
  id: 'c1',
  sandbox: 's1',
  isSandbox: false,
  podUid: 'uid-1',
  namespace: 'shop',
  pod: 'cart-7',
  container: 'app',
  attempt: 2,
};

function batch(records: readonly EvidenceRecord[], object = OBJECT): Batched {
  const placed = records.map((record, i) => ({ seq: i + 1, at: BASE + record.t, record }));
  return { records: placed, times: RECEIVED, identities: new Map([[object.id, object]]) };
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

const finding = (more: Partial<RecordOf<'finding'>> = {}): RecordOf<'finding'> => ({
  type: 'finding',
  t: 59 * SECOND,
  findingId: overdue().findingId,
  kind: 'missed',
  eventType: 'STOPPED',
  cause: 'unannounced_by_list',
  containerId: 'c1',
  window: { from: 50 * SECOND, to: 55 * SECOND },
  occurred: null,
  lateness: null,
  delivery: null,
  proof: {},
  ...more,
});

/** Offsets from the start of the epoch, in seconds; what is `late` is so by the two seconds of the way. */
const secondsOf = ({ latest, earliest }: { latest: number; earliest: number | null }) => ({
  latest: (latest - BASE) / SECOND,
  earliest: earliest === null ? null : (earliest - BASE) / SECOND,
});

test('an overdue transition lies in its window, at the latest as if the way had taken no time', () => {
  const { watches, unnamed } = overdueOf(batch([overdue()]));
  expect(unnamed).toEqual([]);
  expect(watches).toMatchObject([{ finding: overdue().findingId, type: 'STOPPED', object: OBJECT }]);
  expect(watches.map(secondsOf)).toEqual([{ latest: 57, earliest: 50 }]);
});

test.each([
  ['inside the window', 53, { latest: 55.5, earliest: 52.5 }],
  ['at its start', 50, { latest: 52.5, earliest: 50 }],
  ['at its end', 55, { latest: 57, earliest: 54.5 }],
  ['long before it, when lists were late', 20, { latest: 22.5, earliest: 19.5 }],
  ['after it, which cannot be', 58, { latest: 57, earliest: 50 }],
])('an exact time %s counts to half a second', (_, occurred, expected) => {
  const { watches } = overdueOf(batch([overdue({ occurred: occurred * SECOND })]));
  expect(watches.map(secondsOf)).toEqual([expected]);
  expect(closerOf(batch([finding({ occurred: occurred * SECOND })])).map(secondsOf)).toEqual([expected]);
});

test('a finding without an exact time says nothing that was not known, and one of a removal is of no concern', () => {
  expect(
    closerOf(
      batch([finding(), finding({ eventType: 'DELETED', occurred: 1 }), finding({ eventType: null })]),
    ),
  ).toEqual([]);
  const late = finding({ kind: 'late', window: null, occurred: 53 * SECOND });
  expect(closerOf(batch([late])).map(secondsOf)).toEqual([{ latest: 55.5, earliest: 52.5 }]);
});

test('a transition whose pod is not named, or not as the API server names pods, is not watched', () => {
  const hostile = [
    { namespace: '..' },
    { namespace: 'a/b' },
    { pod: '../x' },
    { pod: '' },
    { podUid: '' },
    { pod: 'P' },
  ];
  for (const names of hostile) {
    const object = { ...OBJECT, ...names };
    expect(isNamed(object)).toBe(false);
    expect(overdueOf(batch([overdue()], object))).toEqual({ watches: [], unnamed: [overdue().findingId] });
    expect(announcedOf(batch([event()], object))).toEqual([]);
  }
  expect(overdueOf({ ...batch([overdue()]), identities: new Map() }).unnamed).toEqual([overdue().findingId]);
});

test('an announced start or end may be a sample, from a second before it was heard to when it arrived', () => {
  const samples = announcedOf(batch([event({ eventType: 1 }), event()]));
  expect(samples.map(({ type }) => type)).toEqual(['STARTED', 'STOPPED']);
  expect(samples.map(secondsOf)).toEqual(Array(2).fill({ latest: 61, earliest: 58 }));
});

test.each<[string, Partial<RecordOf<'container_event'>>]>([
  ['of a sandbox', { isSandbox: true }],
  ['that was replayed', { replayed: true }],
  ['of a creation', { eventType: 0 }],
  ['of a type that nobody knows', { eventType: 77 }],
  ['that waited for its batch', { t: 40 * SECOND }],
  ['of an id that nobody knows', { containerId: 'c2' }],
])('an event %s is no sample', (_, more) => {
  expect(announcedOf(batch([event(more)]))).toEqual([]);
});

test('an event that was late is no sample, nor one that was on its way for long', () => {
  expect(announcedOf(batch([event(), finding({ findingId: randomUUID(), kind: 'late' })]))).toEqual([]);
  const slow = { ...batch([event()]), times: { ...RECEIVED, storedAt: BASE + 300 * SECOND } };
  expect(announcedOf(slow)).toEqual([]);
});
