/*
 * The statements of the report queue, and the rows that they return.
 */
import { node, reportQueue } from '../../store/schema/tables.ts';
import { command, type RowOf, rowOf, statement } from '../../store/statement.ts';
import enqueueRewritesSql from './sql/enqueueRewrites.sql';
import enqueueStaleReportsSql from './sql/enqueueStaleReports.sql';
import finishUnchangedReportsSql from './sql/finishUnchangedReports.sql';
import finishWrittenReportSql from './sql/finishWrittenReport.sql';
import listDueReportsSql from './sql/listDueReports.sql';
import markNodesDeletedSql from './sql/markNodesDeleted.sql';
import nameMachinesSql from './sql/nameMachines.sql';
import recordNodesSql from './sql/recordNodes.sql';
import upsertConditionsSql from './sql/upsertConditions.sql';

export const listDueReports = statement(
  listDueReportsSql,
  rowOf({ node_id: reportQueue.node_id, version: reportQueue.version, node: node.name }),
  'list_due_reports',
);
/** A row of the queue. It is removed only at this version, so that a request made meanwhile is not lost. */
export type DueReport = RowOf<typeof listDueReports>;

export const enqueueRewrites = command(enqueueRewritesSql);
export const enqueueStaleReports = command(enqueueStaleReportsSql);
export const finishUnchangedReports = command(finishUnchangedReportsSql, 'finish_unchanged_reports');
export const finishWrittenReport = command(finishWrittenReportSql, 'finish_written_report');
export const upsertConditions = command(upsertConditionsSql, 'upsert_conditions');

export const markNodesDeleted = command(markNodesDeletedSql);
export const nameMachines = command(nameMachinesSql);
export const recordNodes = command(recordNodesSql);
