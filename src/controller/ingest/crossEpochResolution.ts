/*
 * Misses that an event of another epoch resolves. An agent resolves its own misses as long as it runs; only the store can compare
 * what it reported before it ended with what the next incarnation receives.
 *
 *   event, then miss   the backlog of the older epoch arrives late: the misses of a batch are compared with stored events
 *   miss, then event   the events of a batch are compared with stored misses
 *
 * The rule is in findMissesResolvedByEvents.sql. A resolution becomes a record like the one that an agent would have written.
 *
 * Two batches of one node can be committed at the same time, and neither sees what the other has not committed. The caller
 * therefore holds the lock on the node's row: the second one waits for it and then sees what the first committed.
 */
import { EVENT_TYPES, type EventType, type RecordOf } from '../../protocol/record.ts';
import { literal } from '../../store/literal.ts';
import { dayOf } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { RowOf } from '../../store/statement.ts';
import type { BatchScope } from './batchScope.ts';
import { ofType, type StorableRecord } from './recordValidation.ts';
import type { BatchRecords } from './recordWriter.ts';
import { findEventsResolvingMisses, findMissesResolvedByEvents, listNodesWithMisses } from './statements.ts';

type ResolutionRow = RowOf<typeof findEventsResolvingMisses>;

/** The resolutions that the stored records of a batch cause: each finding once, at the receipt of its event. */
export async function resolveAcrossEpochs(
  runner: SqlRunner,
  scope: BatchScope,
  stored: readonly StorableRecord[],
  eventRetentionDays: number,
): Promise<StorableRecord[]> {
  const rows = [
    ...(await resolveStoredMisses(runner, scope, ofType(stored, 'container_event'), eventRetentionDays)),
    ...(await resolveNewMisses(runner, scope, ofType(stored, 'finding'))),
  ];
  return rows.map(({ finding_id: findingId, at }) => ({
    // It stands for no record of this epoch.
    seq: 0,
    at,
    record: { type: 'finding_resolved', t: at - scope.epochStart, findingId },
  }));
}

/** The batches of several nodes that may resolve something: they have misses themselves, or events of nodes with stored misses. */
export async function mayResolve<B extends BatchRecords>(
  runner: SqlRunner,
  batches: readonly B[],
  eventRetentionDays: number,
): Promise<B[]> {
  const withEvents = batches.filter(({ records }) => records.some(isEvent));
  if (withEvents.length === 0) return batches.filter(({ records }) => records.some(isMiss));
  const days = withEvents.map(({ records }) =>
    dayOf(Math.min(...records.filter(isEvent).map(({ at }) => at))),
  );
  const { rows } = await runner.run(listNodesWithMisses, [
    withEvents.map(({ scope }) => scope.nodeId),
    Math.min(...days) - eventRetentionDays,
  ]);
  const nodes = new Set(rows.map(({ node_id }) => node_id));
  return batches.filter(({ scope, records }) => nodes.has(scope.nodeId) || records.some(isMiss));
}

const isEvent = ({ record }: StorableRecord): boolean => record.type === 'container_event';
const isMiss = ({ record }: StorableRecord): boolean => record.type === 'finding' && record.kind === 'missed';

async function resolveStoredMisses(
  runner: SqlRunner,
  { nodeId, epoch }: BatchScope,
  events: readonly StorableRecord<'container_event'>[],
  eventRetentionDays: number,
): Promise<ResolutionRow[]> {
  const named = events.flatMap(({ at, record }) => {
    const eventType = EVENT_TYPES[record.eventType];
    return eventType === undefined ? [] : [{ at, containerId: record.containerId, eventType }];
  });
  if (named.length === 0) return [];
  // Older misses could not be resolved in the other order either: the events are dropped by then.
  const firstDay = dayOf(Math.min(...named.map(({ at }) => at))) - eventRetentionDays;
  const { rows } = await runner.run(findMissesResolvedByEvents, [
    nodeId,
    epoch,
    firstDay,
    named.map(({ containerId }) => containerId),
    named.map(({ eventType }) => eventType),
    literal(named, ({ at }) => at),
  ]);
  return rows;
}

async function resolveNewMisses(
  runner: SqlRunner,
  scope: BatchScope,
  findings: readonly StorableRecord<'finding'>[],
): Promise<ResolutionRow[]> {
  const misses = findings.flatMap(({ at, record }) => missOf(scope, at, record) ?? []);
  if (misses.length === 0) return [];
  const earliest = Math.min(...misses.map(({ windowEnd }) => windowEnd));
  const { rows } = await runner.run(findEventsResolvingMisses, [
    scope.nodeId,
    scope.epoch,
    misses.map(({ findingId }) => findingId),
    literal(misses, ({ containerId }) => scope.keyOf(containerId)),
    literal(misses, ({ eventType }) => EVENT_TYPES.indexOf(eventType)),
    literal(misses, ({ windowEnd }) => windowEnd),
    earliest,
    dayOf(earliest),
  ]);
  return rows;
}

interface MissedEvent {
  readonly findingId: string;
  readonly containerId: string;
  readonly eventType: EventType;
  readonly windowEnd: number;
}

/** Null for a finding that is not a miss of one container's event. */
function missOf({ epochStart }: BatchScope, at: number, record: RecordOf<'finding'>): MissedEvent | null {
  const { kind, findingId, containerId, eventType, window } = record;
  if (kind !== 'missed' || containerId === null || eventType === null) return null;
  return { findingId, containerId, eventType, windowEnd: window === null ? at : epochStart + window.to };
}
