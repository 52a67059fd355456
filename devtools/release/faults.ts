/*
 * The faults of the files of a release: a function of their bytes and the publisher's public key. Only what the key signed is unpacked.
 *
 *   key ── signs ──► SHA256SUMS ── lists ──► every file but itself and the signatures
 *    └──── signs ──► provenance.json ── lists ──► the others again, and the digests that a registry has of image and chart
 */
import type { KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { contentsOf, type Files, PROVENANCE, SIGNATURE, SIGNED, SUMS } from './contents.ts';
import { sha256Of } from './digest.ts';
import { PREDICATE_TYPE, STATEMENT_TYPE } from './provenance.ts';
import { verifyBundle } from './signature.ts';

const StatementSchema = v.object({
  _type: v.literal(STATEMENT_TYPE),
  subject: v.array(v.object({ name: v.string(), digest: v.strictObject({ sha256: v.string() }) })),
  predicateType: v.literal(PREDICATE_TYPE),
});

const UNLISTED = [SUMS, ...SIGNED.map(([name]) => name + SIGNATURE)];

/** Each begins with the name of a file. None if the release is as it was signed. */
export function faultsOf(files: Files, key: KeyObject): string[] {
  const faults: string[] = [];
  const check = (name: string, work: () => void): void => {
    try {
      work();
    } catch (error) {
      faults.push(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  };
  const read = (name: string): Buffer => {
    const data = files.get(name);
    if (data === undefined) throw new Error(`${name} is missing`);
    return data;
  };
  for (const [name, kind] of SIGNED) {
    check(name + SIGNATURE, () => verifyBundle(kind, String(read(name + SIGNATURE)), read(name), key));
  }
  check(SUMS, () => {
    const listed = parseSums(String(read(SUMS)));
    for (const [name, digest] of listed) check(name, () => equal(sha256Of(read(name)), digest, SUMS));
    for (const name of files.keys()) {
      if (!listed.has(name) && !UNLISTED.includes(name)) faults.push(`${name}: it is not in ${SUMS}`);
    }
  });
  if (faults.length > 0) return faults;
  check(PROVENANCE, () => {
    const { subject } = v.parse(StatementSchema, JSON.parse(String(read(PROVENANCE))));
    const stated = new Map(subject.map(({ name, digest }) => [name, digest.sha256]));
    const contents = contentsOf(files);
    for (const name of new Set([...stated.keys(), ...contents.keys()])) {
      check(name, () => equal(contents.get(name), stated.get(name), PROVENANCE));
    }
  });
  return faults;
}

/** As sha256sum writes them. */
function parseSums(text: string): Map<string, string> {
  const lines = text.split('\n').slice(0, -1);
  return new Map(
    lines.map((line) => {
      const [, digest = '', name = ''] = /^([0-9a-f]{64}) {2}([\w.-]+)$/.exec(line) ?? [];
      if (name === '') throw new Error(`not a line of sha256sum: ${line}`);
      return [name, digest];
    }),
  );
}

function equal(found: string | undefined, stated: string | undefined, by: string): void {
  if (found !== stated) throw new Error(`it is ${found ?? 'missing'}, and ${stated ?? 'missing'} in ${by}`);
}
