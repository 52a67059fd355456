/*
 * Errors for the operator: a stable code, one sentence that names the setting or the service, and the cure.
 * docs/reference/errors.md lists every code. The command line prints them without a stack trace.
 */

export type ErrorCode =
  | 'SETTING_INVALID'
  | 'CRI_UNREACHABLE'
  | 'CRI_NOT_A_RUNTIME'
  | 'SPOOL_UNUSABLE'
  | 'REDIS_UNREACHABLE'
  | 'REDIS_REFUSED'
  | 'REDIS_NOT_REDIS'
  | 'REDIS_TLS'
  | 'DATABASE_UNREACHABLE'
  | 'DATABASE_REFUSED'
  | 'DATABASE_TLS'
  | 'DATABASE_TIMEOUT'
  | 'DATABASE_VALUE'
  | 'DATABASE_NOT_MIGRATED'
  | 'MIGRATION_MISMATCH'
  | 'KUBE_UNREACHABLE'
  | 'KUBE_REFUSED'
  | 'KUBE_CONFIG'
  | 'CLUSTER_NAME_TAKEN'
  | 'NOT_LEADING'
  | 'OTLP_REFUSED'
  | 'NOT_FOUND'
  | 'EXPORT_UNWRITABLE'
  | 'EXPORT_DAMAGED'
  | 'HTTP_ADDRESS_IN_USE'
  | 'UI_UNPROTECTED'
  | 'PROGRAM_MISSING'
  | 'PROGRAM_FAILED';

export class PlegwatchError extends Error {
  override readonly name: string = 'PlegwatchError';
  readonly code: ErrorCode;
  readonly cure: string;

  constructor(code: ErrorCode, message: string, cure: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.cure = cure;
  }
}

/** The message of anything that was thrown, on one line, without the credentials in URLs. */
export function messageOf(error: unknown): string {
  const errors = error instanceof AggregateError && error.message === '' ? error.errors : [error];
  const messages = errors.map((each) => (each instanceof Error ? each.message : String(each)));
  return redact(messages.join('; ').replaceAll(/\s+/g, ' ').trim());
}

/** The code of an error of Node or of the system, such as ENOENT; undefined if it has none. */
export const errorCode = (error: unknown): unknown => Reflect.get(Object(error), 'code');

/** Whether a file or folder is not there. */
export const isMissing = (error: unknown): boolean => errorCode(error) === 'ENOENT';

/** An error as fields of a log line, with its cure if it has one. */
export function errorFields(error: unknown): { readonly error: string; readonly cure?: string } {
  const cure = error instanceof PlegwatchError ? { cure: error.cure } : {};
  return { error: messageOf(error), ...cure };
}

/** Replaces the password of every URL in a text, even one with an unescaped @, and passwords in query parameters. */
export function redact(text: string): string {
  return text
    .replaceAll(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):\S*@/gi, '$1:***@')
    .replaceAll(/(password=)[^&\s]*/gi, '$1***');
}
