/*
 * What `make verify-release` does with what a forger can put into a folder. release.test.ts verifies a real release.
 */
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sha256Of } from '../../devtools/release/digest.ts';
import { ROOT } from '../support/build.ts';

const TIMEOUT_MS = 60_000;

describe('the verifier of releases', { timeout: 2 * TIMEOUT_MS }, () => {
  let dir: string;
  let folder: string;
  let key: string;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'verify-release-'));
    folder = mkdtempSync(join(dir, 'release-'));
    key = join(dir, 'key.pub');
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(key, publicKey.export({ type: 'spki', format: 'pem' }));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  const put = (name: string, data: Buffer | string) => writeFileSync(join(folder, name), data);
  function refusal(release = folder, publicKey = key): string[] {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(ROOT, 'devtools/release/verify.ts'), release, publicKey],
      { encoding: 'utf8', timeout: TIMEOUT_MS },
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    return stderr.trimEnd().split('\n');
  }

  test('unpacks nothing that the key did not sign', () => {
    const chart = 'no archive';
    put('plegwatch-0.1.0.tgz', chart);
    put('SHA256SUMS', `${sha256Of(chart)}  plegwatch-0.1.0.tgz\n`);
    expect(refusal()).toEqual([
      'NOT VERIFIED: SHA256SUMS.sigstore.json: SHA256SUMS.sigstore.json is missing',
      'NOT VERIFIED: provenance.json.sigstore.json: provenance.json.sigstore.json is missing',
    ]);
  });

  test('refuses a link, which may lead to something else later', () => {
    symlinkSync(key, join(folder, 'LICENSE'));
    expect(refusal()).toEqual([expect.stringContaining('LICENSE: it is a link or a folder, not a file')]);
  });

  test('prints names as text, never as commands to the terminal', () => {
    put('SHA256SUMS', '');
    put('\x1b[2J\nverified', '');
    expect(refusal()).toContain('NOT VERIFIED: \\u001b[2J\\u000averified: it is not in SHA256SUMS');
  });

  test('names the key if that is no public key, and the folder if there is none', () => {
    put('cosign.key', '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n');
    const path = join(folder, 'cosign.key');
    expect(refusal(folder, path)).toEqual([
      expect.stringContaining(`KEY=${path} is no public key in PEM, such as cosign.pub: `),
    ]);
    expect(refusal(join(dir, 'none'))).toEqual([
      expect.stringContaining(`RELEASE=${join(dir, 'none')}: ENOENT`),
    ]);
  });
});
