/*
 * The statements of this folder, with the rows that they return.
 */
import { bool, int4, int8, text } from '../../store/schema/columns.ts';
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
/** As a number of days since 1970. */
export const readToday = statement(
  `SELECT (now() AT TIME ZONE 'UTC')::date - date '1970-01-01' AS today`,
  rowOf({ today: int4 }),
);
export const readDayState = statement(readDayStateSql, rowOf({ complete: bool, state: text, records: int8 }));
