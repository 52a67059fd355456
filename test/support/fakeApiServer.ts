/*
 * An HTTP server that answers as a test says, for what a real API server cannot be made to do on request.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Answerer = (request: IncomingMessage, response: ServerResponse) => void;

export interface ScriptedApi {
  /** A kubeconfig that leads here. */
  readonly kubeconfig: string;
  /** Path and query of every request so far. */
  readonly asked: string[];
  stop(): Promise<void>;
}

export async function scriptedApi(answer: Answerer): Promise<ScriptedApi> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const dir = mkdtempSync(join(tmpdir(), 'plegwatch-scripted-'));
  const kubeconfig = join(dir, 'kubeconfig');
  const cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'here', cluster }],
      users: [{ name: 'me', user: { token: 'one' } }],
      contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
      'current-context': 'here',
    }),
  );
  return {
    kubeconfig,
    asked,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        rmSync(dir, { recursive: true, force: true });
      }),
  };
}

/** Answers with JSON. */
export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
