/*
 * The HTTP server of the page: its files to everybody, answers to those who may read.
 *
 * Nothing is ever written: GET and HEAD are answered, or POST where a question is a body. The headers let a browser load scripts, styles and
 * data from here only, and let no other site embed the page or read an answer.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { listen } from '../platform/http.ts';
import type { Logger } from '../platform/log.ts';
import type { Access } from './access/access.ts';
import type { ReaderUntil } from './answers/reader.ts';
import type { ErrorAnswer } from './api.ts';
import { ConnectionLimit } from './connectionLimit.ts';
import type { PageFile } from './page.ts';
import { RequestError } from './requestError.ts';

/** The answer at a path below /api, as JSON. The signal is aborted when the client goes away. Throws RequestError. */
export type Answer = (query: URLSearchParams, signal: AbortSignal) => Promise<object>;

/** As JSON; empty where nothing is to be said. */
export interface PostedAnswer {
  readonly status: number;
  readonly json: string;
}

/** The answer to a body, which may be any text. As {@link Answer}. */
type AnswerPosted = (
  headers: IncomingHttpHeaders,
  body: string,
  signal: AbortSignal,
) => Promise<PostedAnswer>;

/** Answers what is posted by what the page reads. */
export type PostedAnswers = (reader: ReaderUntil, log: Logger) => AnswerPosted;

export interface PageServerOptions {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly access: Access;
  readonly page: ReadonlyMap<string, PageFile>;
  /** By path. */
  readonly answers: Readonly<Record<string, Answer>>;
  /** By path. */
  readonly posted: Readonly<Record<string, AnswerPosted>>;
  /** The error of a request that failed for another reason than its own. */
  readonly explain: (error: unknown) => RequestError;
  /** A client has to say what it asks within this time. Default: 10 s. */
  readonly requestTimeoutMs?: number;
  /** A client that reads nothing of its answer for this long is disconnected: it must not keep others out. Default: 20 s. */
  readonly sendTimeoutMs?: number;
  readonly onAnswered: (path: string, status: number, seconds: number) => void;
}

const MAX_CONNECTIONS = 256;
/** Answers that are being made. Each needs a connection to Postgres, of which there are few. */
const MAX_AT_ONCE = 32;
/** Programs that ask much leave the page its own. */
const MAX_POSTED_AT_ONCE = 16;
/** A question is a few names. */
const MAX_BODY_BYTES = 65_536;
const REQUEST_TIMEOUT_MS = 10_000;
const SEND_TIMEOUT_MS = 20_000;
/** How often clients that are slow to ask are looked for. */
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
  const connections = new ConnectionLimit(MAX_CONNECTIONS);
  const asked = atMost(MAX_AT_ONCE);
  const posted = atMost(MAX_POSTED_AT_ONCE);
  const paths = { ...options.answers, ...options.posted };
  const methodsAt = (path: string) => (Object.hasOwn(options.posted, path) ? ['POST'] : ['GET', 'HEAD']);

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    const { path, query } = targetOf(request.url);
    const known = options.page.has(path) || Object.hasOwn(paths, path) ? path : 'other';
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answered = await responseTo(request, path, query, gone.signal).catch((error: unknown) =>
      // An answer that stopped because the client is gone is no failure.
      gone.signal.aborted
        ? null
        : refusal(error instanceof RequestError ? error : options.explain(error), methodsAt(path)),
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
    const methods = methodsAt(path);
    if (!methods.includes(request.method ?? '')) throw methodNotAllowed(methods);
    const file = options.page.get(path);
    if (file !== undefined) return fileResponse(file, request);
    const answer = at(options.answers, path);
    const answerPosted = at(options.posted, path);
    if (answer !== undefined) {
      await admit(request);
      workBegins(request, gone);
      return asked(async () => jsonResponse(200, jsonOf(await answer(query, gone)), request));
    }
    if (answerPosted === undefined) throw noSuchPath(path, options.page);
    await admit(request);
    // A client that is slow to say what it asks waits as a stranger does.
    const body = await bodyOf(request);
    workBegins(request, gone);
    return posted(async () => {
      const { status, json } = await answerPosted(request.headers, body, gone);
      return jsonResponse(status, { body: Buffer.from(json) }, request);
    });
  }

  async function admit(request: IncomingMessage): Promise<void> {
    refuseOtherSites(request);
    await options.access.check(request);
  }

  function workBegins({ socket }: IncomingMessage, gone: AbortSignal): void {
    gone.throwIfAborted();
    gone.addEventListener('abort', connections.workBegan(socket), { once: true });
  }

  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const connectionsCheckingInterval = Math.min(CHECK_INTERVAL_MS, requestTimeout);
  // Node takes the longer time for the whole request, and the shorter one for its headers.
  const server = createServer(
    { connectionsCheckingInterval, requestTimeout, headersTimeout: requestTimeout },
    respond,
  );
  server.on('connection', (socket) => connections.opened(socket));
  await listen(server, '--page-address', options.address);
  const { port } = server.address() as AddressInfo;
  return { port, stop: () => stop(server) };
}

const at = <T>(paths: Readonly<Record<string, T>>, path: string): T | undefined =>
  Object.hasOwn(paths, path) ? paths[path] : undefined;

/** Lets as many work at once, and refuses others. */
function atMost(max: number): <T>(work: () => Promise<T>) => Promise<T> {
  let busy = 0;
  return async (work) => {
    if (busy >= max) {
      throw new RequestError('BUSY', 'Too many requests are being answered.', 'Try again in a second.');
    }
    busy += 1;
    try {
      return await work();
    } finally {
      busy -= 1;
    }
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new RequestError('NOT_JSON', 'The body is not declared as JSON.', 'Send it as application/json.');
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The rest of a body that is too large is read and dropped, until the time for a request has passed.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new RequestError('TOO_LARGE', `The body has more than ${MAX_BODY_BYTES} bytes.`, 'Ask for less.');
  }
  return Buffer.concat(chunks).toString();
}

/**
 * A page of another site cannot read an answer, but it could have its reader's browser ask for many. Browsers say where a request comes
 * from; other clients say nothing.
 */
function refuseOtherSites({ headers: { host, origin, ...headers } }: IncomingMessage): void {
  const site = headers['sec-fetch-site'] ?? 'none';
  const isOwn = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
  if (isOwn && (site === 'same-origin' || site === 'none')) return;
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

async function jsonResponse(status: number, json: Json, request: IncomingMessage): Promise<Response> {
  if (json.body.length < MIN_COMPRESSED_BYTES || !takesGzip(request))
    return { status, type: JSON_TYPE, body: json.body };
  json.gzipped ??= compressed(json.body, { level: 1 });
  const headers = { 'content-encoding': 'gzip' };
  return { status, type: JSON_TYPE, body: await json.gzipped, headers };
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

function refusal({ status, code, message, cure }: RequestError, methods: readonly string[]): Response {
  const answer: ErrorAnswer = { error: { code, message, cure } };
  const headers: Record<string, string> = {};
  if (status === 401 && code !== 'USER_UNKNOWN') headers['www-authenticate'] = 'Bearer';
  if (status === 405) headers['allow'] = methods.join(', ');
  if (status === 503) headers['retry-after'] = '1';
  return { status, type: JSON_TYPE, body: Buffer.from(JSON.stringify(answer)), headers };
}

const methodNotAllowed = (methods: readonly string[]): RequestError =>
  new RequestError('METHOD_NOT_ALLOWED', 'Nothing can be changed here.', `Use ${methods.join(' or ')}.`);

function noSuchPath(path: string, page: ReadonlyMap<string, PageFile>): RequestError {
  return path === '/' && !page.has('/')
    ? new RequestError('NOT_FOUND', 'This build does not have the page.', 'Run make build.')
    : new RequestError('NOT_FOUND', 'There is nothing at this path.', 'Open / for the page.');
}
