/*
 * Holders of locks on the tables of the store, or the views of a fleet: said where a migration, a maintenance or a run of `federate` waited for them in vain.
 */
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import { type DatabaseSettings, databaseAt } from './databaseAccess.ts';
import type { SqlRunner } from './runner.ts';
import { findLockHolders } from './statements.ts';

/** More tables of one session say no more. */
const MAX_TABLES = 4;

export const CURE_OF_LOCKS =
  'End the sessions that hold them (SELECT pg_terminate_backend(pid)), or wait for them, and run it again.';

/** A lock that was waited for was not granted. `sql` is outside a transaction that failed. */
export async function lockedError(
  sql: SqlRunner,
  settings: DatabaseSettings,
  cause: unknown,
): Promise<PlegwatchError> {
  const message = `Postgres at ${databaseAt(settings)} did not grant a lock: ${messageOf(cause)}.${await holdersOf(sql)}`;
  return new PlegwatchError('DATABASE_TIMEOUT', message, CURE_OF_LOCKS, { cause });
}

/** A sentence, after a space; nothing where nobody holds one any more. Postgres does not tell the owner of a database since when the transactions of others run. */
export async function holdersOf(sql: SqlRunner): Promise<string> {
  const { rows } = await sql.run(findLockHolders);
  const holders = rows.map(({ pid, role, application, tables }) => {
    const named = tables.slice(0, MAX_TABLES).join(', ');
    const more = tables.length > MAX_TABLES ? `, and ${tables.length - MAX_TABLES} more` : '';
    const of = application === '' ? `role ${role}` : `role ${role}, ${application}`;
    return `pid ${pid} (${of}) on ${named}${more}`;
  });
  return holders.length === 0 ? '' : ` Sessions that hold locks: ${holders.join('; ')}.`;
}
