/*
 * The statements of the status lag, and the rows that they return. Times are microseconds since 1970 on the store's clock.
 */
import * as v from 'valibot';
import { float8, text } from '../../store/schema/columns.ts';
import { statusLagWatch as w } from '../../store/schema/tables.ts';
import { command, nullable, type RowOf, rowOf, statement } from '../../store/statement.ts';
import claimDueWatchesSql from './sql/claimDueWatches.sql';
import endWatchSql from './sql/endWatch.sql';
import insertLagReasonsSql from './sql/insertLagReasons.sql';
import insertWatchesSql from './sql/insertWatches.sql';
import narrowWatchesSql from './sql/narrowWatches.sql';
import recordStaleReadSql from './sql/recordStaleRead.sql';

const TransitionTypeSchema = v.picklist(['STARTED', 'STOPPED']);
export type TransitionType = v.InferOutput<typeof TransitionTypeSchema>;

/** `now`: when the store claimed it. */
export const claimDueWatches = statement(
  claimDueWatchesSql,
  rowOf({
    ...{ node_id: w.node_id, finding_id: w.finding_id, container_id: w.container_id, attempt: w.attempt },
    event_type: { ...text.field, read: (value) => v.parse(TransitionTypeSchema, value) },
    ...{ pod_uid: w.pod_uid, pod_namespace: w.pod_namespace, pod_name: w.pod_name },
    ...{ container_name: w.container_name, reads: w.reads },
    ...{ pod_matched: w.pod_matched, container_matched: w.container_matched },
    ...{ latest: float8, earliest: nullable(float8), stale_read: nullable(float8), arrived: float8 },
    now: float8,
  }),
  'claim_due_watches',
);
/** A watch that is due to be read. */
export type ClaimedWatch = RowOf<typeof claimDueWatches>;

export const insertWatches = statement(
  insertWatchesSql,
  rowOf({ finding_id: w.finding_id }),
  'insert_watches',
);
export const narrowWatches = command(narrowWatchesSql);
export const insertLagReasons = command(insertLagReasonsSql);
export const recordStaleRead = command(recordStaleReadSql, 'record_stale_read');
export const endWatch = command(endWatchSql);
