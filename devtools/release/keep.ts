/*
 * Keeps the program and the chart of a release in test/released/, from where tests upgrade to every later version. The program, and not data that it wrote,
 * because only a program can run beside later ones and after a rollback. Run by `make keep-release` after `make release`, at the same commit.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { packArchive } from '../image/archive.ts';
import { commitId } from '../image/commit.ts';
import { appLayer } from '../image/layers.ts';
import { writeTree } from '../image/tree.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';

/** A folder for each version. */
export const RELEASED = join(CHECKOUT, 'test/released');
/** The image's folder of plegwatch, compressed with Brotli. */
export const PROGRAM = 'program.tar.br';

/** Writes the program of the last build, and the archive of a chart, into a folder. */
export function keep(out: string, chart: string): void {
  mkdirSync(out, { recursive: true });
  const { dir, remove } = temporaryFolder('kept', undefined);
  try {
    writeTree(new Map([...appLayer()].filter(([path]) => path.startsWith('app/'))), join(dir, 'root'));
    packArchive(join(dir, 'root'), join(dir, 'program.tar'));
    writeFileSync(join(out, PROGRAM), brotliCompressSync(readFileSync(join(dir, 'program.tar'))));
    copyFileSync(chart, join(out, basename(chart)));
  } finally {
    remove();
  }
}

if (import.meta.main) {
  const release = join(CHECKOUT, 'dist/release');
  const provenance = JSON.parse(readFileSync(join(release, 'provenance.json'), 'utf8'));
  const { source } = provenance.predicate.buildDefinition.externalParameters;
  if (source.digest.gitCommit !== commitId() || source.annotations?.dirty) {
    throw new Error(`${release} is not a release of this commit: run make release`);
  }
  keep(join(RELEASED, VERSION), join(release, `plegwatch-${VERSION}.tgz`));
}
