import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, makeAuthority, removeAuthority } from '../../../../test/support/fakeKubelet.ts';
import { messageOf } from '../../../platform/errors.ts';
import { AGENT_SETTINGS } from '../../config.ts';
import { type KubeletSettings, kubeletAddress } from './settings.ts';

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
  kubeletCaFile: authority.caFile,
  kubeletServerName: undefined,
  kubeletInsecureSkipVerify: false,
  ...some,
});

const problems = (some: Partial<KubeletSettings>): Promise<string> =>
  kubeletAddress(settings(some)).then(() => '', messageOf);

describe('the settings of a kubelet', () => {
  test('without --kubelet-url the other settings are not checked', async () => {
    const nothing = { kubeletUrl: undefined, kubeletTokenFile: '/nowhere', kubeletInsecureSkipVerify: true };
    expect(await kubeletAddress(settings(nothing))).toBeNull();
  });

  test('a CA file or --kubelet-insecure-skip-verify is accepted', async () => {
    const kubeletTokenFile = file('token', 'abc.def\n');
    expect(await kubeletAddress(settings({ kubeletTokenFile }))).toMatchObject({ caFile: authority.caFile });
    const unchecked = { kubeletCaFile: undefined, kubeletInsecureSkipVerify: true };
    expect(await kubeletAddress(settings(unchecked))).toMatchObject({ caFile: undefined });
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

  test('a CA file and --kubelet-insecure-skip-verify exclude each other, and one is required', async () => {
    expect(await problems({ kubeletInsecureSkipVerify: true })).toContain(
      '--kubelet-ca-file (PLEGWATCH_KUBELET_CA_FILE) and --kubelet-insecure-skip-verify (PLEGWATCH_KUBELET_INSECURE_SKIP_VERIFY) contradict',
    );
    expect(await problems({ kubeletCaFile: undefined })).toContain('must name the CA');
  });

  test('--kubelet-server-name requires a verified certificate', async () => {
    const kubeletServerName = 'node-1';
    expect(await kubeletAddress(settings({ kubeletServerName }))).toMatchObject({ serverName: 'node-1' });
    const unchecked = { kubeletServerName, kubeletCaFile: undefined, kubeletInsecureSkipVerify: true };
    expect(await problems(unchecked)).toBe(
      '--kubelet-server-name (PLEGWATCH_KUBELET_SERVER_NAME) and --kubelet-insecure-skip-verify (PLEGWATCH_KUBELET_INSECURE_SKIP_VERIFY) contradict each other: remove one',
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

  test('files that are missing or invalid are refused', async () => {
    const token = (name: string) => problems({ kubeletTokenFile: name });
    const ca = (name: string) => problems({ kubeletCaFile: name });
    expect(await token('/nowhere/token')).toContain('names /nowhere/token, which cannot be read (ENOENT)');
    expect(await token(folder)).toContain('is not a file');
    expect(await token('/dev/zero')).toContain('is not a file');
    expect(await token(file('empty', ' \n'))).toContain('is empty');
    expect(await token(file('two', 'a b'))).toContain('does not contain a token');
    expect(await token(file('large', 'x'.repeat(70_000)))).toContain('is larger than');
    expect(await ca(file('empty.crt', ''))).toContain('contains no PEM certificate');
    expect(await ca(file('none.crt', 'hello'))).toContain('contains no PEM certificate');
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    expect(await ca(file('broken.crt', broken))).toContain('that cannot be parsed');
  });

  test('all errors are reported together, as SETTING_INVALID', async () => {
    const error = await kubeletAddress(
      settings({ kubeletUrl: 'http://10.0.0.7', kubeletTokenFile: '/nowhere', kubeletCaFile: '/nowhere' }),
    ).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'SETTING_INVALID' });
    expect(String(Reflect.get(Object(error), 'message')).split('\n')).toHaveLength(3);
  });
});
