/*
 * The HTTP side of both programs: `/metrics`, `/livez` and `/readyz`, nothing else.
 *
 * A check answers null when it is well and otherwise says what is wrong. `/livez` asks only what a restart would cure.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { messageOf, PlegwatchError } from './errors.ts';

/** Null when well; otherwise what is wrong, in a few words. */
type Check = () => string | null;

export interface HttpSide {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly metrics: () => Promise<string>;
  readonly live: Readonly<Record<string, Check>>;
  readonly ready: Readonly<Record<string, Check>>;
}

/** More than scrapers and probes need. */
const MAX_CONNECTIONS = 64;

export interface HttpServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Listens at once. Throws HTTP_ADDRESS_IN_USE, naming the setting. */
export async function serveHttp(side: HttpSide): Promise<HttpServer> {
  const server = createServer(async (request, response) => {
    const answer = await answerTo(side, request.url ?? '/').catch(failed);
    // Node would keep a clock for it, which wakes the program up once more a second after every request.
    response.sendDate = false;
    const length = Buffer.byteLength(answer.body);
    response.writeHead(answer.status, { 'content-type': answer.type, 'content-length': length });
    response.end(answer.body);
  });
  server.requestTimeout = 5_000;
  bound(server);
  await listen(server, side.address);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Whoever came first makes room for who comes now: connections that are held open must not keep a probe out. */
function bound(server: Server): void {
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    const [oldest] = connections;
    if (connections.size > MAX_CONNECTIONS) oldest?.destroy();
  });
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

async function answerTo(side: HttpSide, url: string): Promise<Answer> {
  const path = url.split('?')[0];
  if (path === '/livez') return verdict(side.live);
  if (path === '/readyz') return verdict(side.ready);
  if (path === '/metrics') {
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: await side.metrics() };
  }
  return { status: 404, type: 'text/plain', body: 'Only /metrics, /livez and /readyz are here.\n' };
}

function failed(error: unknown): Answer {
  return { status: 500, type: 'text/plain; charset=utf-8', body: `${messageOf(error)}\n` };
}

function verdict(checks: Readonly<Record<string, Check>>): Answer {
  const lines = Object.entries(checks).map(([name, check]) => ({ name, error: check() }));
  const well = lines.every((line) => line.error === null);
  const body = lines.map(({ name, error }) =>
    error === null ? `ok ${name}\n` : `not ok ${name}: ${error}\n`,
  );
  return { status: well ? 200 : 503, type: 'text/plain; charset=utf-8', body: body.join('') };
}

async function listen(server: Server, address: string): Promise<void> {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/^\[|\]$/g, '');
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new PlegwatchError(
          'HTTP_ADDRESS_IN_USE',
          `--http-address ${address} cannot be listened on: ${messageOf(error)}.`,
          'Choose a free address with --http-address (PLEGWATCH_HTTP_ADDRESS), or stop what listens there.',
          { cause: error },
        ),
      ),
    );
    server.listen({ port: Number(address.slice(at + 1)), ...(host === '' ? {} : { host }) }, resolve);
  });
}
