/*
 * Scrapes: what is sent, what is believed, and when they end. How the kubelet's certificate is verified: certificates.test.ts.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { metricsText, plain } from '../../../../test/support/fakeKubelet.ts';
import { KubeletBed, NEVER } from '../../../../test/support/kubeletBed.ts';
import { until } from '../../../../test/support/waitFor.ts';

// TLS, processes of others and two cores.
vi.setConfig({ testTimeout: 300_000 });

const bed = new KubeletBed();
const { client, scrape, reason, atEnd } = bed;
const shown = () => bed.kubelet.requests.map(({ headers }) => headers.authorization);
describe('a scrape', () => {
  test('a scrape requests plain text with the token, and has the times around it', async () => {
    const found = await scrape();
    expect(found).toMatchObject({ ok: true, figures: { eventedPleg: false, version: 'v1.36.3' } });
    if (found.ok) expect(found.ended).toBeGreaterThan(found.started);
    const [request] = bed.kubelet.requests;
    expect(request?.url).toBe('/metrics');
    expect(request?.method).toBe('GET');
    expect(request?.headers).toMatchObject({ authorization: 'Bearer first', 'accept-encoding': 'identity' });
  });

  test('without a token file no token is sent', async () => {
    expect(await reason({ tokenFile: undefined })).toBe('well');
    expect(shown()).toEqual([undefined]);
  });

  test.each([
    [401, 'Unauthorized'],
    [403, 'Forbidden'],
    [302, 'Redirect'],
    [307, 'Redirect'],
    [404, 'BadStatus'],
    [204, 'BadStatus'],
    [500, 'BadStatus'],
  ])('answered with %d is %s', async (status, expected) => {
    bed.kubelet.answer = plain('no', {}, status);
    expect(await reason()).toBe(expected);
  });

  test('a redirect is not followed, so the token is sent nowhere else', async () => {
    const other = await bed.newKubelet(bed.authority);
    bed.kubelet.answer = plain('', { location: `${other.url}metrics` }, 302);
    expect(await reason()).toBe('Redirect');
    expect(other.requests).toEqual([]);
    expect(bed.kubelet.requests).toHaveLength(1);
  });

  test('a request ends at its own timeout when nobody answers', async () => {
    bed.kubelet.answer = () => undefined;
    expect(await reason({ timeoutMs: 200 })).toBe('Timeout');
  });

  test('a scrape that is answered byte by byte ends at its timeout too', async () => {
    bed.kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const timer = setInterval(() => response.write('#\n'), 10);
      response.on('close', () => clearInterval(timer));
    };
    expect(await reason({ timeoutMs: 300 })).toBe('Timeout');
  });

  test('an answer that is too large is not read to its end', async () => {
    let sent = 0;
    bed.kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536;
      };
      response.on('drain', more);
      more();
    };
    expect(await reason({ maxBytes: 1024 * 1024 })).toBe('TooLarge');
    await until(() => bed.kubelet.connections === 0);
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test('a compressed answer, which was not requested, is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    bed.kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' });
      response.end(bomb);
    };
    expect(await reason()).toBe('NotMetrics');
  });

  test.each([
    ['<html></html>', 'text/html'],
    ['{}', 'application/json'],
    ['hello', 'text/plain'],
    ['', 'text/plain'],
    ['kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"} 0\n', 'text/plain'],
  ])('at %j as %s was at no kubelet', async (text, type) => {
    bed.kubelet.answer = plain(text, { 'content-type': type });
    expect(await reason()).toBe('NotMetrics');
  });

  test('an answer that breaks off is a failure', async () => {
    bed.kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '100000' });
      response.write(metricsText());
      setImmediate(() => bed.kubelet.cut());
    };
    expect(await reason()).toBe('Unreachable');
  });

  test('an answer that is not HTTP is NotMetrics', async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => server.close());
    const { port } = server.address() as { port: number };
    expect(await reason({ url: new URL(`http://127.0.0.1:${port}`) })).toBe('NotMetrics');
    expect(await reason({ url: new URL(`https://127.0.0.1:${port}`) })).toBe('Tls');
  });

  test('a scrape without a listener is Unreachable', async () => {
    const { url } = bed.kubelet;
    await bed.kubelet.stop();
    expect(await reason({ url })).toBe('Unreachable');
  });

  test('a scrape ends when its signal is aborted', async () => {
    bed.kubelet.answer = () => undefined;
    const stop = new AbortController();
    const scraping = client().scrape(stop.signal);
    await until(() => bed.kubelet.requests.length === 1);
    stop.abort();
    expect(await scraping).toMatchObject({ ok: false });
  });

  test('the signal of an earlier scrape does not end the connection that the next one opens', async () => {
    const connections: Socket[] = [];
    const relay = createServer((socket) => void connections.push(socket));
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    atEnd(() => relay.close());
    const { port } = relay.address() as AddressInfo;
    const it = client({ url: new URL(`https://127.0.0.1:${port}`), timeoutMs: 20_000 });
    let isLost = false;
    it.onLost = () => {
      isLost = true;
    };
    const letThrough = async (count: number) => {
      await until(() => connections.length === count);
      const socket = connections[count - 1];
      if (socket !== undefined)
        pipeline(socket, connect(bed.kubelet.port, '127.0.0.1'), socket, () => undefined);
    };
    const earlier = new AbortController();
    const first = it.scrape(earlier.signal);
    await letThrough(1);
    expect(await first).toMatchObject({ ok: true });
    bed.kubelet.cut();
    await until(() => isLost);
    const second = it.scrape(NEVER);
    await until(() => connections.length === 2);
    earlier.abort();
    await letThrough(2);
    expect(await second).toMatchObject({ ok: true });
  });
});

describe('a token', () => {
  test('a rotated token is used for the next scrape', async () => {
    const it = client();
    await it.scrape(NEVER);
    writeFileSync(bed.tokenFile, 'second');
    await it.scrape(NEVER);
    expect(shown()).toEqual(['Bearer first', 'Bearer second']);
  });

  test('a token rotated during a scrape is tried once more after a 401', async () => {
    bed.kubelet.answer = (request, response) => {
      if (request.headers.authorization === 'Bearer second') plain(metricsText())(request, response);
      else {
        writeFileSync(bed.tokenFile, 'second');
        plain('', {}, 401)(request, response);
      }
    };
    expect(await reason()).toBe('well');
    expect(shown()).toEqual(['Bearer first', 'Bearer second']);
  });

  test('a refused token that did not change is not tried again', async () => {
    bed.kubelet.answer = plain('', {}, 401);
    expect(await reason()).toBe('Unauthorized');
    expect(bed.kubelet.requests).toHaveLength(1);
  });

  test('an unusable token file is reported without its contents', async () => {
    writeFileSync(bed.tokenFile, 'secret token\nwith lines');
    const found = await scrape();
    expect(found).toMatchObject({ ok: false, reason: 'Credentials' });
    expect(JSON.stringify(found)).not.toContain('secret');
    expect(await reason({ tokenFile: '/nowhere' })).toBe('Credentials');
    expect(bed.kubelet.requests).toEqual([]);
  });
});

describe('the connection', () => {
  test('a CA file that cannot be parsed fails a scrape before anything is sent, and a mended one is read with the next', async () => {
    const caFile = join(bed.authority.folder, 'mended.crt');
    writeFileSync(caFile, 'no certificate');
    const it = client({ caFiles: [bed.authority.caFile, caFile] });
    expect(await it.scrape(NEVER)).toMatchObject({
      ...{ ok: false, reason: 'Credentials' },
      message: `${caFile} contains no PEM certificate`,
    });
    expect(bed.kubelet.requests).toEqual([]);
    writeFileSync(caFile, readFileSync(bed.authority.caFile));
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Verified' });
    it.close();
  });

  test('one connection is kept between scrapes', async () => {
    const it = client();
    for (let i = 0; i < 3; i += 1) await it.scrape(NEVER);
    expect(new Set(bed.kubelet.requests.map(({ socket }) => socket)).size).toBe(1);
    expect(bed.kubelet.connections).toBe(1);
    it.close();
    await until(() => bed.kubelet.connections === 0);
  });

  test('a connection that the kubelet closes is reported at once, and the next scrape makes another', async () => {
    const it = client();
    let lost = 0;
    it.onLost = () => {
      lost += 1;
    };
    await it.scrape(NEVER);
    bed.kubelet.cut();
    await until(() => lost === 1);
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true });
    it.close();
    expect(lost).toBe(1);
  });

  test('a server that closes after each answer does not count as lost', async () => {
    bed.kubelet.answer = plain(metricsText(), { connection: 'close' });
    const it = client();
    let lost = 0;
    it.onLost = () => {
      lost += 1;
    };
    await it.scrape(NEVER);
    await it.scrape(NEVER);
    await until(() => bed.kubelet.connections === 0);
    expect(lost).toBe(0);
  });
});
