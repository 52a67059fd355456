/*
 * What an audit makes of the last moments of an epoch, on records written by hand. Whole histories are in test/engine.
 */
import { expect, test } from 'vitest';
import { profileOf } from '../cri/profiles.ts';
import type { ContainerIdentity } from '../protocol/record.ts';
import { millis, mono } from '../protocol/units.ts';
import { auditEpoch } from './epochAudit.ts';
import type { StoredChange, StoredEpoch } from './storedEpoch.ts';

const LAST_MINUTE = 2;

test('a change that was recorded after the last minute is not blamed for the list that no minute has', async () => {
  const { differences } = await auditEpoch(epochWith(changeOf(LAST_MINUTE + 1)));
  expect(differences).toEqual([]);
});

test('a change that was recorded before the last minute needs its list', async () => {
  const { differences } = await auditEpoch(epochWith(changeOf(LAST_MINUTE - 1)));
  expect(differences).toMatchObject([{ is: 'change_without_list' }]);
});

const SANDBOX: ContainerIdentity = {
  id: 'a'.repeat(64),
  isSandbox: true,
  podUid: '',
  namespace: '',
  pod: '',
  container: '',
  sandbox: '',
  attempt: 0,
};

function changeOf(seq: number): StoredChange {
  return {
    seq,
    from: mono(8_000_000),
    to: mono(9_000_000),
    identity: SANDBOX,
    oldState: 'non-existent',
    newState: 'running',
  };
}

/** Ten seconds without a subscription, and one minute without a relist. */
function epochWith(change: StoredChange): StoredEpoch {
  const end = mono(10_000_000);
  return {
    start: mono(0),
    end,
    lastMinute: LAST_MINUTE,
    clock: 0,
    settings: { overdueAfter: millis(5_000), missedAfter: millis(30_000), lateAfter: millis(1_000) },
    runtimes: [{ seq: 1, profile: profileOf({ name: 'containerd', version: '2.1.4' }) }],
    sessions: [],
    gaps: [],
    kubeletGaps: [],
    initial: [],
    events: streamOf(),
    changes: streamOf(change),
    findings: streamOf(),
    minutes: streamOf({ seq: LAST_MINUTE, from: mono(0), to: end, clock: 0, relists: [], complete: true }),
  };
}

async function* streamOf<T>(...values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}
