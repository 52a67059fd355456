/*
 * The files of a view and a cluster in a lake, in `_manifest.json` beside the folders of their days. Its name begins with `_`, so that
 * engines which read all files of a folder leave it out.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { isMissing, messageOf, PlegwatchError } from '../../platform/errors.ts';
import { unwritable, writeOutput } from '../../platform/outputFile.ts';

const NAME = '_manifest.json';

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const ListedFile = v.object({
  rows: count,
  bytes: count,
  sha256: v.string(),
  /** Whether no more records of the day could come. */
  complete: v.boolean(),
  /** The state of the day in Postgres when it was written (readDayState.sql). */
  state: v.string(),
  /** How many records Postgres had then of the epochs of the day. */
  records: count,
});
export type ListedFile = v.InferOutput<typeof ListedFile>;

/** By the day of each file. */
const Manifest = v.object({ version: v.literal(1), files: v.record(v.string(), ListedFile) });
export type Files = Readonly<Record<string, ListedFile>>;

/** Throws EXPORT_DAMAGED, or EXPORT_UNWRITABLE. */
export async function readManifest(folder: string): Promise<Files> {
  const file = join(folder, NAME);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw unwritable('--dir', file, error);
  });
  if (text === undefined) return {};
  try {
    return v.parse(Manifest, JSON.parse(text)).files;
  } catch (error) {
    throw new PlegwatchError(
      'EXPORT_DAMAGED',
      `${file} is not a manifest of plegwatch: ${messageOf(error)}.`,
      'Restore it from a backup, or delete it: the days that Postgres still has are then exported again.',
      { cause: error },
    );
  }
}

/** Throws EXPORT_UNWRITABLE. */
export async function writeManifest(folder: string, files: Files): Promise<void> {
  const sorted = Object.fromEntries(Object.entries(files).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  await writeOutput('--dir', join(folder, NAME), [
    `${JSON.stringify({ version: 1, files: sorted }, null, 1)}\n`,
  ]);
}

/** Whether the file is there with the bytes that the manifest lists. Throws EXPORT_UNWRITABLE. */
export async function isListed(file: string, { bytes, sha256 }: ListedFile): Promise<boolean> {
  const digest = new Digest();
  try {
    for await (const chunk of createReadStream(file)) digest.add(chunk);
  } catch (error) {
    if (isMissing(error)) return false;
    throw unwritable('--dir', file, error);
  }
  const found = digest.end();
  return found.bytes === bytes && found.sha256 === sha256;
}

export class Digest {
  readonly #hash = createHash('sha256');
  #bytes = 0;

  add(chunk: Uint8Array): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
  }

  end(): Pick<ListedFile, 'bytes' | 'sha256'> {
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}
