/*
 * What an error of Postgres or of its driver means for the caller.
 *
 *   outage     the database is unreachable or full: wait, the input is fine
 *   conflict   two transactions conflicted (serialization, deadlock): retry at once
 *   data       it refuses a value of the input: find the record, keep the others
 *   fault      anything else, ours or the operator's: report it and try again later
 */
import { messageOf, PlegwatchError, redact } from '../../platform/errors.ts';

export type DatabaseErrorKind = 'outage' | 'conflict' | 'data' | 'fault';

const SETTING = '--database-url (PLEGWATCH_DATABASE_URL)';

/** SQLSTATE classes and codes, from the appendix "PostgreSQL Error Codes". */
const OUTAGE = /^(08|53|57|58|25006|55P03|XX)/;
const CONFLICT = /^(40001|40P01|40002)/;
/** 54: a value that is too long for an index, or nested deeper than the server's stack. */
const DATA = /^(22|23502|23514|54)/;
const UNREACHABLE =
  /ECONN|ENOTFOUND|EAI_AGAIN|EHOST|ENET|EPIPE|ETIMEDOUT|timeout|Connection terminated|Client has encountered|Cannot use a pool|Client was closed/i;

export function databaseErrorKind(error: unknown): DatabaseErrorKind {
  const code = sqlState(error);
  if (code === undefined) return UNREACHABLE.test(textOf(error)) ? 'outage' : 'fault';
  if (CONFLICT.test(code)) return 'conflict';
  // A row without a partition fails like a check; the store lacks the partition, the row is fine.
  if (code === '23514' && /no partition/.test(textOf(error))) return 'fault';
  if (DATA.test(code)) return 'data';
  return OUTAGE.test(code) ? 'outage' : 'fault';
}

/** The error of a first connection or query, for the operator: names the setting and the cure, never the password. */
export function explainDatabaseError(databaseUrl: string, error: unknown): PlegwatchError {
  if (error instanceof PlegwatchError) return error;
  const at = `Postgres at ${redactDatabaseUrl(databaseUrl)}`;
  const code = sqlState(error) ?? '';
  const message = messageOf(error);
  if (/^(28|3D000|42501|0L|0P)/.test(code)) {
    return new PlegwatchError(
      'DATABASE_REFUSED',
      `${at} refuses: ${message}.`,
      `Correct user, password or database in ${SETTING}, or grant the role what it needs.`,
      { cause: error },
    );
  }
  if (/^(42P01|3F000|42883|42703)/.test(code)) return notMigratedError(databaseUrl, message, error);
  if (databaseErrorKind(error) === 'outage') {
    return new PlegwatchError(
      'DATABASE_UNREACHABLE',
      `${at} cannot be reached: ${message}.`,
      `Start it, or correct host and port in ${SETTING}.`,
      { cause: error },
    );
  }
  return new PlegwatchError(
    'DATABASE_REFUSED',
    `${at}: ${message}.`,
    `Check ${SETTING} and the server's log.`,
    { cause: error },
  );
}

export function notMigratedError(databaseUrl: string, reason: string, cause?: unknown): PlegwatchError {
  return new PlegwatchError(
    'DATABASE_NOT_MIGRATED',
    `The database at ${redactDatabaseUrl(databaseUrl)} does not have the schema this program needs: ${reason}.`,
    'Run plegwatch migrate with the same --database-url (PLEGWATCH_DATABASE_URL), as the owner of the database.',
    { cause },
  );
}

/** The URL without its password, in the authority or as a parameter. */
export function redactDatabaseUrl(databaseUrl: string): string {
  return redact(databaseUrl).replaceAll(/(password=)[^&\s]*/gi, '$1***');
}

function sqlState(error: unknown): string | undefined {
  const code = fieldOf(error, 'code');
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && fieldOf(error, 'severity') !== undefined
    ? code
    : undefined;
}

function textOf(error: unknown): string {
  return `${String(fieldOf(error, 'code') ?? '')} ${messageOf(error)}`;
}

function fieldOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined;
}
