/*
 * A request that is not answered with what it asked for. Its code says which status it has; src/ui/api.ts explains the codes.
 */
import type { ErrorCode } from './api.ts';

const STATUS: Readonly<Record<ErrorCode, number>> = {
  TOKEN_REQUIRED: 401,
  TOKEN_REFUSED: 401,
  USER_UNKNOWN: 401,
  FORBIDDEN: 403,
  BAD_PARAMETER: 400,
  NOT_FOUND: 404,
  AMBIGUOUS: 409,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  NOT_JSON: 415,
  DATABASE_AWAY: 503,
  TOO_SLOW: 503,
  BUSY: 503,
  ACCESS_UNKNOWN: 503,
  INTERNAL: 500,
};

export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: ErrorCode;
  readonly cure: string;

  constructor(code: ErrorCode, message: string, cure: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.cure = cure;
  }

  get status(): number {
    return STATUS[this.code];
  }
}

export const badParameter = (name: string, mustBe: string): RequestError =>
  new RequestError('BAD_PARAMETER', `The parameter ${name} must be ${mustBe}.`, 'Correct the address.');
