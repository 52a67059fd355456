/*
 * The HTTP server of every program: `/metrics`, `/livez` and `/readyz`.
 *
 * `/livez` has only the checks that a restart would cure.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { messageOf, PlegwatchError } from './errors.ts';

/** Returns null when healthy, otherwise a short error. */
export type Check = () => string | null;
type Checks = Readonly<Record<string, Check>>;

export interface HttpSide {
  /** `host:port` or `:port`. */
  readonly address: string;
  readonly metrics: () => Promise<string>;
  /** Asked anew for each request. */
  readonly live: () => Checks;
  readonly ready: () => Checks;
}

/** More than Prometheus and the kubelet's probes need. */
const MAX_CONNECTIONS = 64;

export interface HttpServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Resolves when the server listens. Throws HTTP_ADDRESS_IN_USE. */
export async function serveHttp(side: HttpSide): Promise<HttpServer> {
  const server = createServer(async (request, response) => {
    const answer = await answerTo(side, request.url ?? '/').catch(failed);
    const { status, body, type = 'text/plain; charset=utf-8' } = answer;
    // Node caches the date in a timer, which would wake the program a second after every request.
    response.sendDate = false;
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
  server.requestTimeout = 5_000;
  bound(server);
  await listen(server, '--http-address', side.address);
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

/** Closes the oldest connection beyond the limit: connections that are held open must not lock a probe out. */
function bound(server: Server): void {
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    const [oldest] = connections;
    if (connections.size > MAX_CONNECTIONS) oldest?.destroy();
  });
}

interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  /** Default: plain text. */
  readonly type?: string;
}

async function answerTo(side: HttpSide, url: string): Promise<HttpAnswer> {
  const path = url.split('?')[0];
  if (path === '/livez') return health(side.live());
  if (path === '/readyz') return health(side.ready());
  if (path !== '/metrics') return { status: 404, body: 'Only /metrics, /livez and /readyz are served.\n' };
  return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: await side.metrics() };
}

const failed = (error: unknown): HttpAnswer => ({ status: 500, body: `${messageOf(error)}\n` });

function health(checks: Checks): HttpAnswer {
  const lines = Object.entries(checks).map(([name, check]) => ({ name, error: check() }));
  const isHealthy = lines.every((line) => line.error === null);
  const texts = lines.map(({ name, error }) =>
    error === null ? `ok ${name}\n` : `not ok ${name}: ${error}\n`,
  );
  return { status: isHealthy ? 200 : 503, body: texts.join('') };
}

/** Listens on the `address` of the setting `flag`: `host:port` or `:port`. Throws HTTP_ADDRESS_IN_USE. */
export async function listen(server: Server, flag: string, address: string): Promise<void> {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/^\[|\]$/g, '');
  const variable = `PLEGWATCH_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new PlegwatchError(
          'HTTP_ADDRESS_IN_USE',
          `Cannot listen on ${address} (${flag}): ${messageOf(error)}.`,
          `Choose a free address with ${flag} (${variable}), or stop what listens there.`,
          { cause: error },
        ),
      ),
    );
    server.listen({ port: Number(address.slice(at + 1)), ...(host === '' ? {} : { host }) }, resolve);
  });
}
