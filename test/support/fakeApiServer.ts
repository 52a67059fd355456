/*
 * An API server whose responses come from the test, for what a real one does not do on request.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface FakeApiServer {
  readonly kubeconfig: string;
  /** Path and query of every request so far. */
  readonly requests: string[];
  stop(): Promise<void>;
}

export async function startFakeApiServer(respond: RequestListener): Promise<FakeApiServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    respond(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const dir = mkdtempSync(join(tmpdir(), 'plegwatch-api-'));
  const kubeconfig = join(dir, 'kubeconfig');
  const cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'fake', cluster }],
      users: [{ name: 'me', user: { token: 'one' } }],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'me' } }],
      'current-context': 'fake',
    }),
  );
  return {
    kubeconfig,
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        rmSync(dir, { recursive: true, force: true });
      }),
  };
}

export function respondJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
