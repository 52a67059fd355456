/*
 * The meaning of an error of Postgres or of its driver for the caller.
 *
 *   outage     the database is unreachable or full, or refuses the login until a Secret is rotated: wait, the input is fine
 *   conflict   two transactions conflicted (serialization, deadlock): retry at once
 *   timeout    a statement took longer than it may: it is the input's fault if that happens again while other inputs are stored
 *   data       it refuses a value of the input: find the record, keep the others
 *   fault      anything else, ours or the operator's: report it and try again later
 */
import { messageOf, PlegwatchError } from '../platform/errors.ts';
import {
  type DatabaseSettings,
  databaseAt,
  databaseSettingOf,
  databaseTlsNames,
  readDatabaseAccess,
} from './databaseAccess.ts';

export type DatabaseErrorKind = 'outage' | 'conflict' | 'timeout' | 'data' | 'fault';

/** SQLSTATE classes and codes, from the appendix "PostgreSQL Error Codes". */
const OUTAGE = /^(08|28|53|57|58|25006|55P03|XX)/;
/** A lock that is not granted has a shorter timeout and another code. */
const TIMEOUT = '57014';
const CONFLICT = /^(40001|40P01|40002)/;
/** 54: a value that is too long for an index, or nested deeper than the server's stack. */
const DATA = /^(22|23502|23514|54)/;
const UNREACHABLE =
  /ECONN|ENOTFOUND|EAI_AGAIN|EHOST|ENET|EPIPE|ETIMEDOUT|timeout|Connection terminated|Client has encountered|Cannot use a pool|Client was closed/i;

/** Invalid authorization: the password, the certificate, or pg_hba.conf. */
const LOGIN_REFUSED = /^28/;

export function databaseErrorKind(error: unknown): DatabaseErrorKind {
  if (error instanceof GroupError) return databaseErrorKind(error.cause);
  // A value that the schema does not have, or a connection that could not be made.
  if (error instanceof PlegwatchError) return error.code === 'DATABASE_VALUE' ? 'fault' : 'outage';
  const code = sqlState(error);
  if (code === undefined) return UNREACHABLE.test(textOf(error)) ? 'outage' : 'fault';
  if (CONFLICT.test(code)) return 'conflict';
  if (code === TIMEOUT) return 'timeout';
  // A row without a partition fails like a check; the store lacks the partition, the row is fine.
  if (code === '23514' && /no partition/.test(textOf(error))) return 'fault';
  if (DATA.test(code)) return 'data';
  return OUTAGE.test(code) ? 'outage' : 'fault';
}

/** Whether Postgres or the connection to it caused an error, and not a defect of ours. */
export const isOfDatabase = (error: unknown): boolean =>
  error instanceof GroupError || sqlState(error) !== undefined || databaseErrorKind(error) === 'outage';

/**
 * An error of Postgres for the operator: names the setting and the cure, never the password. `less` says with which options a command
 * asks for less.
 */
export function explainDatabaseError(
  settings: DatabaseSettings,
  error: unknown,
  less?: string,
): PlegwatchError {
  if (error instanceof PlegwatchError) return error;
  if (error instanceof GroupError) return explainGroupError(error, less);
  const at = `Postgres at ${databaseAt(settings)}`;
  const setting = databaseSettingOf(settings);
  const code = sqlState(error) ?? '';
  const message = reasonOf(error);
  if (/^(28|3D000|42501|0L|0P)/.test(code)) {
    return new PlegwatchError(
      'DATABASE_REFUSED',
      `${at} refuses: ${message}.`,
      cureOfRefusal(settings, message),
      { cause: error },
    );
  }
  if (/unsupported startup parameter/.test(message)) {
    return new PlegwatchError(
      'DATABASE_REFUSED',
      `${at} is a pooler that does not take settings for a session: ${message}.`,
      'Set --database-pool-mode (PLEGWATCH_DATABASE_POOL_MODE) to transaction.',
      { cause: error },
    );
  }
  if (isSchemaLacking(error)) return notMigratedError(settings, message, error);
  if (databaseErrorKind(error) === 'timeout' || isLockTimeout(error)) {
    const asking = less === undefined ? '' : `, or ask for less: ${less}`;
    return new PlegwatchError(
      'DATABASE_TIMEOUT',
      `${at} ended a statement: ${message}.`,
      `Try again when nothing else keeps the database busy (pg_stat_activity shows what does)${asking}.`,
      { cause: error },
    );
  }
  if (databaseErrorKind(error) === 'outage') {
    return new PlegwatchError(
      'DATABASE_UNREACHABLE',
      `${at} cannot be reached: ${message}.`,
      `Start it, or correct host and port in ${setting}.`,
      { cause: error },
    );
  }
  return new PlegwatchError(
    'DATABASE_REFUSED',
    `${at}: ${message}.`,
    `Check ${setting} and the server's log.`,
    { cause: error },
  );
}

function explainGroupError({ group, settings, cause }: GroupError, less?: string): PlegwatchError {
  const { code, message, cure } = explainDatabaseError(settings, cause, less);
  const ofGroup = (text: string) =>
    text.replaceAll(databaseSettingOf(settings), `the URL of group ${group} for plegwatch federate`);
  return new PlegwatchError(code, `Group ${group}: ${ofGroup(message)}`, ofGroup(cure), { cause });
}

function cureOfRefusal(settings: DatabaseSettings, message: string): string {
  if (/client certificate/.test(message)) {
    const { cert, key } = databaseTlsNames(settings);
    return `Set ${cert} and ${key} to a client certificate that Postgres accepts.`;
  }
  if (/no encryption/.test(message)) {
    return 'Postgres accepts this login with TLS only: set --database-sslmode (PLEGWATCH_DATABASE_SSLMODE), or sslmode in the URL, to require or more.';
  }
  return `Correct user, password or database in ${databaseSettingOf(settings)}, or grant the role what it needs.`;
}

/** Whether the server refuses the login. */
export const isLoginRefused = (error: unknown): error is Error =>
  error instanceof Error && LOGIN_REFUSED.test(sqlState(error) ?? '');

/** Whether a row is not one that the role may write: row-level security, which refuses a role without clusters by itself. */
export const isRowRefused = (error: unknown): error is Error =>
  error instanceof Error &&
  sqlState(error) === '42501' &&
  /row-level security|may read no cluster/.test(error.message);

/** Whether the role lacks a right. */
export const isRefused = (error: unknown): boolean => sqlState(error) === '42501';

/** Whether a statement names a schema, relation, function or column that is not there. */
export const isSchemaLacking = (error: unknown): boolean =>
  /^(42P01|3F000|42883|42703)/.test(sqlState(error) ?? '');

/** Whether a lock was not granted in time. */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === '55P03';

/** Whether the answer to a statement did not come: whatever is sent after it waits as well. */
export const isUnanswered = (error: unknown): boolean =>
  sqlState(error) === undefined && /read timeout|Connection terminated/.test(textOf(error));

/** Whether a schema or table was made by another transaction at the same time. */
export const isMadeAlready = (error: unknown): boolean => /^(23505|42P06|42P07)$/.test(sqlState(error) ?? '');

/** Whether a later term of the cluster's leader has begun: store.check_term. */
export const isDeposed = (error: unknown): boolean => sqlState(error) === 'PW001';

/** The role is granted other clusters than this one. */
export function notGrantedError(settings: DatabaseSettings, cluster: string, cause: Error): PlegwatchError {
  const { user: role = 'its_role' } = readDatabaseAccess(settings);
  return new PlegwatchError(
    'DATABASE_REFUSED',
    `The role ${role} at ${databaseAt(settings)} may not write the cluster ${cluster}.`,
    `Correct --cluster, or run as the owner of the database: SELECT store.grant_controller('${role}', '${cluster}').`,
    { cause },
  );
}

export function notMigratedError(
  settings: DatabaseSettings,
  reason: string,
  cause?: unknown,
): PlegwatchError {
  return new PlegwatchError(
    'DATABASE_NOT_MIGRATED',
    `The database at ${databaseAt(settings)} does not have the schema this program needs: ${reason}.`,
    `Run plegwatch migrate as the owner of the database in ${databaseSettingOf(settings)}.`,
    { cause },
  );
}

/** A database that `plegwatch federate` made, where one with evidence is needed. */
export class FleetError extends PlegwatchError {
  constructor(settings: DatabaseSettings) {
    super(
      'SETTING_INVALID',
      `The database at ${databaseAt(settings)} is a fleet database, which stores nothing of its own.`,
      `Set ${databaseSettingOf(settings)} to the database of a group.`,
    );
  }
}

interface FailedGroup {
  readonly name: string;
  readonly settings: DatabaseSettings;
  readonly mayHave: GroupError['mayHave'];
}

/** An error of the database of one group of a fleet, which is its cause. */
export class GroupError extends Error {
  override readonly name = 'GroupError';
  readonly group: string;
  readonly settings: DatabaseSettings;
  /** Whether the group has the cluster, as far as is known. */
  readonly mayHave: (cluster: string) => boolean;

  constructor({ name, settings, mayHave }: FailedGroup, cause: unknown) {
    super(`Group ${name}: ${messageOf(cause)}`, { cause });
    this.group = name;
    this.settings = settings;
    this.mayHave = mayHave;
  }
}

/** The message, and why the server itself could not connect to another one, as for a foreign table. */
export function reasonOf(error: unknown): string {
  const detail = sqlState(error) === '08001' ? fieldOf(error, 'detail') : undefined;
  return [error, ...(typeof detail === 'string' ? [detail] : [])].map(messageOf).join(': ');
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
