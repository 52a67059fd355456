/*
 * The statements of this folder, with the rows that they return.
 */
import { bool, int4, int8, name, text } from '../../store/schema/columns.ts';
import { rowOf, command as sqlCommand, statement } from '../../store/statement.ts';
import readDayStateSql from './sql/readDayState.sql';

/** A whole day is read: a plan for its first rows would take longer. */
export const BEGIN = sqlCommand(`BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL TIME ZONE 'UTC'; SET LOCAL cursor_tuple_fraction = 1`);
export const COMMIT = sqlCommand('COMMIT');

/** Until the transaction ends, no other run of this name has it. */
export const tryLock = statement(
  'SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS locked',
  rowOf({ locked: bool }),
);
export const findLockHolder = statement(
  `SELECT a.pid, coalesce(a.usename, '?') AS role, coalesce(a.application_name, '') AS application
   FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()
   WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND (l.classid::int8 << 32) | l.objid::int8 = hashtextextended($1, 0)
   LIMIT 1`,
  rowOf({ pid: int4, role: name, application: text }),
);
/** As a number of days since 1970. */
export const readToday = statement(
  `SELECT (now() AT TIME ZONE 'UTC')::date - date '1970-01-01' AS today`,
  rowOf({ today: int4 }),
);
export const readDayState = statement(readDayStateSql, rowOf({ complete: bool, state: text, records: int8 }));
