/*
 * The HTTP server of the page: its files to everybody, answers to those who may read.
 *
 * Nothing is ever written, so only GET and HEAD are answered. The headers let a browser load scripts, styles and data from here only, and let
 * no other site embed the page or read an answer.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { listen } from '../platform/http.ts';
import type { Access } from './access/access.ts';
import type { ErrorAnswer } from './api.ts';
import { ConnectionLimit } from './connectionLimit.ts';
import type { PageFile } from './page.ts';
import { RequestError } from './requestError.ts';

/** The answer at a path below /api, as JSON. The signal is aborted when the client goes away. Throws RequestError. */
export type Answer = (query: URLSearchParams, signal: AbortSignal) => Promise<object>;

export interface PageServerOptions {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly access: Access;
  readonly page: ReadonlyMap<string, PageFile>;
  /** By path. */
  readonly answers: Readonly<Record<string, Answer>>;
  /** The error of a request that failed for another reason than its own. */
  readonly explain: (error: unknown) => RequestError;
  /** A client that reads nothing of its answer for this long is disconnected: it must not keep others out. Default: 20 s. */
  readonly sendTimeoutMs?: number;
  readonly onAnswered: (path: string, status: number, seconds: number) => void;
}

const MAX_CONNECTIONS = 256;
/** Answers that are being made. Each needs a connection to Postgres, of which there are few. */
const MAX_AT_ONCE = 32;
const SEND_TIMEOUT_MS = 20_000;
/** How often clients that send no request are looked for. */
const CHECK_INTERVAL_MS = 5_000;
const MIN_COMPRESSED_BYTES = 1_024;
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  vary: 'accept-encoding',
};
const JSON_TYPE = 'application/json; charset=utf-8';
const compressed = promisify(gzip);

export interface PageServer {
  readonly port: number;
  stop(): Promise<void>;
}

interface Response {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Resolves when the server listens. Throws HTTP_ADDRESS_IN_USE. */
export async function servePage(options: PageServerOptions): Promise<PageServer> {
  let busy = 0;
  const connections = new ConnectionLimit(MAX_CONNECTIONS);

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    const { path, query } = targetOf(request.url);
    const known = options.page.has(path) || Object.hasOwn(options.answers, path) ? path : 'other';
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answered = await responseTo(request, path, query, gone.signal).catch((error: unknown) =>
      // An answer that stopped because the client is gone is no failure.
      gone.signal.aborted ? null : refusal(error instanceof RequestError ? error : options.explain(error)),
    );
    if (answered === null || gone.signal.aborted) return;
    const { status, type, body, headers } = answered;
    response.setTimeout(options.sendTimeoutMs ?? SEND_TIMEOUT_MS, () => response.destroy());
    response.writeHead(status, {
      ...HEADERS,
      'cache-control': 'no-store',
      'content-type': type,
      'content-length': body.length,
      ...headers,
    });
    response.end(request.method === 'HEAD' ? undefined : body);
    options.onAnswered(known, status, (performance.now() - started) / 1000);
  }

  async function responseTo(
    request: IncomingMessage,
    path: string,
    query: URLSearchParams,
    gone: AbortSignal,
  ): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
    const file = options.page.get(path);
    const answer = Object.hasOwn(options.answers, path) ? options.answers[path] : undefined;
    if (file !== undefined) return fileResponse(file, request);
    if (answer === undefined) throw noSuchPath(path, options.page);
    refuseOtherSites(request);
    await options.access.check(request);
    gone.throwIfAborted();
    gone.addEventListener('abort', connections.workBegan(request.socket), { once: true });
    if (busy >= MAX_AT_ONCE) {
      throw new RequestError('BUSY', 'Too many requests are being answered.', 'Try again in a second.');
    }
    busy += 1;
    try {
      return await jsonResponse(await answer(query, gone), request);
    } finally {
      busy -= 1;
    }
  }

  const server = createServer({ connectionsCheckingInterval: CHECK_INTERVAL_MS }, respond);
  server.requestTimeout = 10_000;
  server.on('connection', (socket) => connections.opened(socket));
  await listen(server, '--page-address', options.address);
  const { port } = server.address() as AddressInfo;
  return { port, stop: () => stop(server) };
}

/**
 * A page of another site cannot read an answer, but it could have its reader's browser ask for many. Browsers say where a request comes
 * from; other clients say nothing.
 */
function refuseOtherSites({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  throw new RequestError(
    'FORBIDDEN',
    'This request comes from a page of another site.',
    'Open / for the page.',
  );
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function targetOf(url = '/'): { readonly path: string; readonly query: URLSearchParams } {
  const [path = '/', ...query] = url.split('?');
  return { path, query: new URLSearchParams(query.join('?')) };
}

function fileResponse({ type, body, gzipped, etag }: PageFile, request: IncomingMessage): Response {
  // Asked for again each time, so that a page never runs with the server of another version.
  const headers = { etag, 'cache-control': 'no-cache' };
  if (request.headers['if-none-match'] === etag) return { status: 304, type, body: Buffer.alloc(0), headers };
  return takesGzip(request)
    ? { status: 200, type, body: gzipped, headers: { ...headers, 'content-encoding': 'gzip' } }
    : { status: 200, type, body, headers };
}

async function jsonResponse(answer: object, request: IncomingMessage): Promise<Response> {
  const json = jsonOf(answer);
  if (json.body.length < MIN_COMPRESSED_BYTES || !takesGzip(request)) {
    return { status: 200, type: JSON_TYPE, body: json.body };
  }
  json.gzipped ??= compressed(json.body, { level: 1 });
  const headers = { 'content-encoding': 'gzip' };
  return { status: 200, type: JSON_TYPE, body: await json.gzipped, headers };
}

interface Json {
  readonly body: Buffer;
  gzipped?: Promise<Buffer>;
}

/** The JSON of answers, as long as somebody remembers them: that of a large fleet is written and compressed once for all who ask. */
const JSONS = new WeakMap<object, Json>();

function jsonOf(answer: object): Json {
  const json = JSONS.get(answer) ?? { body: Buffer.from(JSON.stringify(answer)) };
  JSONS.set(answer, json);
  return json;
}

const takesGzip = ({ headers }: IncomingMessage): boolean =>
  /\bgzip\b(?!;q=0(\.0*)?(,|$))/.test(headers['accept-encoding'] ?? '');

function refusal({ status, code, message, cure }: RequestError): Response {
  const answer: ErrorAnswer = { error: { code, message, cure } };
  const headers: Record<string, string> = {};
  if (status === 401 && code !== 'USER_UNKNOWN') headers['www-authenticate'] = 'Bearer';
  if (status === 405) headers['allow'] = 'GET, HEAD';
  if (status === 503) headers['retry-after'] = '1';
  return { status, type: JSON_TYPE, body: Buffer.from(JSON.stringify(answer)), headers };
}

const methodNotAllowed = (): RequestError =>
  new RequestError('METHOD_NOT_ALLOWED', 'Nothing can be changed here.', 'Use GET or HEAD.');

function noSuchPath(path: string, page: ReadonlyMap<string, PageFile>): RequestError {
  return path === '/' && !page.has('/')
    ? new RequestError('NOT_FOUND', 'This build does not have the page.', 'Run make build.')
    : new RequestError('NOT_FOUND', 'There is nothing at this path.', 'Open / for the page.');
}
