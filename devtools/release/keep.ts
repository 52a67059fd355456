/*
 * Keeps the program and the chart of a release in test/released/, from where tests upgrade to every later version. The program, and not data that it wrote,
 * because only a program can run beside later ones and after a rollback. Run by `make keep-release` after `make release`, at the same commit.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, constants, gunzipSync } from 'node:zlib';
import * as v from 'valibot';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { packArchive } from '../image/archive.ts';
import { commitId } from '../image/commit.ts';
import { readTar } from '../image/tar.ts';
import { file, type Tree, writeTree } from '../image/tree.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { PROVENANCE } from './contents.ts';
import { sha256Of } from './digest.ts';
import { readLayout } from './layout.ts';

/** A folder for each version. */
export const RELEASED = join(CHECKOUT, 'test/released');
/** The image's folder of plegwatch, compressed with Brotli. */
export const PROGRAM = 'program.tar.br';
/** The highest quality takes ten times as long, and saves 8 %. */
const COMPRESSION = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  },
};

/** Writes the program of a release's image, which every platform has, and its chart into a folder. Throws if its provenance states others. */
export function keepRelease(release: string, out: string): void {
  const { subject } = v.parse(StatementSchema, provenanceOf(release));
  const stated = (name: string): Buffer => {
    const data = readFileSync(join(release, name));
    const sha256 = sha256Of(data);
    if (!subject.some((each) => each.name === name && each.digest.sha256 === sha256))
      throw new Error(`${name} in ${release} is not the one of its provenance: run make release`);
    return data;
  };
  const chart = `plegwatch-${VERSION}.tgz`;
  stated(chart);
  keep(out, treeOf(stated(`image-plegwatch-${VERSION}-amd64.tar`)), join(release, chart));
}

/** Writes the program in the tree of an image, and the archive of a chart, into a folder. */
export function keep(out: string, image: Tree, chart: string): void {
  mkdirSync(out, { recursive: true });
  const { dir, remove } = temporaryFolder('kept', undefined);
  try {
    writeTree(new Map([...image].filter(([path]) => path.startsWith('app/'))), join(dir, 'root'));
    packArchive(join(dir, 'root'), join(dir, 'program.tar'));
    writeFileSync(
      join(out, PROGRAM),
      brotliCompressSync(readFileSync(join(dir, 'program.tar')), COMPRESSION),
    );
    copyFileSync(chart, join(out, basename(chart)));
  } finally {
    remove();
  }
}

/** The files of an image, from its archive. */
function treeOf(archive: Buffer): Tree {
  const blobs = readTar(archive);
  const layers = [...readLayout(archive).layers].map((digest) =>
    blobs.get(`blobs/${digest.replace(':', '/')}`),
  );
  const entries = layers.flatMap((layer) =>
    layer === undefined ? [] : [...readTar(gunzipSync(layer.data))],
  );
  return new Map(
    entries.flatMap(([path, { type, mode, data }]) =>
      type === '0' ? [[path, file(data, (mode & 0o100) !== 0)]] : [],
    ),
  );
}

const StatementSchema = v.object({
  subject: v.array(v.object({ name: v.string(), digest: v.object({ sha256: v.string() }) })),
});

const provenanceOf = (release: string) => JSON.parse(readFileSync(join(release, PROVENANCE), 'utf8'));

if (import.meta.main) {
  const release = join(CHECKOUT, 'dist/release');
  const { source } = provenanceOf(release).predicate.buildDefinition.externalParameters;
  if (source.digest.gitCommit !== commitId() || source.annotations?.dirty) {
    throw new Error(`${release} is not a release of this commit: run make release`);
  }
  keepRelease(release, join(RELEASED, VERSION));
}
