/*
 * The audit of findings about kubelet lag, on records written by hand. Whole histories are in test/engine.
 */
import { describe, expect, test } from 'vitest';
import { type Mono, mono } from '../protocol/units.ts';
import type { Difference } from './difference.ts';
import { KubeletLateAudit } from './kubeletLateAudit.ts';
import { RecentRecords } from './recentRecords.ts';
import type { StoredChange, StoredFinding, StoredGap } from './storedEpoch.ts';

const seconds = (s: number): Mono => mono(s * 1_000_000);

/** A list at 10 s finds that c1 has stopped since the one that began at 5 s. */
const CHANGE: StoredChange = {
  seq: 1,
  from: seconds(5),
  to: seconds(10),
  identity: {
    ...{ id: 'c1', sandbox: 's1', isSandbox: false, podUid: 'u1', namespace: 'default' },
    ...{ pod: 'p1', container: 'app', attempt: 0 },
  },
  oldState: 'running',
  newState: 'exited',
};
const PROOF = {
  evidence: 'listed exited',
  asked: 20_000_000,
  answered: 20_100_000,
  lateAfter: 10_000_000,
  watchSince: 1_000_000,
  podState: 'running',
};
const FINDING: StoredFinding = {
  ...{
    seq: 2,
    at: seconds(23),
    findingId: 'f1',
    kind: 'kubelet_late',
    eventType: 'STOPPED',
    cause: 'not_shown',
  },
  ...{ id: 'c1', from: seconds(5), to: seconds(10), resolved: null, announcedToOther: null, proof: PROOF },
};

function audited(finding: StoredFinding, { gaps = [], whyUndecided = null }: Conditions = {}): Audited {
  const audit = new KubeletLateAudit(gaps, new RecentRecords(), () => whyUndecided);
  audit.add(CHANGE);
  const differences = audit.judge(finding);
  return { differences, confirmed: audit.confirmed, undecided: audit.undecided };
}

interface Conditions {
  readonly gaps?: readonly StoredGap[];
  readonly whyUndecided?: string | null;
}

interface Audited {
  readonly differences: readonly Difference[];
  readonly confirmed: number;
  readonly undecided: ReadonlyMap<string, number>;
}

const gap = (from: number, to: number | null): StoredGap => ({
  cause: 'kubelet_restarted',
  from: seconds(from),
  to: to === null ? null : seconds(to),
});

test('a late stop is confirmed by the list that found it, where no gap lies between the list before and the answer', () => {
  const gaps = [gap(2, 4), gap(21, null)];
  expect(audited(FINDING, { gaps })).toEqual({ differences: [], confirmed: 1, undecided: new Map() });
});

test('a late start that a status proves is confirmed by the list that found the container exited before', () => {
  const proof = { ...PROOF, evidence: 'started_at in its status', podState: 'waiting' };
  const to = seconds(10.3);
  const finding = {
    ...FINDING,
    eventType: 'STARTED',
    to,
    proof: { ...proof, asked: 20_400_000, answered: 20_500_000 },
  };
  expect(audited(finding).differences).toEqual([]);
});

describe('late statuses that the records do not bear out', () => {
  const wrong: Readonly<Record<string, readonly [StoredFinding, Conditions?]>> = {
    'a window that no list on record ends': [{ ...FINDING, to: seconds(9) }],
    'a window that no list on record begins': [{ ...FINDING, from: seconds(4) }],
    'a start that a list found to be a stop': [
      {
        ...FINDING,
        eventType: 'STARTED',
        proof: { ...PROOF, evidence: 'listed running', podState: 'waiting' },
      },
    ],
    'a gap of the watch that begins before the answer': [FINDING, { gaps: [gap(20, null)] }],
    'a gap of the watch that ends after the list before': [FINDING, { gaps: [gap(2, 6)] }],
    'a question from before the deadline': [{ ...FINDING, proof: { ...PROOF, asked: 19_000_000 } }],
    'an answer from before its question': [{ ...FINDING, proof: { ...PROOF, answered: 19_000_000 } }],
    'a deadline that no setting allows': [{ ...FINDING, proof: { ...PROOF, lateAfter: 1_000_000 } }],
    'a watch that began within the window': [{ ...FINDING, proof: { ...PROOF, watchSince: 6_000_000 } }],
    'an answer that shows the stop': [{ ...FINDING, proof: { ...PROOF, podState: 'terminated' } }],
    'a proof without a question': [{ ...FINDING, proof: { ...PROOF, asked: null } }],
    'a resolution from before the question': [{ ...FINDING, resolved: seconds(15) }],
  };
  test.each(Object.entries(wrong))('%s is a difference', (_name, [finding, conditions]) => {
    expect(audited(finding, conditions)).toMatchObject({
      differences: [{ is: 'unproven_kubelet_late' }],
      confirmed: 0,
    });
  });

  test('a late status that the records cannot decide is no difference', () => {
    const { differences, undecided } = audited({ ...FINDING, to: seconds(9) }, { whyUndecided: 'too early' });
    expect({ differences, undecided }).toEqual({ differences: [], undecided: new Map([['too early', 1]]) });
  });
});
