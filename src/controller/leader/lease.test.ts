import { expect, test } from 'vitest';
import { millis, mono } from '../../protocol/units.ts';
import { heldLease, LEASE_TIMES, type Lease, LeaseObservation, parseLease, releasedLease } from './lease.ts';

const US = 'us_1';
const THEM = 'them_1';

const lease = (more: Partial<Lease> = {}): Lease => ({
  resourceVersion: '1',
  holder: THEM,
  durationMs: 15_000,
  acquiredAt: '2026-11-22T12:00:00.000000Z',
  transitions: 3,
  ...more,
});

const ms = (at: number) => mono(millis(at));
const specOf = (object: object): unknown => Reflect.get(object, 'spec');

test('a candidate takes the Lease of another only when it saw no change of it for as long as the holder asked', () => {
  const seen = new LeaseObservation();
  expect(seen.mayTake(lease(), US, ms(1_000))).toBe(false);
  expect(seen.mayTake(lease(), US, ms(15_999))).toBe(false);
  expect(seen.mayTake(lease({ resourceVersion: '2' }), US, ms(15_999))).toBe(false);
  expect(seen.mayTake(lease({ resourceVersion: '2' }), US, ms(30_998))).toBe(false);
  expect(seen.mayTake(lease({ resourceVersion: '2' }), US, ms(30_999))).toBe(true);
});

test('a candidate that has just started waits for as long as any other, whatever times the Lease has', () => {
  const seen = new LeaseObservation();
  expect(seen.mayTake(lease({ acquiredAt: '1970-01-01T00:00:00Z' }), US, ms(1e9))).toBe(false);
});

test('a Lease without a holder, or of this controller, is taken at once', () => {
  expect(new LeaseObservation().mayTake(lease({ holder: '' }), US, ms(0))).toBe(true);
  expect(new LeaseObservation().mayTake(lease({ holder: US }), US, ms(0))).toBe(true);
});

test('taking a Lease counts as a transition, renewing it does not, and both need the version that was read', () => {
  const taken = heldLease('lead', lease({ resourceVersion: '7' }), US, LEASE_TIMES);
  expect(taken.metadata).toEqual({ name: 'lead', resourceVersion: '7' });
  expect(specOf(taken)).toMatchObject({ holderIdentity: US, leaseDurationSeconds: 15, leaseTransitions: 4 });
  const renewed = heldLease('lead', lease({ holder: US }), US, LEASE_TIMES);
  expect(specOf(renewed)).toMatchObject({ leaseTransitions: 3, acquireTime: '2026-11-22T12:00:00.000000Z' });
});

test('a released Lease has no holder', () => {
  expect(specOf(releasedLease('lead', lease({ holder: US })))).toMatchObject({ holderIdentity: '' });
});

test('a Lease that was never held has no holder, and one with fields of a wrong type is refused', () => {
  const object = (more: object) => {
    const metadata = {
      name: 'lead',
      uid: '',
      resourceVersion: '1',
      creationTimestamp: null,
      ownerReferences: [],
    };
    return parseLease({ metadata, ...more });
  };
  for (const more of [{}, { spec: null }, { spec: {} }, { spec: { holderIdentity: null } }])
    expect(object(more)).toEqual({
      resourceVersion: '1',
      holder: '',
      durationMs: 0,
      acquiredAt: null,
      transitions: 0,
    });
  for (const spec of [{ holderIdentity: 5 }, 'x'])
    expect(() => object({ spec })).toThrow(expect.objectContaining({ reason: 'Unreadable' }));
});
