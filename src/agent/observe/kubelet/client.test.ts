import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type Authority,
  FakeKubelet,
  makeAuthority,
  metricsText,
  plain,
  removeAuthority,
} from '../../../../test/support/fakeKubelet.ts';
import { until } from '../../../../test/support/waitFor.ts';
import { KubeletClient, type KubeletClientOptions, type Scrape } from './client.ts';

// TLS, processes of others and two cores.
vi.setConfig({ testTimeout: 20_000 });

let authority: Authority;
let kubelet: FakeKubelet;
let tokenFile: string;
const cleanUps: (() => unknown)[] = [];

beforeAll(() => {
  authority = makeAuthority();
  tokenFile = join(authority.folder, 'token');
});
afterAll(() => removeAuthority(authority));
beforeEach(async () => {
  writeFileSync(tokenFile, 'first\n');
  kubelet = await FakeKubelet.start(authority);
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await kubelet.stop();
});

function client(some: Partial<KubeletClientOptions> = {}): KubeletClient {
  const made = new KubeletClient({
    url: kubelet.url,
    tokenFile,
    identity: 'auto',
    caFiles: [authority.caFile],
    serverName: undefined,
    node: 'this-node',
    hostIps: [],
    ...some,
  });
  cleanUps.push(() => made.close());
  return made;
}

const NEVER = new AbortController().signal;
const scrape = (some: Partial<KubeletClientOptions> = {}): Promise<Scrape> => client(some).scrape(NEVER);
const reason = async (some: Partial<KubeletClientOptions> = {}) => {
  const found = await scrape(some);
  return found.ok ? 'well' : found.reason;
};
const shown = () => kubelet.requests.map(({ headers }) => headers.authorization);
describe('a scrape', () => {
  test('a scrape requests plain text with the token, and has the times around it', async () => {
    const found = await scrape();
    expect(found).toMatchObject({ ok: true, figures: { eventedPleg: false, version: 'v1.36.3' } });
    if (found.ok) expect(found.ended).toBeGreaterThan(found.started);
    const [request] = kubelet.requests;
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
    kubelet.answer = plain('no', {}, status);
    expect(await reason()).toBe(expected);
  });

  test('a redirect is not followed, so the token is sent nowhere else', async () => {
    const other = await FakeKubelet.start(authority);
    cleanUps.push(() => other.stop());
    kubelet.answer = plain('', { location: `${other.url}metrics` }, 302);
    expect(await reason()).toBe('Redirect');
    expect(other.requests).toEqual([]);
    expect(kubelet.requests).toHaveLength(1);
  });

  test('a request ends at its own timeout when nobody answers', async () => {
    kubelet.answer = () => undefined;
    expect(await reason({ timeoutMs: 200 })).toBe('Timeout');
  });

  test('a scrape that is answered byte by byte ends at its timeout too', async () => {
    kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const timer = setInterval(() => response.write('#\n'), 10);
      response.on('close', () => clearInterval(timer));
    };
    expect(await reason({ timeoutMs: 300 })).toBe('Timeout');
  });

  test('an answer that is too large is not read to its end', async () => {
    let sent = 0;
    kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536;
      };
      response.on('drain', more);
      more();
    };
    expect(await reason({ maxBytes: 1024 * 1024 })).toBe('TooLarge');
    await until(() => kubelet.connections === 0);
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test('a compressed answer, which was not requested, is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    kubelet.answer = (_request, response) => {
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
    kubelet.answer = plain(text, { 'content-type': type });
    expect(await reason()).toBe('NotMetrics');
  });

  test('an answer that breaks off is a failure', async () => {
    kubelet.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '100000' });
      response.write(metricsText());
      setImmediate(() => kubelet.cut());
    };
    expect(await reason()).toBe('Unreachable');
  });

  test('an answer that is not HTTP is NotMetrics', async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => server.close());
    const { port } = server.address() as { port: number };
    expect(await reason({ url: new URL(`http://127.0.0.1:${port}`) })).toBe('NotMetrics');
    expect(await reason({ url: new URL(`https://127.0.0.1:${port}`) })).toBe('Tls');
  });

  test('a scrape without a listener is Unreachable', async () => {
    const { url } = kubelet;
    await kubelet.stop();
    expect(await reason({ url })).toBe('Unreachable');
  });

  test('a scrape ends when its signal is aborted', async () => {
    kubelet.answer = () => undefined;
    const stop = new AbortController();
    const scraping = client().scrape(stop.signal);
    await until(() => kubelet.requests.length === 1);
    stop.abort();
    expect(await scraping).toMatchObject({ ok: false });
  });

  test('the signal of an earlier scrape does not end the connection that the next one opens', async () => {
    const connections: Socket[] = [];
    const relay = createServer((socket) => void connections.push(socket));
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => relay.close());
    const { port } = relay.address() as AddressInfo;
    const it = client({ url: new URL(`https://127.0.0.1:${port}`), timeoutMs: 20_000 });
    let isLost = false;
    it.onLost = () => {
      isLost = true;
    };
    const letThrough = async (count: number) => {
      await until(() => connections.length === count);
      const socket = connections[count - 1];
      if (socket !== undefined) pipeline(socket, connect(kubelet.port, '127.0.0.1'), socket, () => undefined);
    };
    const earlier = new AbortController();
    const first = it.scrape(earlier.signal);
    await letThrough(1);
    expect(await first).toMatchObject({ ok: true });
    kubelet.cut();
    await until(() => isLost);
    const second = it.scrape(NEVER);
    await until(() => connections.length === 2);
    earlier.abort();
    await letThrough(2);
    expect(await second).toMatchObject({ ok: true });
  });
});

const strict = { identity: 'strict' } as const;

describe('the certificate, if it must be verified', () => {
  test('a certificate of another authority is not trusted', async () => {
    const other = makeAuthority();
    cleanUps.push(() => removeAuthority(other));
    expect(await reason({ ...strict, caFiles: [other.caFile] })).toBe('Tls');
    expect(await reason({ ...strict, caFiles: ['/nowhere/ca.crt'] })).toBe('Tls');
    expect(kubelet.requests).toEqual([]);
    expect(await reason({ ...strict, caFiles: [other.caFile, authority.caFile] })).toBe('well');
  });

  test('a certificate for another name is not trusted', async () => {
    const url = new URL(`https://localhost:${kubelet.port}`);
    expect(await reason({ ...strict, url })).toBe('Tls');
    expect(kubelet.requests).toEqual([]);
  });

  test('without a server name, a certificate for the address, for the name of the node or for its subject is trusted', async () => {
    const byNode = makeAuthority('DNS:node-1,IP:10.0.0.7');
    cleanUps.push(() => removeAuthority(byNode));
    const named = await FakeKubelet.start(byNode);
    cleanUps.push(() => named.stop());
    const at = { ...strict, url: named.url, caFiles: [byNode.caFile] };
    expect(await reason(at)).toBe('Tls');
    expect(await reason({ ...at, node: 'node-1' })).toBe('well');
    // The subject that the signer for kubelets demands: CN=system:node:n1.
    expect(await reason({ ...at, node: 'n1' })).toBe('well');
    expect(await reason({ ...at, node: 'node-2' })).toBe('Tls');
  });

  test('with a server name only a certificate for that name is trusted', async () => {
    const byNode = makeAuthority('DNS:node-1,IP:10.0.0.7');
    cleanUps.push(() => removeAuthority(byNode));
    const named = await FakeKubelet.start(byNode);
    cleanUps.push(() => named.stop());
    const at = { ...strict, url: named.url, caFiles: [byNode.caFile] };
    expect(await reason(at)).toBe('Tls');
    expect(await reason({ ...at, serverName: 'node-1' })).toBe('well');
    expect(await reason({ ...at, serverName: '10.0.0.7' })).toBe('well');
    expect(await reason({ ...at, serverName: 'node-2', node: 'node-1' })).toBe('Tls');
    expect(await reason({ ...at, serverName: '127.0.0.1' })).toBe('Tls');
    // The right name, of another authority, and the right authority, for the address alone.
    expect(await reason({ ...at, caFiles: [authority.caFile], serverName: 'node-1' })).toBe('Tls');
    expect(await reason({ ...strict, serverName: 'node-1' })).toBe('Tls');
    expect(named.requests).toHaveLength(2);
    expect(kubelet.requests).toEqual([]);
  });

  test("the kubelet's own serving file, with its certificate and authority, works as CA file", async () => {
    const { selfSigned, caFile } = await selfSignedKubelet();
    const at = { ...strict, url: selfSigned.url, caFiles: [caFile] };
    expect(await reason({ ...at, serverName: 'node-1' })).toBe('well');
    expect(await reason({ ...at, node: 'node-1' })).toBe('well');
    expect(await reason(at)).toBe('Tls');
  });

  test('a replaced CA file is used without a restart', async () => {
    const caFile = join(authority.folder, 'rotating.crt');
    const other = makeAuthority();
    cleanUps.push(() => removeAuthority(other));
    writeFileSync(caFile, readFileSync(authority.caFile));
    const it = client({ ...strict, caFiles: [caFile] });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Verified' });
    writeFileSync(caFile, readFileSync(other.caFile));
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'Tls' });
    rmSync(caFile);
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'Tls' });
    writeFileSync(caFile, readFileSync(authority.caFile));
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true });
  });
});

describe('the certificate, if it is verified where possible', () => {
  test('a certificate that can be verified is', async () => {
    expect(await scrape()).toMatchObject({ ok: true, identity: 'Verified' });
  });

  test('a self-signed certificate is accepted at an address of this node, and reported as unverified', async () => {
    const { selfSigned } = await selfSignedKubelet();
    expect(await scrape({ url: selfSigned.url })).toMatchObject({ ok: true, identity: 'Unverified' });
    expect(await scrape({ url: selfSigned.url, caFiles: [] })).toMatchObject({
      ok: true,
      identity: 'Unverified',
    });
  });

  test('at an address that is not of this node nothing is sent to a kubelet that cannot be verified', async () => {
    // No interface has this address, although every connection to it ends on this machine.
    const { selfSigned } = await selfSignedKubelet('127.0.0.2');
    const { url } = selfSigned;
    const found = await scrape({ url, hostIps: ['10.9.9.9'] });
    expect(found).toMatchObject({ ok: false, reason: 'Tls' });
    expect(found.ok ? '' : found.message).toContain('127.0.0.2 is no address of this node');
    expect(selfSigned.requests).toEqual([]);
    expect(await reason({ url, identity: 'strict' })).toBe('Tls');
    expect(selfSigned.requests).toEqual([]);
    // The same connection, once the kubelet has said that the address is the node's; and without any check.
    expect(await scrape({ url, hostIps: ['127.0.0.2'] })).toMatchObject({ identity: 'Unverified' });
    expect(await scrape({ url, identity: 'skip', caFiles: [] })).toMatchObject({ identity: 'NotChecked' });
  });

  test("a verified certificate of another node is refused, also at this node's address", async () => {
    const byNode = makeAuthority('DNS:node-2,IP:10.0.0.8');
    cleanUps.push(() => removeAuthority(byNode));
    const named = await FakeKubelet.start(byNode);
    cleanUps.push(() => named.stop());
    const found = await scrape({ url: named.url, caFiles: [byNode.caFile] });
    expect(found).toMatchObject({ ok: false, reason: 'Tls' });
    expect(found.ok ? '' : found.message).toContain('the certificate is for DNS:node-2, IP Address:10.0.0.8');
    expect(named.requests).toEqual([]);
  });

  test('whoever takes over the port of an unverified kubelet is sent nothing', async () => {
    const { selfSigned } = await selfSignedKubelet();
    const { url, port } = selfSigned;
    const it = client({ url });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Unverified' });
    await selfSigned.stop();
    const other = makeAuthority('DNS:node-1');
    cleanUps.push(() => removeAuthority(other));
    const intruder = await FakeKubelet.start(other, { port });
    cleanUps.push(() => intruder.stop());
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'CertificateChanged' });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'CertificateChanged' });
    expect(intruder.requests).toEqual([]);
  });

  test('after a verified certificate, one that cannot be verified is refused', async () => {
    const it = client();
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Verified' });
    const { port } = kubelet;
    await kubelet.stop();
    const other = makeAuthority();
    cleanUps.push(() => removeAuthority(other));
    kubelet = await FakeKubelet.start(other, { port });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'Tls' });
    expect(kubelet.requests).toEqual([]);
  });

  test('a handshake that never ends is a timeout, and leaves no connection', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => sockets.delete(socket))
        .resume();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    expect(await reason({ url: new URL(`https://127.0.0.1:${port}`), timeoutMs: 200 })).toBe('Timeout');
    await until(() => sockets.size === 0);
  });
});

/** A kubelet whose certificate is signed by itself, for node-1; its file has both certificates, as kubelets write it. */
async function selfSignedKubelet(host = '127.0.0.1') {
  const own = makeAuthority('DNS:node-1');
  cleanUps.push(() => removeAuthority(own));
  const served = own.cert + readFileSync(own.caFile, 'utf8');
  const selfSigned = await FakeKubelet.start({ ...own, cert: served }, { host });
  cleanUps.push(() => selfSigned.stop());
  const caFile = join(own.folder, 'kubelet.crt');
  writeFileSync(caFile, served);
  return { selfSigned, caFile };
}

describe('a token', () => {
  test('a rotated token is used for the next scrape', async () => {
    const it = client();
    await it.scrape(NEVER);
    writeFileSync(tokenFile, 'second');
    await it.scrape(NEVER);
    expect(shown()).toEqual(['Bearer first', 'Bearer second']);
  });

  test('a token rotated during a scrape is tried once more after a 401', async () => {
    kubelet.answer = (request, response) => {
      if (request.headers.authorization === 'Bearer second') plain(metricsText())(request, response);
      else {
        writeFileSync(tokenFile, 'second');
        plain('', {}, 401)(request, response);
      }
    };
    expect(await reason()).toBe('well');
    expect(shown()).toEqual(['Bearer first', 'Bearer second']);
  });

  test('a refused token that did not change is not tried again', async () => {
    kubelet.answer = plain('', {}, 401);
    expect(await reason()).toBe('Unauthorized');
    expect(kubelet.requests).toHaveLength(1);
  });

  test('an unusable token file is reported without its contents', async () => {
    writeFileSync(tokenFile, 'secret token\nwith lines');
    const found = await scrape();
    expect(found).toMatchObject({ ok: false, reason: 'Credentials' });
    expect(JSON.stringify(found)).not.toContain('secret');
    expect(await reason({ tokenFile: '/nowhere' })).toBe('Credentials');
    expect(kubelet.requests).toEqual([]);
  });
});

describe('the connection', () => {
  test('a CA file that cannot be parsed fails a scrape before anything is sent, and a mended one is read with the next', async () => {
    const caFile = join(authority.folder, 'mended.crt');
    writeFileSync(caFile, 'no certificate');
    const it = client({ caFiles: [authority.caFile, caFile] });
    expect(await it.scrape(NEVER)).toMatchObject({
      ...{ ok: false, reason: 'Credentials' },
      message: `${caFile} contains no PEM certificate`,
    });
    expect(kubelet.requests).toEqual([]);
    writeFileSync(caFile, readFileSync(authority.caFile));
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Verified' });
    it.close();
  });

  test('one connection is kept between scrapes', async () => {
    const it = client();
    for (let i = 0; i < 3; i += 1) await it.scrape(NEVER);
    expect(new Set(kubelet.requests.map(({ socket }) => socket)).size).toBe(1);
    expect(kubelet.connections).toBe(1);
    it.close();
    await until(() => kubelet.connections === 0);
  });

  test('a connection that the kubelet closes is reported at once, and the next scrape makes another', async () => {
    const it = client();
    let lost = 0;
    it.onLost = () => {
      lost += 1;
    };
    await it.scrape(NEVER);
    kubelet.cut();
    await until(() => lost === 1);
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true });
    it.close();
    expect(lost).toBe(1);
  });

  test('a server that closes after each answer does not count as lost', async () => {
    kubelet.answer = plain(metricsText(), { connection: 'close' });
    const it = client();
    let lost = 0;
    it.onLost = () => {
      lost += 1;
    };
    await it.scrape(NEVER);
    await it.scrape(NEVER);
    await until(() => kubelet.connections === 0);
    expect(lost).toBe(0);
  });
});
