/*
 * Which certificates of a kubelet the client believes.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { KubeletBed, NEVER } from '../../../../test/support/kubeletBed.ts';
import { until } from '../../../../test/support/waitFor.ts';

// TLS, processes of others and two cores.
vi.setConfig({ testTimeout: 300_000 });

const bed = new KubeletBed();
const { client, scrape, reason, atEnd } = bed;
const strict = { identity: 'strict' } as const;

describe('the certificate, if it must be verified', () => {
  test('a certificate of another authority is not trusted', async () => {
    const other = bed.newAuthority();
    expect(await reason({ ...strict, caFiles: [other.caFile] })).toBe('Tls');
    expect(await reason({ ...strict, caFiles: ['/nowhere/ca.crt'] })).toBe('Tls');
    expect(bed.kubelet.requests).toEqual([]);
    expect(await reason({ ...strict, caFiles: [other.caFile, bed.authority.caFile] })).toBe('well');
  });

  test('a certificate for another name is not trusted', async () => {
    const url = new URL(`https://localhost:${bed.kubelet.port}`);
    expect(await reason({ ...strict, url })).toBe('Tls');
    expect(bed.kubelet.requests).toEqual([]);
  });

  test('without a server name, a certificate for the address, for the name of the node or for its subject is trusted', async () => {
    const byNode = bed.newAuthority('DNS:node-1,IP:10.0.0.7');
    const named = await bed.newKubelet(byNode);
    const at = { ...strict, url: named.url, caFiles: [byNode.caFile] };
    expect(await reason(at)).toBe('Tls');
    expect(await reason({ ...at, node: 'node-1' })).toBe('well');
    // The subject that the signer for kubelets demands: CN=system:node:n1.
    expect(await reason({ ...at, node: 'n1' })).toBe('well');
    expect(await reason({ ...at, node: 'node-2' })).toBe('Tls');
  });

  test('with a server name only a certificate for that name is trusted', async () => {
    const byNode = bed.newAuthority('DNS:node-1,IP:10.0.0.7');
    const named = await bed.newKubelet(byNode);
    const at = { ...strict, url: named.url, caFiles: [byNode.caFile] };
    expect(await reason(at)).toBe('Tls');
    expect(await reason({ ...at, serverName: 'node-1' })).toBe('well');
    expect(await reason({ ...at, serverName: '10.0.0.7' })).toBe('well');
    expect(await reason({ ...at, serverName: 'node-2', node: 'node-1' })).toBe('Tls');
    expect(await reason({ ...at, serverName: '127.0.0.1' })).toBe('Tls');
    // The right name, of another authority, and the right authority, for the address alone.
    expect(await reason({ ...at, caFiles: [bed.authority.caFile], serverName: 'node-1' })).toBe('Tls');
    expect(await reason({ ...strict, serverName: 'node-1' })).toBe('Tls');
    expect(named.requests).toHaveLength(2);
    expect(bed.kubelet.requests).toEqual([]);
  });

  test("the kubelet's own serving file, with its certificate and authority, works as CA file", async () => {
    const { selfSigned, caFile } = await selfSignedKubelet();
    const at = { ...strict, url: selfSigned.url, caFiles: [caFile] };
    expect(await reason({ ...at, serverName: 'node-1' })).toBe('well');
    expect(await reason({ ...at, node: 'node-1' })).toBe('well');
    expect(await reason(at)).toBe('Tls');
  });

  test('a replaced CA file is used without a restart', async () => {
    const caFile = join(bed.authority.folder, 'rotating.crt');
    const other = bed.newAuthority();
    writeFileSync(caFile, readFileSync(bed.authority.caFile));
    const it = client({ ...strict, caFiles: [caFile] });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Verified' });
    writeFileSync(caFile, readFileSync(other.caFile));
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'Tls' });
    rmSync(caFile);
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'Tls' });
    writeFileSync(caFile, readFileSync(bed.authority.caFile));
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
    const byNode = bed.newAuthority('DNS:node-2,IP:10.0.0.8');
    const named = await bed.newKubelet(byNode);
    const found = await scrape({ url: named.url, caFiles: [byNode.caFile] });
    expect(found).toMatchObject({ ok: false, reason: 'Tls' });
    expect(found.ok ? '' : found.message).toContain('the certificate is for DNS:node-2, IP Address:10.0.0.8');
    expect(named.requests).toEqual([]);
  });

  test('a program that takes over the port of an unverified kubelet is sent nothing', async () => {
    const { selfSigned } = await selfSignedKubelet();
    const { url, port } = selfSigned;
    const it = client({ url });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Unverified' });
    await selfSigned.stop();
    const other = bed.newAuthority('DNS:node-1');
    const intruder = await bed.newKubelet(other, { port });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'CertificateChanged' });
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'CertificateChanged' });
    expect(intruder.requests).toEqual([]);
  });

  test('after a verified certificate, one that cannot be verified is refused', async () => {
    const it = client();
    expect(await it.scrape(NEVER)).toMatchObject({ ok: true, identity: 'Verified' });
    await bed.replaceKubelet(bed.newAuthority());
    expect(await it.scrape(NEVER)).toMatchObject({ ok: false, reason: 'Tls' });
    expect(bed.kubelet.requests).toEqual([]);
  });

  test('a handshake that never ends is a timeout, and leaves no connection', async () => {
    const { url, sockets } = await silentServer();
    expect(await reason({ url, timeoutMs: 200 })).toBe('Timeout');
    await until(() => sockets.size === 0);
  });

  test('a scrape that is aborted before it connects ends all the same, and leaves no connection', async () => {
    const { url, sockets } = await silentServer();
    expect(await client({ url }).scrape(AbortSignal.abort())).toMatchObject({ reason: 'Unreachable' });
    await until(() => sockets.size === 0);
  });
});

/** A server that accepts connections and says nothing. */
async function silentServer() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket
      .on('error', () => undefined)
      .on('close', () => sockets.delete(socket))
      .resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`https://127.0.0.1:${port}`), sockets };
}

/** A kubelet whose certificate is signed by itself, for node-1; its file has both certificates, as kubelets write it. */
async function selfSignedKubelet(host = '127.0.0.1') {
  const own = bed.newAuthority('DNS:node-1');
  const served = own.cert + readFileSync(own.caFile, 'utf8');
  const selfSigned = await bed.newKubelet({ ...own, cert: served }, { host });
  const caFile = join(own.folder, 'kubelet.crt');
  writeFileSync(caFile, served);
  return { selfSigned, caFile };
}
