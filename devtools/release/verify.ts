/*
 * Verifies a release with nothing but its folder and the publisher's public key. Run by `make verify-release`.
 *
 *   node devtools/release/verify.ts FOLDER KEY
 */
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { complain, printable } from '../../src/platform/printable.ts';
import { contentsOf, filesIn, PROVENANCE, versionOf } from './contents.ts';
import { faultsOf } from './faults.ts';

const [, , folder, keyFile] = process.argv;
if (!folder || !keyFile) {
  console.error('usage: make verify-release RELEASE=FOLDER KEY=PUBLIC-KEY');
  process.exit(2);
}
const key = tried(`KEY=${keyFile} is no public key in PEM, such as cosign.pub`, () =>
  createPublicKey(readFileSync(keyFile)),
);
const files = tried(`RELEASE=${folder}`, () => filesIn(folder));
const faults = faultsOf(files, key);
if (faults.length > 0) refuse(faults);
const { source } = JSON.parse(String(files.get(PROVENANCE))).predicate.buildDefinition.externalParameters;
console.log(
  `${folder}: plegwatch ${versionOf(files)}, ${files.size} files, as the holder of ${keyFile} signed them`,
);
for (const [name, digest] of contentsOf(files))
  if (name.startsWith('oci:')) console.log(`  ${name} sha256:${digest}`);
console.log(`  commit ${source.digest.gitCommit}`);
if (source.annotations?.dirty) console.log('  built from changes that are in no commit');

function tried<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    return refuse([`${what}: ${error instanceof Error ? error.message : error}`]);
  }
}

/** Names and texts may be of anybody. */
function refuse(reasons: readonly string[]): never {
  for (const reason of reasons) complain(`NOT VERIFIED: ${printable(reason)}`);
  process.exit(1);
}
