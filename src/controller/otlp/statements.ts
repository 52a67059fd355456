/*
 * The statements of this folder, with the rows that they return.
 */
import * as v from 'valibot';
import { int8 } from '../../store/schema/columns.ts';
import { cluster, otlpOutbox } from '../../store/schema/tables.ts';
import { command, json, nullable, type RowOf, rowOf, statement, word } from '../../store/statement.ts';
import deleteSentSql from './sql/deleteSent.sql';
import dropNextSql from './sql/dropNext.sql';
import dropOldestSql from './sql/dropOldest.sql';
import listOutboxSql from './sql/listOutbox.sql';

export const listOutbox = statement(
  listOutboxSql,
  rowOf({
    outbox_id: otlpOutbox.outbox_id,
    what: word('finding', 'finding_resolved', 'mode_change', 'pleg_verdict'),
    cluster_uid: cluster.uid,
    at: nullable(int8),
    record: nullable(json(v.record(v.string(), v.unknown()))),
  }),
);
export type Outgoing = RowOf<typeof listOutbox>;

export const deleteSent = command(deleteSentSql);
export const dropNext = command(dropNextSql);
export const dropOldest = command(dropOldestSql);
