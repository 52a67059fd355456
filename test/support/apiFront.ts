/*
 * A server on loopback in front of a real API server: it passes everything on, keeps what was asked, and makes trouble when it
 * is told to.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as send } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LocalApiServer } from '../../devtools/localServices/apiServer.ts';

export interface Asked {
  readonly call: 'list' | 'watch' | 'get' | 'write';
  /** The plural, such as `nodes`. */
  readonly resource: string;
  /** Empty for a list. */
  readonly name: string;
}

/**
 * `mute`: the request is taken, and nothing comes. `events`: a watch is ended after so many of them. `bookmark`: a watch is
 * told that nothing happened, and ended.
 */
type Trouble =
  | { readonly is: 'answer'; readonly status: number; readonly retryAfter?: number }
  | { readonly is: 'hang' | 'reset' | 'mute' | 'bookmark' }
  | { readonly is: 'events'; readonly most: number };

export type Troubles = (asked: Asked) => Trouble | null;

export class ApiFront {
  /** A kubeconfig that leads here, as the administrator. */
  readonly kubeconfig: string;
  readonly asked: Asked[] = [];
  readonly #api: Pick<LocalApiServer, 'url' | 'ca'>;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #open = new Set<ServerResponse>();
  readonly #server;
  readonly #dir: string;
  #troubles: Troubles = () => null;

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

  /** From now on; whatever is open is cut, so that it begins at once. */
  trouble(troubles: Troubles): void {
    this.#troubles = troubles;
    this.asked.length = 0;
    for (const response of this.#open) response.destroy();
  }

  /** What hangs is cut too. */
  noTrouble(): void {
    this.trouble(() => null);
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
    this.#agent.destroy();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const asked = askedIn(request);
    this.asked.push(asked);
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
    const trouble = this.#troubles(asked);
    switch (trouble?.is) {
      case 'answer':
        answer(response, trouble);
        break;
      case 'reset':
        response.destroy();
        break;
      case 'mute':
        response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
        break;
      case 'bookmark':
        response.end(bookmark(request));
        break;
      case 'hang':
        break;
      default:
        this.#pass(request, response, trouble?.most ?? Number.POSITIVE_INFINITY);
    }
  }

  #pass(request: IncomingMessage, response: ServerResponse, mostEvents: number): void {
    const { url = '/', method, headers } = request;
    const { host: _, ...passed } = headers;
    const upstream = send(
      new URL(url, this.#api.url),
      { method, headers: passed, ca: this.#api.ca, agent: this.#agent },
      (answered) => {
        response.writeHead(answered.statusCode ?? 0, answered.headers).flushHeaders();
        if (answered.statusCode === 200 && mostEvents !== Number.POSITIVE_INFINITY)
          passEvents(answered, response, mostEvents);
        else answered.pipe(response);
        answered.once('error', () => response.destroy());
      },
    );
    // A server that is away is a connection that breaks.
    upstream.once('error', () => response.destroy());
    response.once('close', () => upstream.destroy());
    request.pipe(upstream);
  }
}

function askedIn({ method, url = '/' }: IncomingMessage): Asked {
  const { pathname, searchParams } = new URL(url, 'http://front');
  // /api/v1/nodes/…, /apis/plegwatch.dev/v1alpha1/plegreports/…
  const [, root, ...rest] = pathname.split('/');
  const [resource = '', name = ''] = rest.slice(root === 'api' ? 1 : 2);
  if (method !== 'GET') return { call: 'write', resource, name };
  if (searchParams.get('watch') === 'true') return { call: 'watch', resource, name };
  return { call: name === '' ? 'list' : 'get', resource, name };
}

function answer(response: ServerResponse, { status, retryAfter }: Extract<Trouble, { is: 'answer' }>): void {
  const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  const body = {
    kind: 'Status',
    code: status,
    reason: status === 410 ? 'Expired' : '',
    message: `trouble ${status}`,
  };
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** The version that was asked for is the latest. */
function bookmark({ url = '/' }: IncomingMessage): string {
  const resourceVersion = new URL(url, 'http://front').searchParams.get('resourceVersion') ?? '';
  return `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion } } })}\n`;
}

/** Whole lines, so many at most; then an end in good order. */
function passEvents(from: IncomingMessage, to: ServerResponse, most: number): void {
  let left = most;
  let rest = '';
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
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (left === 0) return;
      to.write(`${line}\n`);
      left -= 1;
      if (left === 0) end();
    }
  });
}
