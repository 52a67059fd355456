/*
 * The audit of the last moments of an epoch, on records written by hand. Whole histories are in test/engine.
 */
import { expect, test } from 'vitest';
import { profileOf } from '../cri/profiles.ts';
import { type ContainerIdentity, EVENT_TYPES, type EventType, type PlegState } from '../protocol/record.ts';
import { millis, mono } from '../protocol/units.ts';
import { auditEpoch } from './epochAudit.ts';
import type { StoredChange, StoredEpoch, StoredEvent, StoredFinding, StoredRelist } from './storedEpoch.ts';

const LAST_MINUTE = 2;

test('a change that was recorded after the last minute is not blamed for the list that no minute has', async () => {
  const { differences } = await auditEpoch(epochWith(changeOf(LAST_MINUTE + 1)));
  expect(differences).toEqual([]);
});

test('a change that was recorded before the last minute needs its list', async () => {
  const { differences } = await auditEpoch(epochWith(changeOf(LAST_MINUTE - 1)));
  expect(differences).toMatchObject([{ is: 'change_without_list' }]);
});

test('a sandbox that lists only ever showed as ended may have been running in the status of an event of its container', async () => {
  const sandbox: ContainerIdentity = { ...SANDBOX, podUid: 'uid', namespace: 'shop', pod: 'cart' };
  const container = {
    ...sandbox,
    id: 'b'.repeat(64),
    isSandbox: false,
    container: 'app',
    sandbox: sandbox.id,
  };
  const sends = (seq: number, at: number, identity: ContainerIdentity, type: EventType): StoredEvent => ({
    ...{ seq, received: seconds(at), id: identity.id, identity, type: EVENT_TYPES.indexOf(type) },
    ...{ createdNs: BigInt(seconds(at)) * 1000n, replayed: false, hasSandboxStatus: true },
  });
  const shows = (at: number, identity: ContainerIdentity, oldState: PlegState, newState: PlegState) => ({
    ...{ seq: at * 10, from: seconds(at - 1.1), to: seconds(at), identity, oldState, newState },
  });
  const judged = (
    at: number,
    kind: string,
    eventType: string,
    cause: string,
    from: number,
  ): StoredFinding => ({
    ...{ seq: 1_000, at: seconds(at), findingId: eventType, kind, eventType, cause, id: sandbox.id },
    ...{ from: seconds(from), to: seconds(14), resolved: null, announcedToOther: null, proof: {} },
  });
  const relists = Array.from({ length: 59 }, (_, i): StoredRelist => {
    const call = { start: seconds(i + 0.9), end: seconds(i + 1), whole: true };
    return { sandboxes: call, containers: call, failed: false, eventsTo: seconds(i + 1) };
  });
  const end = seconds(60);
  const { differences, confirmed } = await auditEpoch({
    ...epochWith(),
    end,
    runtimes: [{ seq: 1, profile: profileOf({ name: 'iSulad', version: '2.1.6' }) }],
    sessions: [{ opened: seconds(0), closed: null, firstLiveNs: 1n }],
    events: streamOf(
      sends(1, 4.2, sandbox, 'CREATED'),
      sends(2, 4.4, container, 'CREATED'),
      sends(3, 4.6, container, 'DELETED'),
    ),
    changes: streamOf(
      shows(5, sandbox, 'non-existent', 'exited'),
      shows(14, sandbox, 'exited', 'non-existent'),
    ),
    findings: streamOf(
      judged(44, 'missed', 'DELETED', 'unannounced_by_list', 12.9),
      judged(44, 'unobservable', 'STOPPED', 'end_not_shown', 3.9),
    ),
    minutes: streamOf({ seq: 2_000, from: seconds(0), to: end, clock: 0, relists }),
    lastMinute: 2_000,
  });
  expect(differences).toEqual([]);
  expect(confirmed).toBe(2);
});

test('a lower bound by the wall clock fits within the error of that clock, also where a list shows the same as the event later', async () => {
  const earlier: ContainerIdentity = { ...SANDBOX, id: 'c'.repeat(64), sandbox: 'c'.repeat(64) };
  const sends = (seq: number, at: number, { id }: ContainerIdentity, type: EventType): StoredEvent => ({
    ...{
      seq,
      received: seconds(at),
      id,
      identity: { ...SANDBOX, id, sandbox: id },
      type: EVENT_TYPES.indexOf(type),
    },
    ...{ createdNs: BigInt(seconds(at)) * 1000n, replayed: false, hasSandboxStatus: true },
  });
  const listAt = (at: number): StoredRelist => {
    const call = { start: seconds(at - 0.1), end: seconds(at), whole: true };
    return { sandboxes: call, containers: call, failed: false, eventsTo: seconds(at) };
  };
  const exactTimes = { createdNs: '12200000000', startedNs: '0', finishedNs: '0', exitCode: 0, reason: '' };
  const end = seconds(90);
  const { differences, confirmed } = await auditEpoch({
    ...epochWith(),
    end,
    sessions: [{ opened: seconds(0), closed: null, firstLiveNs: 1n }],
    events: streamOf(
      ...EVENT_TYPES.map((type, i) => sends(1 + i, 2 + i / 10, earlier, type)),
      sends(5, 12.2, SANDBOX, 'CREATED'),
      sends(6, 12.3, SANDBOX, 'STARTED'),
      // It is announced before the sandbox leaves the list, which shows then that it ended.
      sends(7, 13.5, SANDBOX, 'DELETED'),
    ),
    changes: streamOf<StoredChange>(
      {
        seq: 8,
        from: seconds(12.9),
        to: seconds(14),
        identity: SANDBOX,
        oldState: 'non-existent',
        newState: 'exited',
      },
      {
        seq: 10,
        from: seconds(13.9),
        to: seconds(60),
        identity: SANDBOX,
        oldState: 'exited',
        newState: 'non-existent',
      },
    ),
    findings: streamOf<StoredFinding>({
      ...{ seq: 9, at: seconds(44.2), findingId: 'f', kind: 'missed', eventType: 'STOPPED', id: SANDBOX.id },
      // Half a second before its creation, by a clock that the agent read another time.
      ...{ cause: 'unannounced_by_list', from: seconds(11.7007), to: seconds(14), resolved: null },
      ...{ announcedToOther: null, proof: { evidence: 'listed exited', exactTimes } },
    }),
    // For longer than a miss takes no list confirms that it is gone.
    minutes: streamOf({
      ...{ seq: 2_000, from: seconds(0), to: end, clock: 0 },
      relists: [...Array.from({ length: 14 }, (_, i) => listAt(i + 1)), listAt(60)],
    }),
    lastMinute: 2_000,
  });
  expect(differences).toEqual([]);
  expect(confirmed).toBe(1);
});

test.each([
  ['undecided', 'a moment', 11.9003, 0],
  ['wrong', 'long', 13.5, 1],
])(
  'a stale event is %s if it was built %s after the list began, by the clock of the audit',
  async (_verdict, _when, built, differ) => {
    const listAt = (at: number): StoredRelist => {
      const call = { start: seconds(at - 0.1), end: seconds(at), whole: true };
      return { sandboxes: call, containers: call, failed: false, eventsTo: seconds(at) };
    };
    const earlier: ContainerIdentity = { ...SANDBOX, id: 'c'.repeat(64), sandbox: 'c'.repeat(64) };
    const created = (
      seq: number,
      received: number,
      at: number,
      identity: ContainerIdentity,
    ): StoredEvent => ({
      ...{ seq, received: seconds(received), id: identity.id, identity, type: 0 },
      ...{ createdNs: BigInt(seconds(at)) * 1000n, replayed: false, hasSandboxStatus: false },
    });
    const end = seconds(30);
    const { differences } = await auditEpoch({
      ...epochWith(),
      end,
      sessions: [{ opened: seconds(0), closed: null, firstLiveNs: 1n }],
      events: streamOf(created(1, 2, 2, earlier), created(3, 20, built, SANDBOX)),
      changes: streamOf<StoredChange>({
        ...{ seq: 2, from: seconds(10.9), to: seconds(12), identity: SANDBOX },
        ...{ oldState: 'non-existent', newState: 'running' },
      }),
      findings: streamOf<StoredFinding>({
        ...{ seq: 4, at: seconds(20), findingId: 'f', kind: 'stale', eventType: 'CREATED', id: SANDBOX.id },
        ...{ cause: 'after_the_list', from: null, to: null, resolved: null, announcedToOther: null },
        proof: { received: seconds(20), list: { from: seconds(11.9), to: seconds(12) } },
      }),
      minutes: streamOf({
        ...{ seq: 2_000, from: seconds(0), to: end, clock: 0 },
        relists: Array.from({ length: 29 }, (_each, i) => listAt(i + 1)),
      }),
      lastMinute: 2_000,
    });
    expect(differences.filter(({ is }) => is === 'wrong_finding')).toHaveLength(differ);
  },
);

const seconds = (s: number) => mono(Math.round(s * 1e6));

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

/** Ten seconds without a subscription, and one minute without a relist, in which these were found. */
function epochWith(...changes: StoredChange[]): StoredEpoch {
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
    changes: streamOf(...changes),
    findings: streamOf(),
    minutes: streamOf({ seq: LAST_MINUTE, from: mono(0), to: end, clock: 0, relists: [] }),
  };
}

async function* streamOf<T>(...values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}
