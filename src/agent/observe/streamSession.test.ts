import { expect, test } from 'vitest';
import { mono, wall } from '../../protocol/units.ts';
import { streamReason } from './streamSession.ts';

const POLICY = 'containerd 2 gives every subscriber every event';
const clocks = { now: mono(90_000_000), wall: wall(Date.UTC(2026, 0, 1, 12) * 1000) };
const starved = { findingId: '', since: mono(30_000_000), changes: 12, relists: 4 };

test('the reason of an arming stream is what is not proven yet, and why', () => {
  expect(streamReason('Arming', POLICY, null, clocks)).toBe(
    'subscribed, but the runtime sends nothing before its first event: nothing proves yet that events arrive',
  );
});

test('the reason of a starved stream is since when no event came, and what proves that some were due', () => {
  expect(streamReason('Starved', POLICY, starved, clocks)).toBe(
    'no event of any id since 2026-01-01T11:59:00Z while 4 lists proved 12 changes: another subscriber may not be reading, or the runtime stalls',
  );
});

test('the reason of a silent stream is that no event came at all', () => {
  expect(streamReason('Silent', POLICY, null, clocks)).toBe(
    'no event since the subscription, although lists proved changes',
  );
});

test('the reason of an active stream is the policy', () => {
  expect(streamReason('Active', POLICY, null, clocks)).toBe(POLICY);
});
