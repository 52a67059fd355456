/*
 * The statements of an audit, and the rows that they return. Times are microseconds since the epoch began.
 */
import * as v from 'valibot';
import { type Mono, mono } from '../protocol/units.ts';
import { type Field, float8, int4, text } from '../store/schema/columns.ts';
import {
  container,
  containerEvent,
  context,
  finding,
  gap,
  relistChange,
  relistMinute,
  streamSession,
} from '../store/schema/tables.ts';
import { command, json, nullable, rowOf, statement } from '../store/statement.ts';
import findAddedRecordsSql from './sql/findAddedRecords.sql';
import findLaterEventsSql from './sql/findLaterEvents.sql';
import findStrayEventsSql from './sql/findStrayEvents.sql';
import listContextsSql from './sql/listContexts.sql';
import readChangesSql from './sql/readChanges.sql';
import readEventsSql from './sql/readEvents.sql';
import readFindingsSql from './sql/readFindings.sql';
import readGapsSql from './sql/readGaps.sql';
import readIdentitiesSql from './sql/readIdentities.sql';
import readInitialSql from './sql/readInitial.sql';
import readMinutesSql from './sql/readMinutes.sql';
import readSessionsSql from './sql/readSessions.sql';

export const readOnly = command('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
/** Rows that were read are compared before the next page is read: on a busy machine that takes a while. */
export const mayIdle = command('SET LOCAL idle_in_transaction_session_timeout = 0');

/** A time since the epoch began. */
const MONO: Field<Mono> = { ...float8.field, read: (value) => mono(float8.field.read(value)) };
/** A proof may be any JSON, if somebody changed it. */
const PROOF = json(v.fallback(v.record(v.string(), v.unknown()), {}));

export const listContexts = statement(
  listContextsSql,
  rowOf({
    context_id: context.context_id,
    ...{ runtime_name: context.runtime_name, runtime_version: context.runtime_version },
    ...{ overdue_after_us: context.overdue_after_us, missed_after_us: context.missed_after_us },
    ...{ late_after_us: context.late_after_us, first_seq: nullable(int4) },
  }),
);
export const readEvents = statement(
  readEventsSql,
  rowOf({
    ...{ seq: containerEvent.seq, received: MONO, created_ns: containerEvent.created_ns },
    ...{ flags: containerEvent.flags, key: containerEvent.container_key, day: containerEvent.day },
  }),
);
const LISTED = { states: relistChange.states, key: relistChange.container_key, day: relistChange.day };
export const readChanges = statement(
  readChangesSql,
  rowOf({ seq: relistChange.seq, window_from: MONO, window_to: MONO, ...LISTED }),
);
export const readMinutes = statement(
  readMinutesSql,
  rowOf({
    ...{ seq: relistMinute.seq, ended: MONO, span: relistMinute.span_us, wall: float8 },
    ...{ lists: relistMinute.lists },
  }),
);
export const readInitial = statement(readInitialSql, rowOf(LISTED));
export const readIdentities = statement(
  readIdentitiesSql,
  rowOf({
    ...{ key: container.container_key, day: container.day, id: container.container_id },
    ...{ sandbox: nullable(container.container_id), attempt: container.attempt, pod_uid: nullable(text) },
    ...{ pod_namespace: container.pod_namespace, pod_name: container.pod_name },
    container_name: container.container_name,
  }),
);
export const readFindings = statement(
  readFindingsSql,
  rowOf({
    ...{ seq: finding.seq, finding_id: finding.finding_id, at: MONO, kind: finding.kind },
    ...{ event_type: finding.event_type, cause: finding.cause, container_id: finding.container_id },
    ...{ window_from: nullable(MONO), window_to: nullable(MONO), proof: nullable(PROOF) },
    resolved: nullable(MONO),
  }),
);
export const readSessions = statement(
  readSessionsSql,
  rowOf({
    ...{ session_no: streamSession.session_no, opened: MONO },
    ...{ armed: nullable(MONO), closed: nullable(MONO) },
    ...{ events: streamSession.events, replayed: streamSession.replayed, first_event: nullable(MONO) },
    ...{ stored_events: int4, stored_replayed: int4, first_live_ns: nullable(containerEvent.created_ns) },
  }),
);
export const readGaps = statement(
  readGapsSql,
  rowOf({
    ...{ gap_id: gap.gap_id, scope: gap.scope, cause: gap.cause },
    ...{ from_at: MONO, to_at: nullable(MONO), event_inside: nullable(MONO) },
  }),
);
export const findLaterEvents = statement(
  findLaterEventsSql,
  rowOf({ finding_id: finding.finding_id, at: MONO }),
);
export const findStrayEvents = statement(
  findStrayEventsSql,
  rowOf({ seq: containerEvent.seq, received: MONO, type: text }),
);
export const findAddedRecords = statement(findAddedRecordsSql, rowOf({ view: text, seq: int4, at: MONO }));
