/*
 * The statements of this folder, with the rows that they return.
 */
import { int8, text } from '../../store/schema/columns.ts';
import { finding, modeChange, node, nodeCondition, readyChange } from '../../store/schema/tables.ts';
import { command, rowOf, statement, word } from '../../store/statement.ts';
import insertNodeConditionSql from './sql/insertNodeCondition.sql';
import insertNodeInfoSql from './sql/insertNodeInfo.sql';
import insertReadyChangeSql from './sql/insertReadyChange.sql';
import listOccurrencesSql from './sql/listOccurrences.sql';
import readLastNodeConditionsSql from './sql/readLastNodeConditions.sql';
import readLastReadyChangesSql from './sql/readLastReadyChanges.sql';

export const insertNodeCondition = command(insertNodeConditionSql);
export const insertReadyChange = command(insertReadyChangeSql);
export const insertNodeInfo = command(insertNodeInfoSql);

/** `at`: microseconds since 1970. */
const LAST_CHANGE = { name: node.name, at: int8 };

export const readLastNodeConditions = statement(
  readLastNodeConditionsSql,
  rowOf({
    ...LAST_CHANGE,
    status: nodeCondition.status,
    reason: nodeCondition.reason,
    message: nodeCondition.message,
    pleg_seen_ago_ms: nodeCondition.pleg_seen_ago_ms,
    threshold_ms: nodeCondition.threshold_ms,
  }),
);
export const readLastReadyChanges = statement(
  readLastReadyChangesSql,
  rowOf({
    ...LAST_CHANGE,
    status: readyChange.status,
    reason: readyChange.reason,
    causes: readyChange.causes,
  }),
);
export const listOccurrences = statement(
  listOccurrencesSql,
  rowOf({
    node: node.name,
    kind: word('fallback', 'miss', 'end_missed', 'end_shown_late'),
    ...{ pod_namespace: finding.pod_namespace, pod_name: finding.pod_name, pod_uid: finding.pod_uid },
    ...{ detail: text, at: modeChange.at },
  }),
);
