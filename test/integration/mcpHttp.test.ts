/*
 * The Model Context Protocol at the page, as a client of the SDK and hostile ones use it: on a real Postgres, with a real API server that says who may
 * read. Answers are compared with those of `plegwatch mcp`.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { where } from '../../devtools/localServices/where.ts';
import { withClient } from '../../src/store/connection.ts';
import { command } from '../../src/store/statement.ts';
import { CLI } from '../support/build.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { passes, waitFor } from '../support/waitFor.ts';

type Row = Readonly<Record<string, unknown>>;
interface Page extends LocalPlegwatch {
  readonly origin: string;
}

const run = promisify(execFile);
const PERIOD = { from: '-2d 03:00', to: '-2d 04:00' };
const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
/** Programs have half of the four connections to Postgres. */
const CONNECTIONS_OF_PROGRAMS = 2;
const MAX_AT_ONCE = 16;
const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const called = (name: string, args: Row = {}) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
});

/** A message of the newest protocol whose client is described in this number of levels. */
const described = (levels: number) =>
  JSON.stringify({
    ...called('readiness'),
    params: {
      ...called('readiness').params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': { experimental: 'HERE' },
      },
    },
  }).replace('"HERE"', `${'{"a":'.repeat(levels)}{}${'}'.repeat(levels)}`);

let server: TestServer;
let api: LocalApiServer;
let databaseUrl: string;
let reader: string;
const pages: Page[] = [];
const clients: Client[] = [];
/** It serves every cluster to this machine. */
let open: Page;
/** It serves the cluster west to those who have a token. */
let guarded: Page;
let viewer: string;
let stranger: string;

async function startPage(settings: Parameters<typeof startPlegwatch>[0]['settings']): Promise<Page> {
  const port = await freePort();
  const given = { mcp: 'true', pageAddress: `127.0.0.1:${port}`, ...settings };
  const started = await startPlegwatch({ cli: CLI, command: 'ui', settings: given });
  const page = Object.assign(started, { origin: `http://127.0.0.1:${port}` });
  pages.push(page);
  return page;
}

async function connected(
  transport: StdioClientTransport | StreamableHTTPClientTransport,
  mode: 'legacy' | 'auto' = 'auto',
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  clients.push(client);
  await client.connect(transport);
  return client;
}

const overHttp = ({ origin }: Page, token?: string) => {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new StreamableHTTPClientTransport(new URL('/mcp', origin), { requestInit: { headers } });
};

const portOf = ({ origin }: Page) => Number(new URL(origin).port);

async function post({ origin }: Page, message: unknown, init: RequestInit = {}) {
  const headers = { ...JSON_TYPE, ...init.headers };
  const body = typeof message === 'string' ? message : JSON.stringify(message);
  const response = await fetch(`${origin}/mcp`, { method: 'POST', body, ...init, headers });
  const answer = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    answer: answer === '' ? null : JSON.parse(answer),
  };
}

const errorOf = ({ answer }: Awaited<ReturnType<typeof post>>) => answer.result?.structuredContent.error;

needs(
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
)('MCP at the page', () => {
  const kubectl = async (...args: string[]): Promise<string> =>
    (await run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args])).stdout.trim();

  beforeAll(async () => {
    [server, api] = await Promise.all([startServer(), startApiServer({ users: { page: [] } })]);
    databaseUrl = await server.database();
    await writeHistory(databaseUrl, { nodes: 6, days: 3, lives: 20, step: 600 });
    reader = await server.reader(databaseUrl);
    const west = await server.role(databaseUrl, 'west');
    await query(databaseUrl, `SELECT store.grant_reader($1, 'west')`, [new URL(west).username]);
    await grant();
    const kubeconfig = api.kubeconfigOf('page');
    open = await startPage({ databaseUrl: reader });
    guarded = await startPage({ databaseUrl: west, cluster: 'west', kubeconfig });
  });
  afterAll(async () => {
    for (const client of clients) await client.close();
    for (const page of pages) await page.stop();
    await Promise.all([server?.stop(), api?.stop()]);
  });

  async function grant(): Promise<void> {
    const reviews = 'tokenreviews.authentication.k8s.io,subjectaccessreviews.authorization.k8s.io';
    await kubectl('create', 'clusterrole', 'reviews', '--verb=create', `--resource=${reviews}`);
    await kubectl('create', 'clusterrolebinding', 'page', '--clusterrole=reviews', '--user=page');
    await kubectl('create', 'clusterrole', 'reads-reports', '--verb=get', '--resource=pods');
    // kubectl refuses a resource that the API server does not have; the definition is not needed to decide about rights.
    const rules = [{ apiGroups: ['plegwatch.dev'], resources: ['plegreports'], verbs: ['get'] }];
    await kubectl('patch', 'clusterrole', 'reads-reports', '--type=merge', '-p', JSON.stringify({ rules }));
    for (const account of ['viewer', 'stranger']) await kubectl('create', 'serviceaccount', account);
    await kubectl(
      ...['create', 'clusterrolebinding', 'viewer', '--clusterrole=reads-reports'],
      '--serviceaccount=default:viewer',
    );
    viewer = await kubectl('create', 'token', 'viewer');
    stranger = await kubectl('create', 'token', 'stranger');
  }

  test('a client of either protocol has the tools and answers of plegwatch mcp', async () => {
    const [missed] = await query<{ finding_id: string }>(
      databaseUrl,
      `SELECT finding_id FROM plegwatch.findings WHERE kind = 'missed' AND cluster = 'west' ORDER BY detected_at LIMIT 1`,
    );
    const env = { PATH: process.env['PATH'] ?? '', PLEGWATCH_DATABASE_URL: reader };
    const stdio = await connected(
      new StdioClientTransport({ command: process.execPath, args: [CLI, 'mcp'], env, stderr: 'ignore' }),
    );
    const { tools } = await stdio.listTools();
    for (const mode of ['auto', 'legacy'] as const) {
      const http = await connected(overHttp(open), mode);
      expect((await http.listTools()).tools).toEqual(tools);
      expect(http.getInstructions()).toBe(stdio.getInstructions());
      for (const [name, args] of [
        ['timeline', { node: 'west-003', ...PERIOD }],
        ['timeline', { node: 'west-003', ...PERIOD, every: true }],
        ['finding', { id: missed?.finding_id }],
        ['find', { text: 'west-00' }],
        ['find', { text: 'nothing of this name' }],
        ['readiness', {}],
        ['report', { node: 'no-such-node' }],
        ['report', { no: 'argument' }],
        ['question', { name: 'How complete is the evidence, by cluster and day?', cluster: 'west' }],
      ] as const) {
        const [ofHttp, ofStdio] = [
          await http.callTool({ name, arguments: args }),
          await stdio.callTool({ name, arguments: args }),
        ];
        expect([name, args, ofHttp.structuredContent]).toEqual([name, args, ofStdio.structuredContent]);
        expect(ofHttp.isError).toBe(ofStdio.isError);
      }
    }
  });

  test('those who may get plegreports are answered, about the cluster of the page, and nobody else', async () => {
    for (const [token, code, status] of [
      [undefined, 'TOKEN_REQUIRED', 401],
      [`${viewer}x`, 'TOKEN_REFUSED', 401],
      [stranger, 'FORBIDDEN', 403],
    ] as const) {
      await expect(connected(overHttp(guarded, token))).rejects.toThrow();
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const refused = await post(guarded, MESSAGE, { headers });
      expect([refused.status, refused.answer.error]).toMatchObject([
        status,
        { code, cure: expect.stringMatching(/\S/) },
      ]);
      expect(refused.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null);
    }
    const client = await connected(overHttp(guarded, viewer));
    const { structuredContent } = await client.callTool({ name: 'readiness', arguments: {} });
    const { rows } = structuredContent as { rows: Row[] };
    expect(new Set(rows.map(({ cluster }) => cluster))).toEqual(new Set(['west']));
  });

  test('a page of one cluster whose role may read others answers no tool', async () => {
    const broad = await startPage({ databaseUrl: reader, cluster: 'west' });
    for (const args of [{}, { cluster: 'west' }]) {
      const error = errorOf(await post(broad, called('readiness', args)));
      expect(error).toMatchObject({ code: 'FORBIDDEN', cure: expect.stringContaining('grant_reader') });
    }
    expect((await fetch(`${broad.origin}/api/fallbacks`)).status).toBe(200);
  });

  test('a page answers no program unless it is told to', async () => {
    const usual = await startPage({ databaseUrl: reader, mcp: 'false' });
    const { status, answer } = await post(usual, MESSAGE);
    expect([status, answer.error.code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
    expect((await fetch(`${usual.origin}/mcp`)).status).toBe(404);
  });

  test.each<[string, unknown, RequestInit, number, string | number]>([
    ['GET', undefined, { method: 'GET' }, 405, 'METHOD_NOT_ALLOWED'],
    ['DELETE', '', { method: 'DELETE' }, 405, 'METHOD_NOT_ALLOWED'],
    ['text', MESSAGE, { headers: { 'content-type': 'text/plain' } }, 415, 'NOT_JSON'],
    ['a body without a type', MESSAGE, { headers: { 'content-type': '' } }, 415, 'NOT_JSON'],
    ['a page of another site', MESSAGE, { headers: { origin: 'https://evil.example' } }, 403, 'FORBIDDEN'],
    ['a page without a site', MESSAGE, { headers: { origin: 'null' } }, 403, 'FORBIDDEN'],
    ['a huge body', { ...MESSAGE, method: 'x'.repeat(2 ** 24) }, {}, 413, 'TOO_LARGE'],
    ['no JSON', '{"jsonrpc": "2.0"', {}, 400, -32_700],
    ['nothing', '', {}, 400, -32_700],
    ['many calls at once', Array(500).fill(called('readiness')), {}, 400, -32_600],
    ['no message', 'null', {}, 400, -32_600],
    ['a message without a method', { jsonrpc: '2.0', id: {} }, {}, 400, -32_600],
    ['a message as deep as a body may be', `${'['.repeat(30_000)}${']'.repeat(30_000)}`, {}, 400, -32_600],
    ['a message whose client is described in 10,000 levels', described(10_000), {}, 400, -32_600],
    ['no known method', { ...MESSAGE, method: 'tools/destroy' }, {}, 200, -32_601],
    ['an unknown protocol', MESSAGE, { headers: { 'mcp-protocol-version': '1999-01-01' } }, 400, -32_000],
  ])('%s is refused, in words', async (_, message, init, status, code) => {
    const body = init.method === 'GET' ? { ...init, body: null } : init;
    const refused = await post(open, message ?? '', body);
    expect([refused.status, refused.answer.error.code]).toEqual([status, code]);
    expect(refused.answer.error.message).toMatch(/\S/);
    if (status === 405) expect(refused.headers.get('allow')).toBe('POST');
    expect((await post(open, MESSAGE)).status).toBe(200);
  });

  test('a name of another site is refused, which may stand for this machine', async () => {
    const rebound = connect(portOf(open), '127.0.0.1');
    const body = JSON.stringify(MESSAGE);
    rebound.end(
      `POST /mcp HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(await text(rebound)).toMatch(/^HTTP\/1\.1 403 .*"code":"FORBIDDEN"/s);
  });

  test('nothing is kept open for a client that wants to be told of changes', async () => {
    const client = await connected(overHttp(open));
    await expect(client.listen({ toolsListChanged: true })).rejects.toThrow('Subscription limit reached');
  });

  test('clients that are slow to say what they ask, or leave meanwhile, keep nobody out', async () => {
    const slow = Array.from({ length: 300 }, () => {
      const socket = connect(portOf(open), '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(
        'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"json',
      );
      return socket;
    });
    await Promise.all(slow.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])));
    // A connection that an earlier test left open may have been closed for one of them.
    await passes(async () => expect((await fetch(`${open.origin}/api/fallbacks`)).status).toBe(200));
    await passes(async () => expect((await post(open, MESSAGE)).status).toBe(200));
    for (const socket of slow) socket.destroy();
    expect((await post(open, MESSAGE)).status).toBe(200);
    expect(open.log()).not.toContain('could not be answered');
  });

  test('programs that ask much, and leave, have half of the page at most, and it is free again', async () => {
    const calls = MAX_AT_ONCE + 4;
    const waiting = async () => {
      const [row] = await query<{ count: number }>(
        databaseUrl,
        `SELECT count(*)::int4 AS count FROM pg_locks
         WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return row?.count;
    };
    const gone = new AbortController();
    const asked = (signal: AbortSignal) =>
      post(open, called('timeline', { node: 'west-003', ...PERIOD }), { signal });
    await withClient({ databaseUrl, databaseSecretDir: undefined }, 'test', async (sql) => {
      await sql.run(command('BEGIN; LOCK TABLE store.relist_change IN ACCESS EXCLUSIVE MODE'));
      const answers: Promise<Awaited<ReturnType<typeof asked>> | null>[] = [];
      // Again and again: none waits for longer than fifteen seconds.
      const askMuch = () => {
        for (let n = 0; n < calls; n += 1) answers.push(asked(gone.signal).catch(() => null));
      };
      const waits = async () => {
        askMuch();
        return (await waiting()) === CONNECTIONS_OF_PROGRAMS;
      };
      await waitFor('calls that wait', waits);
      const busy = await waitFor('refusals', async () => {
        askMuch();
        const answer = await asked(AbortSignal.timeout(60_000));
        return answer.status === 503 && answer;
      });
      expect(busy.answer.error.code).toBe('BUSY');
      expect((await fetch(`${open.origin}/api/fallbacks`)).status).toBe(200);
      await waitFor('calls that wait', waits);
      gone.abort();
      const answered = (await Promise.all(answers)).filter((answer) => answer !== null);
      expect(answered.filter((answer) => answer.status !== 503 && errorOf(answer) === undefined)).toEqual([]);
      await sql.run(command('ROLLBACK'));
    });
    await waitFor('the end of their statements', async () => (await waiting()) === 0);
    const again = await Promise.all(
      Array.from({ length: MAX_AT_ONCE }, () => asked(AbortSignal.timeout(60_000))),
    );
    expect(again.map((answer) => [answer.status, errorOf(answer)])).toEqual(
      again.map(() => [200, undefined]),
    );
    expect(open.log()).not.toContain('failed');
  });
});
