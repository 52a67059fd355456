/*
 * The identity of an id: what events and lists know of it is combined.
 */
import { expect, test } from 'vitest';
import { CONTAINERD, identityOf, seconds } from '../../../test/engine/timeline.ts';
import { type ContainerIdentity, EVENT_TYPES } from '../../protocol/record.ts';
import { millis, mono } from '../../protocol/units.ts';
import { Comparison } from './comparison.ts';

function watching(): Comparison {
  const comparison = new Comparison({
    epochStart: mono(0),
    overdueAfter: millis(2_000),
    missedAfter: millis(30_000),
    lateAfter: millis(1_000),
    kubeletLateAfter: millis(10_000),
    profile: CONTAINERD,
    mintId: () => '',
  });
  comparison.subscribed(1, seconds(0), 0n);
  return comparison;
}

/** Receives an event of c1, and returns its identity in the record of the event. */
function receive(
  comparison: Comparison,
  at: number,
  object: ContainerIdentity | null,
): ContainerIdentity | null {
  comparison.received({
    session: 1,
    received: seconds(at),
    id: 'c1',
    type: EVENT_TYPES.indexOf('CREATED'),
    createdNs: 1n,
    hasSandboxStatus: object !== null,
    object,
    times: null,
    others: [],
  });
  const [first] = comparison.take().emissions;
  return first?.object ?? null;
}

const whole = identityOf('c1');
const lacking = { ...whole, pod: '', namespace: '' };

test('an event completes the identity of an earlier one', () => {
  const comparison = watching();
  expect(receive(comparison, 1, lacking)).toEqual(lacking);
  expect(receive(comparison, 2, whole)).toEqual(whole);
  expect(receive(comparison, 3, lacking)).toEqual(whole);
});

test('a list completes the identity of an event', () => {
  const comparison = watching();
  receive(comparison, 1, lacking);
  const answer = { start: seconds(2), end: seconds(2.1), whole: true };
  comparison.relisted({
    sandboxes: { ...answer, items: new Map() },
    containers: { ...answer, items: new Map([['c1', { object: whole, state: 'created' }]]) },
  });
  comparison.take();
  expect(receive(comparison, 3, null)).toEqual(whole);
});
