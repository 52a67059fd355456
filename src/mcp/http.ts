/*
 * The Model Context Protocol over HTTP, at a path of the page, which says who may ask. A request is one message, and nothing of it is kept.
 *
 *   legacy   a message of the protocol before 2026, which has an answer without the handshake
 *   modern   a message that says for itself which protocol and client it is of
 */
import type { IncomingHttpHeaders } from 'node:http';
import {
  createMcpHandler,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { errorFields } from '../platform/errors.ts';
import { aborted } from '../platform/stopSignal.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import { inEach } from '../store/notFound.ts';
import { listClusters } from '../store/statements.ts';
import type { ReadStore } from '../store/store.ts';
import { databaseRefusal, type Reader, readStoreOf } from '../ui/answers/reader.ts';
import type { PostedAnswer, PostedAnswers } from '../ui/pageServer.ts';
import { RequestError } from '../ui/requestError.ts';
import { type AnswerSource, serverOf } from './server.ts';

/** Those that the protocol defines. */
const HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

const MAX_LEVELS = 100;

export const answersOverHttp: PostedAnswers = (reader, log) => {
  const throttled = new ThrottledLog(log);
  const source: AnswerSource = {
    ...{ program: 'ui', log: throttled, explain: databaseRefusal },
    read: (signal) => confined(reader(signal, 'half')),
  };
  const modern = createMcpHandler(() => serverOf(source), {
    legacy: 'reject',
    // A subscription is a connection that is held open.
    maxSubscriptions: 0,
    onerror: (error) => throttled.warn(errorFields(error), 'message of the client not served'),
  });
  return async (headers, body, signal) => {
    const message = parsed(body);
    if (message === undefined) return refused(-32_700, 'The body is not JSON.');
    if (Array.isArray(message)) return refused(-32_600, 'A request has one message: send each alone.');
    if (isDeeper(message, MAX_LEVELS))
      return refused(-32_600, `A message has at most ${MAX_LEVELS} levels of objects and lists.`);
    const request = new Request('http://localhost/mcp', {
      ...{ method: 'POST', headers: headersOf(headers), signal },
    });
    const response = (await isLegacyRequest(request, message))
      ? await legacyResponse(source, request, message)
      : await modern.fetch(request, { parsedBody: message });
    return { status: response.status, json: await response.text() };
  };
};

/** Undefined if it is not JSON. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Without a call for each level: those who read messages make one, and the stack ends before a body does. */
function isDeeper(message: unknown, levels: number): boolean {
  let inner: readonly unknown[] = [message];
  for (let level = 0; level <= levels && inner.length > 0; level++)
    inner = inner.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
  return inner.length > 0;
}

const refused = (code: number, message: string): PostedAnswer => ({
  ...{ status: 400, json: JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }) },
});

const headersOf = (given: IncomingHttpHeaders): Headers =>
  new Headers(HEADERS.flatMap((name) => (given[name] === undefined ? [] : [[name, String(given[name])]])));

/** Throws the reason of the request's signal. */
async function legacyResponse(
  source: AnswerSource,
  request: Request,
  parsedBody: unknown,
): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  const server = serverOf(source);
  await server.connect(transport);
  // The transport does not answer a client that has gone away.
  const gone = aborted(request.signal).then(() => Promise.reject(request.signal.reason));
  try {
    return await Promise.race([transport.handleRequest(request, { parsedBody }), gone]);
  } finally {
    await server.close();
  }
}

/** Not every tool narrows its answer to the clusters of the page: the page's role itself must read no other. */
async function confined(reader: Reader): Promise<ReadStore> {
  const store = readStoreOf(reader);
  const { clusters } = reader;
  if (clusters === null) return store;
  const known = await inEach(await store.parts(), async (part) => {
    const { rows } = await part.transaction((sql) => sql.run(listClusters));
    return rows.every(({ name }) => clusters.includes(name));
  });
  if (known.every(Boolean)) return store;
  throw new RequestError(
    'FORBIDDEN',
    `These answers may be about ${clusters.join(', ')} only, and the page's role in Postgres may read other clusters.`,
    "Give the page another role: SELECT store.grant_reader('role', 'cluster').",
  );
}
