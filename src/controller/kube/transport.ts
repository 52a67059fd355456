/*
 * HTTP requests to the API server, limited in time and size. Redirects are not followed.
 */
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { ApiConnection } from './credentials.ts';
import { KubeStatusError, unreachable } from './kubeErrors.ts';

export interface KubeHttpRequest {
  readonly method: 'GET' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For the whole request; for a stream, until its headers arrive. */
  readonly timeoutMs: number;
  /** Default: {@link MAX_RESPONSE_BYTES}. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface KubeHttpResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** A page of 500 Nodes without their status has about 0.5 MB. */
export const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/**
 * Sends a request and reads the whole response, whatever its status. Throws KUBE_UNREACHABLE, and KubeStatusError TooLarge, which says
 * nothing about the health of the server.
 */
export async function sendRequest(
  connection: ApiConnection,
  request: KubeHttpRequest,
): Promise<KubeHttpResponse> {
  const deadline = AbortSignal.timeout(request.timeoutMs);
  const signal = request.signal === undefined ? deadline : AbortSignal.any([deadline, request.signal]);
  try {
    const response = await startRequest(connection, request, signal);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: await readBody(response, request.maxBytes),
    };
  } catch (error) {
    request.signal?.throwIfAborted();
    if (error instanceof KubeStatusError) throw error;
    throw unreachable(connection.server, deadline.aborted ? timedOut(request.timeoutMs) : error);
  }
}

/**
 * Sends a request and returns the response as soon as its headers have arrived. The response fails after `idleMs` without a byte. Throws
 * KUBE_UNREACHABLE if no headers arrive in time.
 */
export async function openStream(
  connection: ApiConnection,
  request: KubeHttpRequest,
  idleMs: number,
): Promise<IncomingMessage> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(timedOut(request.timeoutMs)), request.timeoutMs);
  const signal =
    request.signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, request.signal]);
  try {
    const response = await startRequest(connection, request, signal);
    response.setTimeout(idleMs, () => response.destroy(new Error(`no data for ${idleMs / 1000} s`)));
    return response;
  } catch (error) {
    request.signal?.throwIfAborted();
    throw unreachable(connection.server, deadline.signal.aborted ? deadline.signal.reason : error);
  } finally {
    clearTimeout(timer);
  }
}

/** Throws KubeStatusError TooLarge if the body is larger than `maxBytes`. */
export async function readBody(response: IncomingMessage, maxBytes = MAX_RESPONSE_BYTES): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      response.destroy();
      const code = response.statusCode ?? 0;
      throw new KubeStatusError(code, 'TooLarge', `the response is larger than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function startRequest(
  connection: ApiConnection,
  { method, path, headers, body: text }: KubeHttpRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { server, agent } = connection;
  const body = text === undefined ? undefined : Buffer.from(text, 'utf8');
  return new Promise((resolve, reject) => {
    const outgoing = (server.protocol === 'http:' ? http : https).request(
      {
        host: server.hostname.replace(/^\[|\]$/g, ''),
        port: server.port === '' ? undefined : Number(server.port),
        path: server.pathname.replace(/\/$/, '') + path,
        method,
        agent,
        signal,
        headers: {
          ...connection.headers,
          ...headers,
          'user-agent': 'plegwatch-controller',
          ...(body === undefined ? {} : { 'content-length': body.length }),
        },
      },
      resolve,
    );
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

const timedOut = (ms: number): Error => new Error(`no response within ${ms / 1000} s`);
