/*
 * Signs a release with cosign, by a key that is given: a file of `cosign generate-key-pair` or `import-key-pair`, with its password in COSIGN_PASSWORD,
 * or the address of one in a key management service. Nothing is sent to a transparency log.
 */
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { where } from '../localServices/where.ts';
import { SIGNATURE, SIGNED } from './contents.ts';
import { sha256Of } from './digest.ts';
import { bundleOf, type SignatureKind, signatureIn, verifyBundle } from './signature.ts';

const OFFLINE = ['--use-signing-config=false', '--tlog-upload=false'];

/** Throws if cosign refuses the key, if that is not the one of the fingerprint, or if what cosign wrote does not verify. */
export function sign(folder: string, key: string, fingerprint: string): void {
  const publicKey = createPublicKey(cosign('public-key', '--key', key));
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Error(`KEY=${key} is not on the curve P-256, as cosign generate-key-pair makes keys`);
  }
  const found = sha256Of(publicKey.export({ type: 'spki', format: 'der' }));
  if (fingerprint !== '' && found !== fingerprint) {
    throw new Error(`KEY=${key} has the fingerprint ${found}, and publisher.yaml names ${fingerprint}`);
  }
  const { dir, remove } = temporaryFolder('signature', undefined);
  try {
    for (const [name, kind] of SIGNED) {
      const path = join(folder, name);
      const bundle = join(dir, name);
      cosign(...COMMANDS[kind](path), '--key', key, '--bundle', bundle, ...OFFLINE);
      const file = readFileSync(path);
      const text = bundleOf(kind, signatureIn(readFileSync(bundle, 'utf8')), file, publicKey);
      verifyBundle(kind, text, file, publicKey);
      writeFileSync(path + SIGNATURE, text);
    }
  } finally {
    remove();
  }
}

const COMMANDS: Readonly<Record<SignatureKind, (path: string) => string[]>> = {
  file: (path) => ['sign-blob', path],
  statement: (path) => ['attest-blob', '--statement', path],
};

const cosign = (...args: readonly string[]): string =>
  execFileSync(where('cosign'), args, { encoding: 'utf8', stdio: ['inherit', 'pipe', 'inherit'] });
