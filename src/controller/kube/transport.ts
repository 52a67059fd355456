/*
 * One HTTP exchange with the API server: bounded in time and in size, redirects never followed.
 */
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Connection } from './credentials.ts';
import { KubeStatusError, unreachable } from './failure.ts';

export interface Exchange {
  readonly method: 'GET' | 'PATCH' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For the whole exchange; for a stream until its headers have come. */
  readonly timeoutMs: number;
  /** A larger answer is refused; {@link MAX_ANSWER_BYTES} when not said. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Nothing we ask for comes near; a page of 500 nodes without their status has about 0.5 MB. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Sends a request and reads the whole answer, whatever its status. Throws KUBE_UNREACHABLE, and KubeStatusError TooLarge: the
 * server is well, it is this object that nobody will read.
 */
export async function exchange(connection: Connection, asked: Exchange): Promise<Answer> {
  const deadline = AbortSignal.timeout(asked.timeoutMs);
  const signal = asked.signal === undefined ? deadline : AbortSignal.any([deadline, asked.signal]);
  try {
    const response = await respond(connection, asked, signal);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: await readAll(response, asked.maxBytes),
    };
  } catch (error) {
    asked.signal?.throwIfAborted();
    if (error instanceof KubeStatusError) throw error;
    throw unreachable(connection.server, deadline.aborted ? timedOut(asked.timeoutMs) : error);
  }
}

/**
 * Sends a request and gives its answer to be read piece by piece; `idleMs` without a byte breaks it. Throws
 * KUBE_UNREACHABLE when no headers come in time.
 */
export async function openStream(
  connection: Connection,
  asked: Exchange,
  idleMs: number,
): Promise<IncomingMessage> {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(timedOut(asked.timeoutMs)), asked.timeoutMs);
  const signal = asked.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, asked.signal]);
  try {
    const response = await respond(connection, asked, signal);
    response.setTimeout(idleMs, () => response.destroy(new Error(`nothing came for ${idleMs / 1000} s`)));
    return response;
  } catch (error) {
    asked.signal?.throwIfAborted();
    throw unreachable(connection.server, stop.signal.aborted ? stop.signal.reason : error);
  } finally {
    clearTimeout(late);
  }
}

/** Reads an answer to its end. Throws when it is larger than so many bytes. */
export async function readAll(response: IncomingMessage, maxBytes = MAX_ANSWER_BYTES): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) {
      response.destroy();
      const code = response.statusCode ?? 0;
      throw new KubeStatusError(code, 'TooLarge', `the answer is larger than ${maxBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function respond(connection: Connection, asked: Exchange, signal: AbortSignal): Promise<IncomingMessage> {
  const { server, agent } = connection;
  const body = asked.body === undefined ? undefined : Buffer.from(asked.body, 'utf8');
  return new Promise((resolve, reject) => {
    const request = (server.protocol === 'http:' ? http : https).request(
      {
        host: server.hostname.replace(/^\[|\]$/g, ''),
        port: server.port === '' ? undefined : Number(server.port),
        path: server.pathname.replace(/\/$/, '') + asked.path,
        method: asked.method,
        agent,
        signal,
        headers: {
          ...connection.headers,
          ...asked.headers,
          'user-agent': 'plegwatch-controller',
          ...(body === undefined ? {} : { 'content-length': body.length }),
        },
      },
      resolve,
    );
    request.once('error', reject);
    request.end(body);
  });
}

const timedOut = (ms: number): Error => new Error(`no answer within ${ms / 1000} s`);
