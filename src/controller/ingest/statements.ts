/*
 * The statements of ingest, and the rows that they return. Those that run for every batch or group have a name.
 */
import { bool, float8, int4, int4multirange, text, textArray } from '../../store/schema/columns.ts';
import { context, epoch, findingUpdate, node } from '../../store/schema/tables.ts';
import { command, nullable, present, rowOf, statement } from '../../store/statement.ts';
import addQuotaGapSql from './sql/addQuotaGap.sql';
import closeEpochsSql from './sql/closeEpochs.sql';
import declareLostSql from './sql/declareLost.sql';
import ensureClaimedNodeSql from './sql/ensureClaimedNode.sql';
import ensureContextSql from './sql/ensureContext.sql';
import findEventsResolvingMissesSql from './sql/findEventsResolvingMisses.sql';
import findMissesResolvedByEventsSql from './sql/findMissesResolvedByEvents.sql';
import insertContainerEventsSql from './sql/insertContainerEvents.sql';
import insertEpochSql from './sql/insertEpoch.sql';
import insertFindingsSql from './sql/insertFindings.sql';
import insertFindingUpdatesSql from './sql/insertFindingUpdates.sql';
import insertModeChangesSql from './sql/insertModeChanges.sql';
import insertRecordGapsSql from './sql/insertRecordGaps.sql';
import insertRelistChangesSql from './sql/insertRelistChanges.sql';
import insertRelistMinutesSql from './sql/insertRelistMinutes.sql';
import listNodesWithMissesSql from './sql/listNodesWithMisses.sql';
import lockEpochSql from './sql/lockEpoch.sql';
import lockNodesSql from './sql/lockNodes.sql';
import readEpochsSql from './sql/readEpochs.sql';
import restoreEpochSql from './sql/restoreEpoch.sql';
import sayCaughtUpSql from './sql/sayCaughtUp.sql';
import shrinkFilledGapsSql from './sql/shrinkFilledGaps.sql';
import updateEpochsSql from './sql/updateEpochs.sql';
import updateNodeStateSql from './sql/updateNodeState.sql';
import updateNodesSql from './sql/updateNodes.sql';
import upsertContainersSql from './sql/upsertContainers.sql';
import upsertGapsSql from './sql/upsertGaps.sql';
import upsertRejectedSql from './sql/upsertRejected.sql';
import upsertStreamSessionsSql from './sql/upsertStreamSessions.sql';

// The locked rows, and their state: store.known_of_batch in migrations/0002_tables.sql.
const KNOWN_OF_BATCH = {
  ...{ node_id: epoch.node_id, started_us: float8, now_us: float8, fresh: int4multirange, fills_gap: bool },
  ...{ context_id: nullable(context.context_id), incarnation: epoch.incarnation, is_superseded: bool },
  ...{ received_through: int4, plausible_seq: int4, rows_today: int4 },
};
export const lockNodes = statement(
  lockNodesSql,
  rowOf({ state: text, lock_timeout: text, statement_timeout: text }),
  'lock_nodes',
);
export const lockEpoch = statement(
  lockEpochSql,
  rowOf({ ...KNOWN_OF_BATCH, is_forgery: bool, earlier: textArray }),
  'lock_epoch',
);
export const readEpochs = statement(
  readEpochsSql,
  rowOf({ place: int4, ...KNOWN_OF_BATCH, context_id: present(context.context_id) }),
  'read_epochs',
);

export const sayCaughtUp = command(sayCaughtUpSql);

// Epochs and nodes.
export const ensureClaimedNode = statement(ensureClaimedNodeSql, rowOf({ is_known: bool }));
export const insertEpoch = command(insertEpochSql);
export const ensureContext = statement(ensureContextSql, rowOf({ context_id: context.context_id }));
export const updateEpochs = statement(
  updateEpochsSql,
  rowOf({ node_id: epoch.node_id, acked_seq: int4, ack_generation: epoch.ack_generation }),
  'update_epochs',
);
export const updateNodes = command(updateNodesSql, 'update_nodes');
export const restoreEpoch = statement(
  restoreEpochSql,
  rowOf({ incarnation: epoch.incarnation, overtakes: bool }),
);

// Gaps. `surplus`: the holes are more than the node may store rows for; `from`: since when, in microseconds since 1970.
const HOLES = { holes: int4, surplus: nullable(int4multirange), from: nullable(float8) };
export const insertRecordGaps = command(insertRecordGapsSql);
export const declareLost = statement(declareLostSql, rowOf(HOLES), 'declare_lost');
export const closeEpochs = statement(closeEpochsSql, rowOf({ epoch: epoch.epoch, ...HOLES }));
export const addQuotaGap = command(addQuotaGapSql);
export const shrinkFilledGaps = command(shrinkFilledGapsSql);

// Misses that are resolved. `at`: microseconds since 1970.
const RESOLUTION = rowOf({ finding_id: findingUpdate.finding_id, at: float8 });
export const listNodesWithMisses = statement(
  listNodesWithMissesSql,
  rowOf({ node_id: node.node_id }),
  'list_nodes_with_misses',
);
export const findMissesResolvedByEvents = statement(
  findMissesResolvedByEventsSql,
  RESOLUTION,
  'find_misses_resolved_by_events',
);
/** Planned anew each time, because the number of rows to read varies widely. */
export const findEventsResolvingMisses = statement(findEventsResolvingMissesSql, RESOLUTION);

// Records.
export const upsertContainers = command(upsertContainersSql, 'upsert_containers');
export const insertContainerEvents = command(insertContainerEventsSql, 'insert_container_events');
export const insertRelistChanges = command(insertRelistChangesSql, 'insert_relist_changes');
export const insertRelistMinutes = command(insertRelistMinutesSql, 'insert_relist_minutes');
export const insertFindings = command(insertFindingsSql, 'insert_findings');
export const insertFindingUpdates = command(insertFindingUpdatesSql, 'insert_finding_updates');
export const upsertStreamSessions = command(upsertStreamSessionsSql, 'upsert_stream_sessions');
export const upsertGaps = command(upsertGapsSql, 'upsert_gaps');
export const insertModeChanges = command(insertModeChangesSql);
export const updateNodeState = command(updateNodeStateSql, 'update_node_state');
export const upsertRejected = command(upsertRejectedSql);
