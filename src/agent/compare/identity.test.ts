/*
 * Who an id is: what events and lists say of it adds up.
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
    profile: CONTAINERD,
    mintId: () => '',
  });
  comparison.subscribed(1, seconds(0), 0n);
  return comparison;
}

/** Hears of c1, and says who that is in the record of the event. */
function hear(
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
  const [told] = comparison.take().emissions;
  return told?.object ?? null;
}

const whole = identityOf('c1');
const lacking = { ...whole, pod: '', namespace: '' };

test('an event completes what an earlier one lacked', () => {
  const comparison = watching();
  expect(hear(comparison, 1, lacking)).toEqual(lacking);
  expect(hear(comparison, 2, whole)).toEqual(whole);
  expect(hear(comparison, 3, lacking)).toEqual(whole);
});

test('a list completes what an event lacked', () => {
  const comparison = watching();
  hear(comparison, 1, lacking);
  const answer = { start: seconds(2), end: seconds(2.1), whole: true };
  comparison.relisted({
    sandboxes: { ...answer, items: new Map() },
    containers: { ...answer, items: new Map([['c1', { object: whole, state: 'created' }]]) },
  });
  comparison.take();
  expect(hear(comparison, 3, null)).toEqual(whole);
});
