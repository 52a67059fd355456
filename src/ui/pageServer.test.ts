/*
 * The server of the page, on real sockets, with an answer of its own.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Access, loopbackAccess } from './access/access.ts';
import { readPage } from './page.ts';
import { type Answer, type PageServer, servePage } from './pageServer.ts';
import { RequestError } from './requestError.ts';

const folder = mkdtempSync(join(tmpdir(), 'plegwatch-page-'));
const LONG = 'x'.repeat(5_000);
let server: PageServer | undefined;

beforeAll(() => {
  writeFileSync(join(folder, 'index.html'), '<!doctype html>');
  writeFileSync(join(folder, 'page.js'), `// ${LONG}`);
});
afterEach(() => server?.stop());
afterAll(() => rmSync(folder, { recursive: true }));

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

async function start(
  access: Access = loopbackAccess,
  answer: Answer = async () => ({ text: LONG }),
  sendTimeoutMs = 20_000,
  requestTimeoutMs = 20_000,
) {
  const explain = () => new RequestError('INTERNAL', 'It failed.', 'Read the log.');
  const answers = { '/api/fleet': answer };
  const page = readPage(folder);
  server = await servePage({
    ...{ address: '127.0.0.1:0', access, page, answers, explain, sendTimeoutMs, requestTimeoutMs },
    posted: { '/asked': async (_headers, body) => ({ status: 200, json: JSON.stringify({ body }) }) },
    onAnswered: () => undefined,
  });
  const { port } = server;
  return (path: string, headers: Record<string, string | string[]> = {}, method = 'GET'): Promise<Got> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path, headers, method, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            ...{ status: response.statusCode ?? 0, headers: response.headers },
            body: Buffer.concat(chunks),
          }),
        );
      });
      sent.on('error', reject);
      sent.end();
    });
}

const codeOf = ({ status, body }: Got) => [status, JSON.parse(body.toString()).error?.code ?? null];

test('every answer lets a browser load from here only, and no other site embed or read it', async () => {
  const get = await start();
  for (const path of ['/', '/page.js', '/api/fleet', '/api/none']) {
    const { headers } = await get(path);
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers['content-security-policy']).not.toMatch(/unsafe|https?:|\*/);
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  }
  expect((await get('/api/fleet')).headers['cache-control']).toBe('no-store');
});

test('only GET and HEAD are answered', async () => {
  const get = await start();
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const answer = await get('/api/fleet', {}, method);
    expect(codeOf(answer)).toEqual([405, 'METHOD_NOT_ALLOWED']);
    expect(answer.headers.allow).toBe('GET, HEAD');
  }
  const head = await get('/api/fleet', {}, 'HEAD');
  expect([head.status, head.body.length]).toEqual([200, 0]);
  expect(Number(head.headers['content-length'])).toBeGreaterThan(LONG.length);
});

test('a file of the page is not sent again to a browser that has it', async () => {
  const get = await start();
  const first = await get('/page.js');
  expect(first.headers['content-type']).toBe('text/javascript; charset=utf-8');
  const again = await get('/page.js', { 'if-none-match': first.headers.etag ?? '' });
  expect([again.status, again.body.length]).toEqual([304, 0]);
});

test.each(['/page.js', '/api/fleet'])('%s is compressed for those who take it', async (path) => {
  const get = await start();
  const plain = await get(path);
  const compressed = await get(path, { 'accept-encoding': 'br, gzip' });
  expect(compressed.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(compressed.body)).toEqual(plain.body);
  expect((await get(path, { 'accept-encoding': 'gzip;q=0' })).headers).not.toHaveProperty('content-encoding');
});

test.each(['/page.css', '/../package.json', '/api/toString', '/api/fleet/', '//', '/%2e%2e/'])(
  'there is nothing at %s',
  async (path) => {
    expect(codeOf(await (await start())(path))).toEqual([404, 'NOT_FOUND']);
  },
);

test('on a loopback address, a request for the name of another site is refused', async () => {
  const get = await start();
  for (const host of ['localhost:9466', '127.0.0.1:80', '[::1]:9466', 'localhost']) {
    expect((await get('/api/fleet', { host })).status).toBe(200);
  }
  for (const host of ['evil.example', 'localhost.evil.example:9466', '127.0.0.1.evil.example', '10.0.0.1']) {
    expect(codeOf(await get('/api/fleet', { host }))).toEqual([403, 'FORBIDDEN']);
  }
});

test('no page of another site can have the browser of its reader ask', async () => {
  let asked = 0;
  const get = await start(loopbackAccess, async () => {
    asked += 1;
    return {};
  });
  for (const site of ['cross-site', 'same-site']) {
    expect(codeOf(await get('/api/fleet', { 'sec-fetch-site': site }))).toEqual([403, 'FORBIDDEN']);
  }
  expect(asked).toBe(0);
  for (const site of ['same-origin', 'none']) {
    expect((await get('/api/fleet', { 'sec-fetch-site': site })).status).toBe(200);
  }
  // A link to the page.
  expect((await get('/', { 'sec-fetch-site': 'cross-site' })).status).toBe(200);
});

test('an answer that many ask for is written once', async () => {
  let written = 0;
  const answer = { toJSON: () => ({ text: LONG, written: ++written }) };
  const get = await start(loopbackAccess, async () => answer);
  const bodies = await Promise.all([1, 2, 3].map(async () => (await get('/api/fleet')).body.toString()));
  expect(bodies).toEqual(Array.from({ length: 3 }, () => JSON.stringify({ text: LONG, written: 1 })));
});

test('an answer learns that its client has gone away', async () => {
  const arrived = Promise.withResolvers<AbortSignal>();
  await start(loopbackAccess, async (_query, signal) => {
    arrived.resolve(signal);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    throw signal.reason;
  });
  const client = connect({ host: '127.0.0.1', port: server?.port ?? 0 });
  client.write('GET /api/fleet HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const signal = await arrived.promise;
  expect(signal.aborted).toBe(false);
  const gone = once(signal, 'abort');
  client.destroy();
  await gone;
});

test('a client that reads nothing of its answer is disconnected', async () => {
  const huge = { text: 'x'.repeat(64 * 2 ** 20) };
  const gone = Promise.withResolvers<void>();
  await start(
    loopbackAccess,
    async (_query, signal) => {
      signal.addEventListener('abort', () => gone.resolve());
      return huge;
    },
    50,
  );
  const client = connect({ host: '127.0.0.1', port: server?.port ?? 0 });
  client.on('error', () => undefined);
  client.write('GET /api/fleet HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await gone.promise;
  client.destroy();
});

test('a client that does not say in time what it asks is disconnected, and told why', async () => {
  await start(loopbackAccess, undefined, undefined, 50);
  const client = connect({ host: '127.0.0.1', port: server?.port ?? 0 });
  client.write(
    'POST /asked HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  );
  expect(await text(client)).toMatch(/^HTTP\/1\.1 408 /);
});

test('strangers who hold connections, silent or slow, lock nobody out who has a token', async () => {
  const token = 'Bearer sesame';
  const get = await start({
    check: async ({ headers }) => {
      if (headers.authorization !== token) throw new RequestError('TOKEN_REQUIRED', 'No token.', 'Send one.');
    },
  });
  const port = server?.port ?? 0;
  const open = new Set<Socket>();
  const settled: Promise<unknown>[] = [];
  const knock = (said: string) => {
    const stranger = connect({ host: '127.0.0.1', port });
    stranger.on('error', () => undefined);
    stranger.once('close', () => open.delete(stranger));
    if (said !== '') stranger.write(said);
    open.add(stranger);
    settled.push(Promise.race([once(stranger, 'connect'), once(stranger, 'close')]));
  };
  const saying = ['', 'GET /api/fleet HT', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'];
  const statuses: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    for (let n = open.size; n < 2_000; n += 1) knock(saying[n % saying.length] ?? '');
    await Promise.all(settled.splice(0));
    statuses.push((await get('/api/fleet', { authorization: token })).status);
  }
  for (const stranger of open) stranger.destroy();
  expect(statuses).toEqual(Array.from({ length: 3 }, () => 200));
});

test('a defect is answered without its text, which may hold a secret', async () => {
  const get = await start(loopbackAccess, async () => {
    throw new Error('password=sesame');
  });
  const answer = await get('/api/fleet');
  expect(codeOf(answer)).toEqual([500, 'INTERNAL']);
  expect(answer.body.toString()).not.toContain('sesame');
});

test('more requests at once than can be answered are refused, and it recovers', async () => {
  const release: (() => void)[] = [];
  const get = await start(loopbackAccess, () => new Promise((resolve) => release.push(() => resolve({}))));
  const all = Array.from({ length: 40 }, () => get('/api/fleet'));
  const refused = await Promise.race(all);
  expect(codeOf(refused)).toEqual([503, 'BUSY']);
  // Those that arrive now are released one by one.
  let done = false;
  const answered = Promise.all(all).finally(() => {
    done = true;
  });
  while (!done) {
    release.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const statuses = (await answered).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 503]));
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(32);
});
