/*
 * What can go wrong with the API server, in three kinds: away (KUBE_UNREACHABLE, try again), not allowed (KUBE_REFUSED,
 * somebody has to grant it), and everything else it answered, as a {@link KubeStatusError}.
 */
import { messageOf, PlegwatchError } from '../../platform/errors.ts';

/** What was asked, in the words of RBAC. */
export interface Asked {
  readonly verb: string;
  /** Such as `plegreports.plegwatch.dev` or `plegreports/status.plegwatch.dev`. */
  readonly resource: string;
  readonly name?: string;
}

/** An answer of the API server that is not success. 409: read again; 410: list again; 422: the object breaks its schema. */
export class KubeStatusError extends Error {
  override readonly name = 'KubeStatusError';
  /** The HTTP status. */
  readonly code: number;
  /** The API's own word, such as Conflict or Expired. */
  readonly reason: string;
  /** How long the server asks us to wait; null where it says nothing. */
  readonly retryAfterMs: number | null;

  constructor(code: number, reason: string, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** How long the server asked us to wait before the next request; 0 where it did not. */
export const retryAfterMs = (error: unknown): number =>
  error instanceof KubeStatusError ? (error.retryAfterMs ?? 0) : 0;

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

/** The error for an answer that is not success. `body` is a Status object, or anything else a proxy may have sent. */
export function refusal(asked: Asked, code: number, body: string, retryAfter: string | undefined): Error {
  const status = statusOf(body);
  const what = `${asked.verb} ${asked.resource}${asked.name === undefined ? '' : ` ${asked.name}`}`;
  const message = status.message === '' ? `HTTP ${code}` : status.message;
  if (code === 401) {
    return new PlegwatchError(
      'KUBE_REFUSED',
      `The API server does not accept our credentials (${what}): ${message}.`,
      'Renew the credentials in --kubeconfig, or check the service account of the pod.',
    );
  }
  if (code === 403) {
    return new PlegwatchError(
      'KUBE_REFUSED',
      `The API server does not let us ${what}: ${message}.`,
      `Grant the verb ${asked.verb} on ${asked.resource} to the controller's service account.`,
    );
  }
  return new KubeStatusError(code, status.reason, `${what}: ${message}`, waitOf(retryAfter));
}

/** Reads a Status object. */
export function statusOf(body: string): { code: number; reason: string; message: string } {
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

function waitOf(retryAfter: string | undefined): number | null {
  const seconds = Number(retryAfter);
  return retryAfter !== undefined && Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, 300) * 1000
    : null;
}

function codeOf(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? '') : '';
}
