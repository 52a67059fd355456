/*
 * The content of a store after an agent has watched a history. For tests.
 */
import type { StoredEpoch, StoredFinding, StoredRelist } from '../../../src/audit/storedEpoch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../../src/protocol/record.ts';
import { type Mono, millis, mono } from '../../../src/protocol/units.ts';
import { handedOverAt, PROFILES, runComparison } from './comparisonRun.ts';
import { type GroundTruth, wallAt } from './groundTruth.ts';
import { HORIZON, LATE_AFTER, MISSED_AFTER, OVERDUE_AFTER } from './history.ts';

const MINUTE = 60_000;
const us = (ms: number): Mono => mono(ms * 1000);

/** It can be read more than once. */
const streamOf = <T>(values: readonly T[]): AsyncIterable<T> => ({
  async *[Symbol.asyncIterator]() {
    yield* values;
  },
});

export function storedEpochOf(truth: GroundTruth): StoredEpoch {
  const { emissions, streamGaps: gaps } = runComparison(truth);
  const identities = new Map<string, ContainerIdentity>();
  for (const { object } of emissions) if (object !== null) identities.set(object.id, object);
  const records = emissions.map(({ record }, i) => ({ seq: i + 1, record }));
  const events = records.flatMap(({ seq, record }) =>
    record.type === 'container_event'
      ? [
          {
            seq,
            received: mono(record.t),
            id: record.containerId,
            identity: identities.get(record.containerId) ?? null,
            type: record.eventType,
            createdNs: BigInt(record.createdNs),
            replayed: record.replayed,
            hasSandboxStatus: record.hasSandboxStatus,
          },
        ]
      : [],
  );
  const changes = records.flatMap(({ seq, record }) => {
    const identity = record.type === 'relist_change' ? identities.get(record.containerId) : undefined;
    if (record.type !== 'relist_change' || identity === undefined) return [];
    const { window, oldState, newState, isSandbox } = record;
    return [
      {
        seq,
        from: mono(window.from),
        to: mono(window.to),
        identity: { ...identity, isSandbox },
        oldState,
        newState,
      },
    ];
  });
  const resolved = new Map(
    records.flatMap(({ record }) =>
      record.type === 'finding_resolved' ? [[record.findingId, mono(record.t)] as const] : [],
    ),
  );
  const findings = records.flatMap(({ seq, record }): StoredFinding[] => {
    if (record.type !== 'finding') return [];
    const { t, findingId, kind, eventType, cause, containerId: id, window, proof } = record;
    const [from, to] = [window?.from, window?.to].map((at) => (at === undefined ? null : mono(at)));
    return [
      {
        ...{
          seq,
          at: mono(t),
          findingId,
          kind,
          eventType,
          cause,
          id,
          from: from ?? null,
          to: to ?? null,
          proof,
        },
        ...{ resolved: resolved.get(findingId) ?? null, announcedToOther: null },
      },
    ];
  });
  const first = new Map(changes.toReversed().map((change) => [change.identity.id, change]));
  const handedOver = truth.deliveries.map((delivery) => ({
    at: handedOverAt(truth, delivery),
    received: delivery.received,
  }));
  // An event that is handed over at the time of a relist is compared before it.
  const eventsTo = (ms: number): Mono =>
    us(handedOver.reduce((last, { at, received }) => (at <= ms ? Math.max(last, received) : last), -1));
  const relists = [
    ...truth.lists.map(({ sandboxes, containers, whole, compared }) => ({
      compared,
      relist: {
        sandboxes: { start: us(sandboxes.start), end: us(sandboxes.end), whole },
        containers: { start: us(containers.start), end: us(containers.end), whole },
        failed: false,
        eventsTo: eventsTo(compared),
      },
    })),
    ...truth.failures.map((ms) => {
      const call = { start: us(ms), end: us(ms), whole: true };
      return {
        compared: ms,
        relist: { sandboxes: call, containers: call, failed: true, eventsTo: eventsTo(ms) },
      };
    }),
  ].sort((a, b) => a.compared - b.compared);
  const kept = withoutCalm(relists, records);
  const end = Math.max(HORIZON, (relists.at(-1)?.compared ?? 0) + 1);
  const minutes = Array.from({ length: Math.ceil(end / MINUTE) }, (_, i) => {
    const [from, to] = [i * MINUTE, Math.min(end, (i + 1) * MINUTE)];
    // The wall clock is read to the millisecond, the monotonic clock to the microsecond.
    const clock = (wallAt(truth.history, to) - to) * 1000 - ((truth.history.salt + i * 7919) % 1000);
    const ofMinute = kept.filter(({ compared }) => compared >= from && compared < to);
    return {
      seq: records.length + i + 1,
      from: us(from),
      to: us(to),
      clock,
      relists: ofMinute.map(({ relist }) => relist),
    };
  });
  return {
    start: us(0),
    end: us(end),
    lastMinute: records.length + minutes.length,
    clock: wallAt(truth.history, 0) * 1000,
    settings: {
      overdueAfter: millis(OVERDUE_AFTER),
      missedAfter: millis(MISSED_AFTER),
      lateAfter: millis(LATE_AFTER),
    },
    runtimes: [{ seq: 1, profile: PROFILES[truth.history.runtime] }],
    sessions: truth.sessions.map(({ opened, closed }) => ({
      opened: us(opened),
      closed: closed < HORIZON ? us(closed) : null,
      firstLiveNs:
        events.find(({ received, replayed }) => !replayed && received >= us(opened) && received <= us(closed))
          ?.createdNs ?? null,
    })),
    gaps,
    kubeletGaps: truth.kubelet.watches.flatMap(({ closed }, i) =>
      closed < HORIZON
        ? [
            {
              cause: 'kubelet_restarted',
              from: us(closed),
              to: us(truth.kubelet.watches[i + 1]?.synced ?? HORIZON),
            },
          ]
        : [],
    ),
    initial: [...first.values()].flatMap(({ identity, oldState }) =>
      oldState === 'non-existent' ? [] : [{ identity, state: oldState }],
    ),
    events: streamOf(events),
    changes: streamOf(changes),
    findings: streamOf(findings),
    minutes: streamOf(minutes),
  };
}

interface ComparedRelist {
  readonly compared: number;
  readonly relist: StoredRelist;
}

/** For a stretch in which nothing happened an agent says the times of the first relist and of the last two. */
function withoutCalm(
  relists: readonly ComparedRelist[],
  records: readonly { readonly record: EvidenceRecord }[],
): ComparedRelist[] {
  const disturbed = relists.filter(
    ({ relist: { sandboxes, containers, failed } }) => failed || !sandboxes.whole || !containers.whole,
  );
  const times = [
    ...records.map(({ record }) => record.t / 1000),
    ...disturbed.map(({ compared }) => compared),
  ];
  return relists.filter((_, i) => {
    const [before, next] = [relists[i - 1], relists[i + 2]];
    if (before === undefined || next === undefined) return true;
    return times.some((at) => at >= before.compared && at <= next.compared);
  });
}
