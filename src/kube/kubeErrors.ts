/*
 * Errors of the Kubernetes API: KUBE_UNREACHABLE (retry), KUBE_REFUSED (somebody must grant permission), KUBE_CONFIG (a setting is
 * wrong), and {@link KubeStatusError} for every other response that is not a success.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { messageOf, PlegwatchError } from '../platform/errors.ts';

/** An operation in the terms of RBAC. */
export interface KubeOperation {
  readonly verb: string;
  /** Such as `plegreports.plegwatch.dev` or `plegreports/status.plegwatch.dev`. */
  readonly resource: string;
  readonly name?: string;
}

/** 409: read the object again; 410: list again; 422: the object violates its schema. */
export class KubeStatusError extends Error {
  override readonly name = 'KubeStatusError';
  readonly code: number;
  /** The reason of the API, such as Conflict or Expired. */
  readonly reason: string;
  /** The server's Retry-After; null if it sent none. */
  readonly retryAfterMs: number | null;

  constructor(code: number, reason: string, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The server's Retry-After; 0 if it sent none. */
export const retryAfterMs = (error: unknown): number =>
  error instanceof KubeStatusError ? (error.retryAfterMs ?? 0) : 0;

/** Whether an error is about this one object: it is gone or was changed, or what was to be written is refused. */
export const isOfObject = (error: unknown): error is KubeStatusError =>
  error instanceof KubeStatusError && error.code >= 400 && error.code < 500 && error.code !== 429;

export function unreachable(server: URL, error: unknown): PlegwatchError {
  const untrusted = /certificate|CERT_|self.signed/i.test(`${codeOf(error)} ${messageOf(error)}`);
  return untrusted
    ? new PlegwatchError(
        'KUBE_CONFIG',
        `The certificate of the API server ${server.origin} is not trusted: ${messageOf(error)}.`,
        'Check certificate-authority and tls-server-name of the cluster in --kubeconfig.',
        { cause: error },
      )
    : new PlegwatchError(
        'KUBE_UNREACHABLE',
        `The API server ${server.origin} cannot be reached: ${messageOf(error)}.`,
        'Check that it runs and that --kubeconfig (PLEGWATCH_KUBECONFIG) names it.',
        { cause: error },
      );
}

/** The error of a response that is not a success. A proxy may send anything as `body` instead of a Status object. */
export function errorOfResponse(
  { verb, resource, name }: KubeOperation,
  {
    status: code,
    body,
    headers,
  }: { readonly status: number; readonly body: string; readonly headers: IncomingHttpHeaders },
): Error {
  const status = parseStatus(body);
  const described = `${verb} ${resource}${name === undefined ? '' : ` ${name}`}`;
  const message = status.message === '' ? `HTTP ${code}` : status.message;
  if (code === 401) {
    return new PlegwatchError(
      'KUBE_REFUSED',
      `The API server does not accept our credentials (${described}): ${message}.`,
      'Renew the credentials in --kubeconfig, or check the service account of the pod.',
    );
  }
  if (code === 403) {
    return new PlegwatchError(
      'KUBE_REFUSED',
      `The API server does not let us ${described}: ${message}.`,
      `Grant the verb ${verb} on ${resource} to the controller's service account.`,
    );
  }
  return new KubeStatusError(
    code,
    status.reason,
    `${described}: ${message}`,
    parseRetryAfter(headers['retry-after']),
  );
}

export function parseStatus(body: string): { code: number; reason: string; message: string } {
  let input: unknown;
  try {
    input = JSON.parse(body);
  } catch {
    return { code: 0, reason: '', message: body.slice(0, 300) };
  }
  const field = (name: string): unknown =>
    typeof input === 'object' && input !== null ? Reflect.get(input, name) : undefined;
  const text = (name: string) => {
    const value = field(name);
    return typeof value === 'string' ? value.slice(0, 1000) : '';
  };
  return { code: Number(field('code') ?? 0), reason: text('reason'), message: text('message') };
}

/** In milliseconds, at most 300 s. */
function parseRetryAfter(header: string | undefined): number | null {
  const seconds = Number(header);
  return header !== undefined && Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, 300) * 1000
    : null;
}

function codeOf(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? '') : '';
}
