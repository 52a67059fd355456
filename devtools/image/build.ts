/*
 * Builds the image with buildah, from the Dockerfile and from what build.mjs bundled, into dist/image/: an archive for each
 * platform, and one with all of them. Run by `make image`, with the image's own Node, whose certificates the image gets. The same commit
 * and the same Debian packages give the same digest.
 *
 *   node devtools/image/build.ts [NAME [FOLDER]]        NAME is plegwatch:VERSION unless given
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PlegwatchError } from '../../src/platform/errors.ts';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { where } from '../localServices/where.ts';
import { addDockerManifest, digestOf, packArchive } from './archive.ts';
import { type Buildah, withBuildah } from './buildah.ts';
import { commitTime, revision } from './commit.ts';
import { fullName } from './fullName.ts';
import { ARCHITECTURES, appLayer, baseLayer } from './layers.ts';
import { writeTree } from './tree.ts';

const [, , name = `plegwatch:${VERSION}`, out = join(CHECKOUT, 'dist/image')] = process.argv;

const LIST = 'localhost/plegwatch:all';
const args = { VERSION, REVISION: revision(), CREATED: commitTime() };
const BUILD_OPTIONS = [
  `--file=${join(CHECKOUT, 'Dockerfile')}`,
  ...Object.entries(args).map(([key, value]) => `--build-arg=${key}=${value}`),
  // Files and image are dated 1970, and nothing in it is of this build: neither buildah's version nor the ids of steps.
  ...['--timestamp=0', '--identity-label=false', '--omit-history'],
];

mkdirSync(out, { recursive: true });
try {
  withBuildah(build);
} catch (error) {
  if (!(error instanceof PlegwatchError)) throw error;
  console.error(`image: NOT BUILT: ${error.message} ${error.cure}`);
  process.exitCode = 1;
}

function build(buildah: Buildah, dir: string): void {
  const context = join(dir, 'context');
  writeTree(appLayer(), join(context, 'app'));
  // One after the other: of platforms that are built at once, the faster one would be the first in the list.
  for (const architecture of ARCHITECTURES) {
    const origin = where(`image-base-${architecture}`);
    const base = baseLayer({ node: join(origin, 'node'), debian: join(origin, 'debian') });
    writeTree(base, join(context, `base-${architecture}`));
    const platform = `--platform=linux/${architecture}`;
    const image = buildah(['build'], ...BUILD_OPTIONS, platform, `--manifest=${LIST}`, context);
    const layout = join(dir, architecture);
    buildah(['push'], image, `oci:${layout}:${fullName(name)}`);
    addDockerManifest(layout, fullName(name));
    write(layout, `-${architecture}`);
  }
  const layout = join(dir, 'all');
  buildah(['manifest', 'push'], '--all', LIST, `oci:${layout}:${fullName(name)}`);
  write(layout, '');
}

function write(layout: string, suffix: string): void {
  const path = join(out, `plegwatch-${VERSION}${suffix}.tar`);
  packArchive(layout, path);
  const size = (statSync(path).size / 1_048_576).toFixed(1);
  console.log(`${path}: ${name}, ${size} MiB\n  digest ${digestOf(layout)}`);
}
