/*
 * Writes the records of a batch: the columns of each type, and the rows of `store.container` that events and changes refer to.
 */
import { messageOf } from '../../platform/errors.ts';
import { plegEventMask } from '../../protocol/plegEventMask.ts';
import type { RecordType } from '../../protocol/record.ts';
import { changeStates, eventFlags } from '../../protocol/storedRecord.ts';
import { databaseErrorKind } from '../../store/databaseError.ts';
import { literal } from '../../store/literal.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { command } from '../../store/statement.ts';
import type { BatchScope } from './batchScope.ts';
import { containerRows } from './containerRows.ts';
import { refusedByDatabase, type StorableRecord, type UnstorableRecord } from './recordValidation.ts';
import {
  type BatchRecords,
  keysOf,
  type RecordWriter,
  recordWriter,
  type ScopedRecord,
  timeOf,
} from './recordWriter.ts';
import { writeRelistMinutes } from './relistMinuteWriter.ts';
import {
  insertContainerEvents,
  insertFindings,
  insertFindingUpdates,
  insertModeChanges,
  insertRelistChanges,
  updateNodeState,
  upsertContainers,
  upsertGaps,
  upsertStreamSessions,
} from './statements.ts';

/** Writes records of any type, of batches each of which is of another node. Throws if a record turns out to be stored already. */
export async function writeRecords(
  runner: SqlRunner,
  cluster: number,
  batches: readonly BatchRecords[],
): Promise<void> {
  await writeContainers(runner, cluster, batches);
  for (const write of Object.values(WRITERS)) await write(runner, cluster, batches);
}

const savepoint = command('SAVEPOINT record');
const rollbackToSavepoint = command('ROLLBACK TO SAVEPOINT record');
const releaseSavepoint = command('RELEASE SAVEPOINT record');

export interface WrittenRecords {
  readonly stored: readonly StorableRecord[];
  readonly refused: readonly UnstorableRecord[];
}

/** Writes each record under its own savepoint, and divides them into those that the database took and those it refused. */
export async function writeOneByOne(
  runner: SqlRunner,
  scope: BatchScope,
  records: readonly StorableRecord[],
): Promise<WrittenRecords> {
  const stored: StorableRecord[] = [];
  const refused: UnstorableRecord[] = [];
  for (const record of records) {
    await runner.run(savepoint);
    try {
      await writeRecords(runner, scope.clusterId, [{ scope, records: [record] }]);
      stored.push(record);
    } catch (error) {
      if (databaseErrorKind(error) !== 'data') throw error;
      await runner.run(rollbackToSavepoint);
      refused.push(refusedByDatabase(record, messageOf(error)));
    }
    await runner.run(releaseSavepoint);
  }
  return { stored, refused };
}

async function writeContainers(
  runner: SqlRunner,
  cluster: number,
  batches: readonly BatchRecords[],
): Promise<void> {
  const rows = batches.flatMap(({ scope, records }) =>
    containerRows(records, scope).map((row) => ({ ...row, nodeId: scope.nodeId })),
  );
  if (rows.length === 0) return;
  await runner.run(upsertContainers, [
    cluster,
    literal(rows, ({ nodeId }) => nodeId),
    literal(rows, ({ key }) => key),
    literal(rows, ({ sandboxKey }) => sandboxKey),
    literal(rows, ({ day }) => day),
    literal(rows, ({ attempt }) => attempt),
    rows.map(({ id }) => id),
    rows.map(({ podUid }) => podUid),
    rows.map(({ namespace }) => namespace),
    rows.map(({ pod }) => pod),
    rows.map(({ container }) => container),
  ]);
}

const writeContainerEvents = recordWriter('container_event', insertContainerEvents, (rows) => [
  ...keysOf(rows),
  literal(rows, ({ record }) => `${BigInt(record.createdNs)}`),
  literal(rows, ({ scope, record }) => scope.keyOf(record.containerId)),
  literal(rows, ({ record }) => eventFlags(record)),
]);

const writeRelistChanges = recordWriter('relist_change', insertRelistChanges, (rows) => [
  ...keysOf(rows),
  literal(rows, ({ scope, record }) => scope.epochStart + record.window.from),
  literal(rows, ({ scope, record }) => scope.epochStart + record.window.to),
  literal(rows, ({ scope, record }) => scope.keyOf(record.containerId)),
  literal(rows, ({ record }) => changeStates(record)),
  literal(rows, ({ record }) => plegEventMask(record.oldState, record.newState)),
]);

const writeFindings = recordWriter('finding', insertFindings, (rows) => {
  const identities = rows.map(({ scope, record: { containerId } }) =>
    containerId === null ? undefined : scope.identities.get(containerId),
  );
  return [
    ...keysOf(rows),
    rows.map(({ record }) => record.findingId),
    rows.map(({ record }) => record.kind),
    rows.map(({ record }) => record.eventType),
    rows.map(({ record }) => record.cause),
    rows.map(({ record }) => record.containerId),
    identities.map((identity) => identity?.podUid || null),
    identities.map((identity) => identity?.namespace || null),
    identities.map((identity) => identity?.pod || null),
    // Empty for a sandbox; null for a container whose name is not known.
    identities.map((identity) => (identity?.isSandbox ? '' : identity?.container || null)),
    rows.map(({ scope, record }) => timeOf(scope, record.window?.from ?? null)),
    rows.map(({ scope, record }) => timeOf(scope, record.window?.to ?? null)),
    rows.map(({ scope, record }) => timeOf(scope, record.occurred)),
    rows.map(({ record }) => record.lateness),
    rows.map(({ record }) => record.delivery),
    rows.map(({ record }) => JSON.stringify(record.proof)),
  ];
});

/** Both types say only that something happened to a finding: each is a row of store.finding_update. */
const findingUpdateWriter = (type: 'finding_resolved' | 'event_overdue', what: 'resolved' | 'overdue') =>
  recordWriter(type, insertFindingUpdates, (rows) => [
    literal(rows, ({ scope }) => scope.nodeId),
    rows.map(({ record }) => record.findingId),
    rows.map(() => what),
    rows.map(({ at }) => at),
    rows.map(({ record }) => ('cause' in record ? record.cause : null)),
  ]);

export const writeResolutions = findingUpdateWriter('finding_resolved', 'resolved');

const writeStreamSessions = recordWriter('stream_session', upsertStreamSessions, (rows) => [
  literal(rows, ({ scope }) => scope.nodeId),
  literal(rows, ({ scope }) => scope.contextId),
  rows.map(({ scope }) => scope.epoch),
  rows.map(({ seq }) => seq),
  rows.map(({ record }) => record.sessionNo),
  rows.map(({ scope, record }) => scope.epochStart + record.opened),
  rows.map(({ scope, record }) => timeOf(scope, record.armed)),
  rows.map(({ scope, record }) => timeOf(scope, record.closed)),
  rows.map(({ record }) => record.code),
  rows.map(({ record }) => record.message),
  rows.map(({ record }) => record.events),
  rows.map(({ record }) => record.replayed),
]);

const writeGaps = recordWriter('gap', upsertGaps, (rows) => [
  literal(rows, ({ scope }) => scope.nodeId),
  rows.map(({ scope }) => scope.epoch),
  rows.map(({ record }) => record.gapId),
  rows.map(({ record }) => record.scope),
  rows.map(({ record }) => record.cause),
  rows.map(({ scope, record }) => scope.epochStart + record.from),
  rows.map(({ scope, record }) => timeOf(scope, record.to)),
]);

const writeModeChanges = recordWriter('mode_change', insertModeChanges, (rows) => [
  ...keysOf(rows),
  rows.map(({ scope, record }) => scope.epochStart + record.notBefore),
  rows.map(({ record }) => record.model),
  rows.map(({ record }) => record.from),
  rows.map(({ record }) => record.to),
  rows.map(({ record }) => record.reason),
  rows.map(({ record }) => JSON.stringify(record.proof)),
]);

const writeNodeState = recordWriter('node_state', updateNodeState, (rows) => {
  // Only the latest state of a batch can win, and each batch is of another node.
  const latest = new Map<number, ScopedRecord<'node_state'>>();
  for (const row of rows) {
    const { nodeId } = row.scope;
    if (row.seq > (latest.get(nodeId)?.seq ?? 0)) latest.set(nodeId, row);
  }
  const states = [...latest.values()];
  return [
    literal(states, ({ scope }) => scope.nodeId),
    literal(states, ({ scope }) => scope.incarnation),
    literal(states, ({ seq }) => seq),
    states.map(({ record }) => record.stream.state),
    states.map(({ scope, record }) => scope.epochStart + record.stream.since),
    states.map(({ record }) => record.stream.reason),
    states.map(({ record }) => record.stream.lastError),
    states.map(({ record }) => record.relist.healthy),
    states.map(({ record }) => record.relist.reason),
    states.map(({ record }) => record.model),
    states.map(({ record }) => record.mode),
    states.map(({ scope, record }) => scope.epochStart + record.modeSince),
    states.map(({ record }) => record.modeReason),
    states.map(({ record }) => record.kubeletStreamErrors ?? null),
    states.map(({ record }) => record.kubeletError ?? null),
    states.map(({ record }) => record.kubeletIdentity ?? null),
    states.map(({ record }) => record.podsApi?.state ?? null),
    states.map(({ record }) => record.podsApi?.reason ?? null),
  ];
});

const WRITERS: Readonly<Record<RecordType, RecordWriter>> = {
  container_event: writeContainerEvents,
  relist_change: writeRelistChanges,
  relist_minute: writeRelistMinutes,
  finding: writeFindings,
  finding_resolved: writeResolutions,
  event_overdue: findingUpdateWriter('event_overdue', 'overdue'),
  stream_session: writeStreamSessions,
  gap: writeGaps,
  mode_change: writeModeChanges,
  node_state: writeNodeState,
};
