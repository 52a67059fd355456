/*
 * Verifies a release with nothing but its folder and the publisher's public key. Run by `make verify-release`.
 *
 *   node devtools/release/verify.ts FOLDER KEY
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contentsOf, PROVENANCE } from './contents.ts';
import { faultsOf } from './faults.ts';

const [, , folder, key] = process.argv;
if (folder === undefined || !key) {
  console.error('usage: make verify-release RELEASE=FOLDER KEY=PUBLIC-KEY');
  process.exit(2);
}
const files = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
const faults = faultsOf(files, readFileSync(key, 'utf8'));
for (const fault of faults) console.error(`NOT VERIFIED: ${fault}`);
if (faults.length > 0) process.exit(1);
const { source } = JSON.parse(String(files.get(PROVENANCE))).predicate.buildDefinition.externalParameters;
console.log(`${folder}: ${files.size} files, as the holder of ${key} signed them`);
for (const [name, digest] of contentsOf(files))
  if (name.startsWith('oci:')) console.log(`  ${name} sha256:${digest}`);
console.log(`  commit ${source.digest.gitCommit}`);
if (source.annotations?.dirty) console.log('  built from changes that are in no commit');
