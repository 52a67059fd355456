import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, makeAuthority, removeAuthority } from '../../../../test/support/fakeKubelet.ts';
import { messageOf } from '../../../platform/errors.ts';
import { AGENT_SETTINGS } from '../../config.ts';
import { type KubeletSettings, kubeletAddress, readCas } from './settings.ts';

let authority: Authority;
let folder: string;
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

beforeAll(() => {
  authority = makeAuthority();
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-settings-'));
});
afterAll(() => {
  removeAuthority(authority);
  rmSync(folder, { recursive: true });
});

const settings = (some: Partial<KubeletSettings> = {}): KubeletSettings => ({
  kubeletUrl: 'https://10.0.0.7:10250',
  kubeletTokenFile: undefined,
  kubeletCaFile: [authority.caFile],
  kubeletServerName: undefined,
  kubeletIdentity: 'auto',
  hostIp: undefined,
  node: 'node-1',
  ...some,
});

const problems = (some: Partial<KubeletSettings>): Promise<string> =>
  kubeletAddress(settings(some)).then(() => '', messageOf);

describe('the settings of a kubelet', () => {
  test('without --kubelet-url the other settings are not checked', async () => {
    const nothing = { kubeletUrl: undefined, kubeletTokenFile: '/nowhere', kubeletIdentity: 'skip' } as const;
    expect(await kubeletAddress(settings(nothing))).toBeNull();
  });

  test('a CA file is required only with --kubelet-identity strict', async () => {
    const kubeletTokenFile = file('token', 'abc.def\n');
    const address = await kubeletAddress(settings({ kubeletTokenFile }));
    expect(address).toMatchObject({ caFiles: [authority.caFile], identity: 'auto' });
    for (const kubeletIdentity of ['auto', 'skip'] as const)
      expect(await problems({ kubeletIdentity, kubeletCaFile: undefined })).toBe('');
    expect(await problems({ kubeletIdentity: 'strict', kubeletCaFile: undefined })).toContain(
      'must name the CA',
    );
  });

  test('a CA file that is missing is no error: a file on the node must not keep its agent away', async () => {
    const kubeletCaFile = ['/nowhere/ca.crt', authority.caFile];
    expect(await problems({ kubeletIdentity: 'strict', kubeletCaFile })).toBe('');
    expect(await readCas(kubeletCaFile)).toBe(readFileSync(authority.caFile, 'utf8'));
    expect(await readCas(['/nowhere/ca.crt'])).toBe('');
  });

  test.each(['http://127.0.0.1:10255', 'http://localhost:1', 'http://[::1]:1'])(
    '--kubelet-url may be %s',
    async (kubeletUrl) => {
      expect(await problems({ kubeletUrl, kubeletCaFile: undefined })).toBe('');
    },
  );

  test.each([
    ['http://10.0.0.7:10255', 'must begin with https://'],
    ['http://127.0.0.1.example.com', 'must begin with https://'],
    ['https://', 'must be a URL'],
    ['https://user:secret@10.0.0.7:10250', 'must have no user'],
    ['https://10.0.0.7:10250/metrics', 'must consist of https, host and port only'],
    ['https://10.0.0.7:10250/?a=b', 'must consist of https, host and port only'],
  ])('--kubelet-url may not be %s', async (kubeletUrl, problem) => {
    const message = await problems({ kubeletUrl });
    expect(message).toContain(`--kubelet-url (PLEGWATCH_KUBELET_URL) ${problem}`);
    expect(message).not.toContain('secret');
  });

  test('a CA file has no meaning with --kubelet-identity skip', async () => {
    expect(await problems({ kubeletIdentity: 'skip' })).toBe(
      '--kubelet-ca-file (PLEGWATCH_KUBELET_CA_FILE) has no meaning with --kubelet-identity (PLEGWATCH_KUBELET_IDENTITY) skip: remove one',
    );
  });

  test.each(['10.0.0.7', 'fd00::7', '10.0.0.7,fd00::7', '10.0.0.7, fd00::7'])('--host-ip may be %s', (raw) =>
    expect(AGENT_SETTINGS.hostIp.read(raw)).toEqual(raw.split(/, */)),
  );

  test.each(['node-1', '10.0.0.0/8', '10.0.0.7,', '[fd00::7]'])('--host-ip may not be %s', (raw) =>
    expect(() => AGENT_SETTINGS.hostIp.read(raw)).toThrow('must be an IP address'),
  );

  test('--kubelet-server-name requires a certificate that may be verified', async () => {
    const kubeletServerName = 'node-1';
    expect(await kubeletAddress(settings({ kubeletServerName }))).toMatchObject({ serverName: 'node-1' });
    const unchecked = { kubeletServerName, kubeletCaFile: undefined, kubeletIdentity: 'skip' } as const;
    expect(await problems(unchecked)).toContain(
      '--kubelet-server-name (PLEGWATCH_KUBELET_SERVER_NAME) has no meaning with',
    );
    const plain = { kubeletServerName, kubeletCaFile: undefined, kubeletUrl: 'http://127.0.0.1:10255' };
    expect(await problems(plain)).toContain('has no meaning for a kubelet without https');
  });

  test.each(['node-1', 'Node-1.example.com', 'n', '10.0.0.7', 'fd00::7', 'a'.repeat(253)])(
    '--kubelet-server-name may be %s',
    (name) => expect(AGENT_SETTINGS.kubeletServerName.read(name)).toBe(name),
  );

  test.each([
    'node_1',
    '-n',
    'n-',
    'a..b',
    '.a',
    'a.',
    '[fd00::7]',
    'n:10250',
    'a b',
    '*.a',
    'a'.repeat(254),
  ])('--kubelet-server-name may not be %s', (name) =>
    expect(() => AGENT_SETTINGS.kubeletServerName.read(name)).toThrow('must be a host name'),
  );

  test('a token file that is missing or invalid is refused', async () => {
    const token = (name: string) => problems({ kubeletTokenFile: name });
    expect(await token('/nowhere/token')).toContain(
      'names a file that cannot be used: /nowhere/token cannot be read (ENOENT)',
    );
    expect(await token(folder)).toContain('is not a file');
    expect(await token('/dev/zero')).toContain('is not a file');
    expect(await token(file('empty', ' \n'))).toContain('is empty');
    expect(await token(file('two', 'a b'))).toContain('does not contain a token');
    expect(await token(file('large', 'x'.repeat(70_000)))).toContain('is larger than');
  });

  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

  test.each([
    ['is empty', '', 'contains no PEM certificate'],
    ['has other content', 'hello', 'contains no PEM certificate'],
    ['cannot be parsed', broken, 'contains a certificate that cannot be parsed'],
  ])(
    'a CA file that %s keeps no agent from starting, and is named when it is read',
    async (_, text, problem) => {
      const name = file('broken.crt', text);
      const kubeletCaFile = [authority.caFile, name];
      for (const kubeletIdentity of ['auto', 'strict'] as const)
        expect(await problems({ kubeletIdentity, kubeletCaFile })).toBe('');
      await expect(readCas(kubeletCaFile)).rejects.toThrow(`${name} ${problem}`);
    },
  );

  test('a folder in place of a CA file keeps no agent from starting, and is named when it is read', async () => {
    expect(await problems({ kubeletCaFile: [folder] })).toBe('');
    await expect(readCas([folder])).rejects.toThrow(`${folder} is not a file`);
  });

  test('all errors are reported together, as SETTING_INVALID', async () => {
    const error = await kubeletAddress(
      settings({ kubeletUrl: 'http://10.0.0.7', kubeletTokenFile: '/nowhere', kubeletServerName: 'n1' }),
    ).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'SETTING_INVALID' });
    expect(String(Reflect.get(Object(error), 'message')).split('\n')).toHaveLength(3);
  });
});
