/*
 * Writes the records of a batch: the columns of each type, and the rows of `store.container` that events and changes refer to.
 */
import { messageOf } from '../../platform/errors.ts';
import { PLEG_STATES, type RecordOf, type RecordType } from '../../protocol/record.ts';
import { databaseErrorKind } from '../store/databaseError.ts';
import { literal } from '../store/literal.ts';
import type { SqlRunner } from '../store/store.ts';
import type { BatchScope } from './batchScope.ts';
import { containerRows } from './containerRows.ts';
import { plegEventMask } from './plegEventMask.ts';
import { refusedByDatabase, type StorableRecord, type UnstorableRecord } from './recordValidation.ts';
import { keysOf, type RecordWriter, recordWriter, timeOf } from './recordWriter.ts';
import { writeRelistMinutes } from './relistMinuteWriter.ts';
import insertContainerEvents from './sql/insertContainerEvents.sql';
import insertFindings from './sql/insertFindings.sql';
import insertFindingUpdates from './sql/insertFindingUpdates.sql';
import insertModeChanges from './sql/insertModeChanges.sql';
import insertRelistChanges from './sql/insertRelistChanges.sql';
import updateNodeState from './sql/updateNodeState.sql';
import upsertContainers from './sql/upsertContainers.sql';
import upsertGaps from './sql/upsertGaps.sql';
import upsertStreamSessions from './sql/upsertStreamSessions.sql';

// The bits of store.container_event.flags and store.relist_change.states.
const REPLAYED = 256;
const HAS_SANDBOX_STATUS = 512;
const EVENT_OF_SANDBOX = 1024;
const CHANGE_OF_SANDBOX = 256;

/** Writes records of any type. Throws if a record turns out to be stored already. */
export async function writeRecords(
  runner: SqlRunner,
  scope: BatchScope,
  records: readonly StorableRecord[],
): Promise<void> {
  await writeContainers(runner, scope, records);
  for (const write of Object.values(WRITERS)) await write(runner, scope, records);
}

/** Writes each record under its own savepoint, and divides them into those that the database took and those it refused. */
export async function writeOneByOne(
  runner: SqlRunner,
  scope: BatchScope,
  records: readonly StorableRecord[],
): Promise<{ stored: StorableRecord[]; refused: UnstorableRecord[] }> {
  const stored: StorableRecord[] = [];
  const refused: UnstorableRecord[] = [];
  for (const record of records) {
    await runner.run({ text: 'SAVEPOINT record' });
    try {
      await writeRecords(runner, scope, [record]);
      stored.push(record);
    } catch (error) {
      if (databaseErrorKind(error) !== 'data') throw error;
      await runner.run({ text: 'ROLLBACK TO SAVEPOINT record' });
      refused.push(refusedByDatabase(record, messageOf(error)));
    }
    await runner.run({ text: 'RELEASE SAVEPOINT record' });
  }
  return { stored, refused };
}

async function writeContainers(
  runner: SqlRunner,
  scope: BatchScope,
  records: readonly StorableRecord[],
): Promise<void> {
  const rows = containerRows(records, scope);
  if (rows.length === 0) return;
  await runner.run({ name: 'upsert_containers', text: upsertContainers }, [
    scope.nodeId,
    scope.clusterId,
    literal(rows, ({ key }) => key),
    literal(rows, ({ sandboxKey }) => sandboxKey),
    literal(rows, ({ day }) => day),
    literal(rows, ({ flags }) => flags),
    literal(rows, ({ attempt }) => attempt),
    literal(rows, ({ id }) => id),
    rows.map(({ podUid }) => podUid),
    rows.map(({ namespace }) => namespace),
    rows.map(({ pod }) => pod),
    rows.map(({ container }) => container),
  ]);
}

function eventFlags({
  eventType,
  replayed,
  hasSandboxStatus,
  isSandbox,
}: RecordOf<'container_event'>): number {
  return (
    eventType |
    (replayed ? REPLAYED : 0) |
    (hasSandboxStatus ? HAS_SANDBOX_STATUS : 0) |
    (isSandbox ? EVENT_OF_SANDBOX : 0)
  );
}

const changeStates = ({ oldState, newState, isSandbox }: RecordOf<'relist_change'>): number =>
  PLEG_STATES.indexOf(oldState) | (PLEG_STATES.indexOf(newState) << 4) | (isSandbox ? CHANGE_OF_SANDBOX : 0);

const writeContainerEvents = recordWriter('container_event', {
  statement: { name: 'insert_container_events', text: insertContainerEvents },
  oneRowEach: true,
  values: (scope, rows) => [
    ...keysOf(scope, rows),
    literal(rows, ({ record }) => record.createdNs),
    literal(rows, ({ record }) => scope.keyOf(record.containerId)),
    literal(rows, ({ record }) => eventFlags(record)),
  ],
});

const writeRelistChanges = recordWriter('relist_change', {
  statement: { name: 'insert_relist_changes', text: insertRelistChanges },
  oneRowEach: true,
  values: (scope, rows) => [
    ...keysOf(scope, rows),
    literal(rows, ({ record }) => scope.epochStart + record.window.from),
    literal(rows, ({ record }) => scope.epochStart + record.window.to),
    literal(rows, ({ record }) => scope.keyOf(record.containerId)),
    literal(rows, ({ record }) => changeStates(record)),
    literal(rows, ({ record }) => plegEventMask(record.oldState, record.newState)),
  ],
});

const writeFindings = recordWriter('finding', {
  statement: { text: insertFindings },
  oneRowEach: true,
  values: (scope, rows) => {
    const identities = rows.map(({ record: { containerId } }) =>
      containerId === null ? undefined : scope.identities.get(containerId),
    );
    return [
      ...keysOf(scope, rows),
      rows.map(({ record }) => record.findingId),
      rows.map(({ record }) => record.kind),
      rows.map(({ record }) => record.eventType),
      rows.map(({ record }) => record.cause),
      rows.map(({ record }) => record.containerId),
      identities.map((identity) => identity?.podUid || null),
      identities.map((identity) => identity?.namespace || null),
      identities.map((identity) => identity?.pod || null),
      identities.map((identity) => identity?.container || null),
      rows.map(({ record }) => timeOf(scope, record.window?.from ?? null)),
      rows.map(({ record }) => timeOf(scope, record.window?.to ?? null)),
      rows.map(({ record }) => timeOf(scope, record.occurred)),
      rows.map(({ record }) => record.lateness),
      rows.map(({ record }) => record.delivery),
      rows.map(({ record }) => JSON.stringify(record.proof)),
    ];
  },
});

/** Both types say only that something happened to a finding: each is a row of store.finding_update. */
const findingUpdateWriter = (type: 'finding_resolved' | 'event_overdue', what: 'resolved' | 'overdue') =>
  recordWriter(type, {
    statement: { text: insertFindingUpdates },
    oneRowEach: false,
    values: ({ nodeId, clusterId }, rows) => [
      nodeId,
      clusterId,
      rows.map(({ record }) => record.findingId),
      rows.map(() => what),
      rows.map(({ at }) => at),
    ],
  });

export const writeResolutions = findingUpdateWriter('finding_resolved', 'resolved');

const writeStreamSessions = recordWriter('stream_session', {
  statement: { text: upsertStreamSessions },
  oneRowEach: false,
  values: (scope, rows) => [
    scope.nodeId,
    scope.contextId,
    scope.clusterId,
    scope.epoch,
    rows.map(({ seq }) => seq),
    rows.map(({ record }) => record.sessionNo),
    rows.map(({ record }) => scope.epochStart + record.opened),
    rows.map(({ record }) => timeOf(scope, record.armed)),
    rows.map(({ record }) => timeOf(scope, record.closed)),
    rows.map(({ record }) => record.code),
    rows.map(({ record }) => record.message),
    rows.map(({ record }) => record.events),
    rows.map(({ record }) => record.replayed),
  ],
});

const writeGaps = recordWriter('gap', {
  statement: { text: upsertGaps },
  oneRowEach: false,
  values: (scope, rows) => [
    scope.nodeId,
    scope.clusterId,
    scope.epoch,
    rows.map(({ record }) => record.gapId),
    rows.map(({ record }) => record.scope),
    rows.map(({ record }) => record.cause),
    rows.map(({ record }) => scope.epochStart + record.from),
    rows.map(({ record }) => timeOf(scope, record.to)),
  ],
});

const writeModeChanges = recordWriter('mode_change', {
  statement: { text: insertModeChanges },
  oneRowEach: true,
  values: (scope, rows) => [
    ...keysOf(scope, rows),
    rows.map(({ record }) => scope.epochStart + record.notBefore),
    rows.map(({ record }) => record.model),
    rows.map(({ record }) => record.from),
    rows.map(({ record }) => record.to),
    rows.map(({ record }) => record.reason),
    rows.map(({ record }) => JSON.stringify(record.proof)),
  ],
});

const writeNodeState = recordWriter('node_state', {
  statement: { text: updateNodeState },
  oneRowEach: false,
  values: (scope, rows) => {
    // Only the latest state of a batch can win.
    const { seq, record } = rows.reduce((a, b) => (b.seq > a.seq ? b : a));
    const { stream, relist, model, mode, modeSince, modeReason, kubeletStreamErrors, kubeletError } = record;
    return [
      scope.nodeId,
      scope.clusterId,
      scope.incarnation,
      seq,
      stream.state,
      scope.epochStart + stream.since,
      stream.reason,
      stream.lastError,
      relist.healthy,
      relist.reason,
      model,
      mode,
      scope.epochStart + modeSince,
      modeReason,
      kubeletStreamErrors ?? null,
      kubeletError ?? null,
    ];
  },
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
