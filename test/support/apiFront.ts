/*
 * A proxy on loopback in front of a real API server: it forwards and records requests, and injects faults on demand.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as send } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LocalApiServer } from '../../devtools/localServices/apiServer.ts';

export interface ProxiedRequest {
  readonly call: 'list' | 'watch' | 'get' | 'write';
  /** The plural, such as `nodes`. */
  readonly resource: string;
  /** Empty for a list. */
  readonly name: string;
}

/**
 * `hang`: no response. `headers`: no response after the headers. `bookmark`: a watch ends after a bookmark. `events`: a watch ends after
 * `max` events.
 */
type ApiFault =
  | { readonly is: 'status'; readonly status: number; readonly retryAfter?: number }
  | { readonly is: 'hang' | 'reset' | 'headers' | 'bookmark' }
  | { readonly is: 'events'; readonly max: number };

/** Called when a write was answered: with its path, the status and the body of the answer, and when the request came (`performance.now()`). */
export type AnswerListener = (path: string, status: number, body: string, cameAt: number) => void;

/** The fault of a request; null forwards it. */
export type FaultChoice = (request: ProxiedRequest) => ApiFault | null;

export class ApiFront {
  /** A kubeconfig for the proxy, with the administrator's token. */
  readonly kubeconfig: string;
  /** The requests since the last call of `inject`. */
  readonly requests: ProxiedRequest[] = [];
  readonly #api: Pick<LocalApiServer, 'url' | 'ca'>;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #open = new Set<ServerResponse>();
  readonly #server;
  readonly #dir: string;
  #choose: FaultChoice = () => null;
  #onAnswer: AnswerListener | null = null;

  private constructor(
    api: Pick<LocalApiServer, 'url' | 'ca'>,
    dir: string,
    server: ReturnType<typeof createServer>,
  ) {
    this.#api = api;
    this.#dir = dir;
    this.#server = server;
    this.kubeconfig = join(dir, 'kubeconfig');
    server.on('request', (request, response) => this.#take(request, response));
  }

  static async start(api: Pick<LocalApiServer, 'url' | 'ca' | 'token'>): Promise<ApiFront> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const front = new ApiFront(api, mkdtempSync(join(tmpdir(), 'plegwatch-front-')), server);
    const { port } = server.address() as AddressInfo;
    writeFileSync(
      front.kubeconfig,
      JSON.stringify({
        clusters: [
          { name: 'here', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
        ],
        users: [{ name: 'me', user: { token: api.token } }],
        contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
        'current-context': 'here',
      }),
      { mode: 0o600 },
    );
    return front;
  }

  /** Listens to the answers to writes from now on. */
  listen(onAnswer: AnswerListener): void {
    this.#onAnswer = onAnswer;
  }

  /** Cuts all open connections, so that the faults begin at once. */
  inject(choose: FaultChoice): void {
    this.#choose = choose;
    this.requests.length = 0;
    for (const response of this.#open) response.destroy();
  }

  injectNothing(): void {
    this.inject(() => null);
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
    this.#agent.destroy();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const proxied = describeRequest(request);
    this.requests.push(proxied);
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
    const fault = this.#choose(proxied);
    switch (fault?.is) {
      case 'status':
        respondWithStatus(response, fault);
        break;
      case 'reset':
        response.destroy();
        break;
      case 'headers':
        response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
        break;
      case 'bookmark':
        response.end(bookmark(request));
        break;
      case 'hang':
        break;
      default:
        this.#forward(request, response, fault?.max ?? Number.POSITIVE_INFINITY);
    }
  }

  #forward(request: IncomingMessage, response: ServerResponse, maxEvents: number): void {
    const { url = '/', method, headers } = request;
    const { host: _, ...forwarded } = headers;
    const cameAt = performance.now();
    const upstream = send(
      new URL(url, this.#api.url),
      { method, headers: forwarded, ca: this.#api.ca, agent: this.#agent },
      (answered) => {
        response.writeHead(answered.statusCode ?? 0, answered.headers).flushHeaders();
        if (method !== 'GET') this.#report(url, answered, cameAt);
        if (answered.statusCode === 200 && maxEvents !== Number.POSITIVE_INFINITY)
          forwardEvents(answered, response, maxEvents);
        else answered.pipe(response);
        answered.once('error', () => response.destroy());
      },
    );
    // A stopped server shows as a reset connection.
    upstream.once('error', () => response.destroy());
    response.once('close', () => upstream.destroy());
    request.pipe(upstream);
  }

  #report(path: string, answered: IncomingMessage, cameAt: number): void {
    const parts: Buffer[] = [];
    answered.on('data', (part: Buffer) => parts.push(part));
    answered.on('end', () =>
      this.#onAnswer?.(path, answered.statusCode ?? 0, Buffer.concat(parts).toString(), cameAt),
    );
  }
}

function describeRequest({ method, url = '/' }: IncomingMessage): ProxiedRequest {
  const { pathname, searchParams } = new URL(url, 'http://front');
  // /api/v1/nodes/…, /apis/plegwatch.dev/v1alpha1/plegreports/…
  const [, root, ...rest] = pathname.split('/');
  const [resource = '', name = ''] = rest.slice(root === 'api' ? 1 : 2);
  if (method !== 'GET') return { call: 'write', resource, name };
  if (searchParams.get('watch') === 'true') return { call: 'watch', resource, name };
  return { call: name === '' ? 'list' : 'get', resource, name };
}

function respondWithStatus(
  response: ServerResponse,
  { status, retryAfter }: Extract<ApiFault, { is: 'status' }>,
): void {
  const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  const body = {
    kind: 'Status',
    code: status,
    reason: status === 410 ? 'Expired' : '',
    message: `injected ${status}`,
  };
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** A bookmark of the requested version. */
function bookmark({ url = '/' }: IncomingMessage): string {
  const resourceVersion = new URL(url, 'http://front').searchParams.get('resourceVersion') ?? '';
  return `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion } } })}\n`;
}

/** Forwards at most `max` lines, then ends the response regularly. */
function forwardEvents(from: IncomingMessage, to: ServerResponse, max: number): void {
  let left = max;
  let partial = '';
  const end = () => {
    from.destroy();
    to.end();
  };
  if (left === 0) {
    end();
    return;
  }
  from.setEncoding('utf8');
  from.on('data', (chunk: string) => {
    const lines = `${partial}${chunk}`.split('\n');
    partial = lines.pop() ?? '';
    for (const line of lines) {
      if (left === 0) return;
      to.write(`${line}\n`);
      left -= 1;
      if (left === 0) end();
    }
  });
}
