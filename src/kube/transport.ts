/*
 * HTTP requests to the API server, limited in time and size, and the stream of JSON values that answers a watch. Redirects are not
 * followed.
 */
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { ApiConnection } from './credentials.ts';
import { KubeStatusError, unreachable } from './kubeErrors.ts';

export interface KubeHttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
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

export interface KubeHttpStream {
  readonly status: 200;
  readonly stream: IncomingMessage;
}

/** A watch event of an object near etcd's size limit fits. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;
/** A page of 500 Nodes without their status has about 0.5 MB. */
export const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** Sends a request and reads the whole response, whatever its status. Throws as {@link request}. */
export const sendRequest = (connection: ApiConnection, sent: KubeHttpRequest): Promise<KubeHttpResponse> =>
  request(connection, sent, (response) => answerOf(response, sent.maxBytes));

/**
 * Sends a request and returns the stream of the response when its headers have arrived, which fails after `idleMs` without a byte; anything but
 * a 200 is read whole.
 */
export const openStream = (
  connection: ApiConnection,
  sent: KubeHttpRequest,
  idleMs: number,
): Promise<KubeHttpStream | KubeHttpResponse> =>
  request(connection, sent, async (response) => {
    if (response.statusCode !== 200) return answerOf(response);
    const idle = () => response.destroy(new Error(`no data for ${idleMs / 1000} s`));
    return { status: 200, stream: response.setTimeout(idleMs, idle) };
  });

const answerOf = async (response: IncomingMessage, maxBytes?: number): Promise<KubeHttpResponse> => ({
  status: response.statusCode ?? 0,
  headers: response.headers,
  body: await readBody(response, maxBytes),
});

/**
 * The response as `read` returns it, within the time limit. Throws KUBE_UNREACHABLE, and KubeStatusError TooLarge, which says nothing about the
 * health of the server.
 */
async function request<T>(
  connection: ApiConnection,
  sent: KubeHttpRequest,
  read: (response: IncomingMessage) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), sent.timeoutMs);
  const signals = sent.signal === undefined ? [deadline.signal] : [deadline.signal, sent.signal];
  try {
    return await read(await startRequest(connection, sent, AbortSignal.any(signals)));
  } catch (error) {
    sent.signal?.throwIfAborted();
    if (error instanceof KubeStatusError) throw error;
    throw unreachable(connection.server, deadline.signal.aborted ? timedOut(sent.timeoutMs) : error);
  } finally {
    clearTimeout(timer);
  }
}

/** Throws KubeStatusError TooLarge if the body is larger than `maxBytes`. */
async function readBody(response: IncomingMessage, maxBytes = MAX_RESPONSE_BYTES): Promise<string> {
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

/** Yields the value of each line. Throws on a line that is not JSON or is longer than 8 MiB; drops an unterminated last line. */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<unknown> {
  let pending: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let remaining = chunk;
    for (let end = remaining.indexOf(NEWLINE); end !== -1; end = remaining.indexOf(NEWLINE)) {
      const line = Buffer.concat([...pending, remaining.subarray(0, end)]).toString('utf8');
      pending = [];
      bytes = 0;
      remaining = remaining.subarray(end + 1);
      if (line.trim() !== '') yield JSON.parse(line);
    }
    if (remaining.length > 0) pending.push(remaining);
    bytes += remaining.length;
    if (bytes > maxBytes)
      throw new KubeStatusError(200, 'TooLarge', `a line is longer than ${maxBytes} bytes`);
  }
}
