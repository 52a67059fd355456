/*
 * Builds the image without a container engine, from what build.mjs bundled, into dist/image/: an archive for each
 * platform, and one with all of them. Run by `make image`, with the image's own Node, which also compresses the layers: so
 * the same commit and the same Debian packages give the same digest.
 *
 *   node devtools/image/build.ts [NAME [FOLDER]]        NAME is plegwatch:VERSION unless given
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { where } from '../localServices/where.ts';
import { type ImageDescription, packArchive, packLayer, platformImage } from './archive.ts';
import { commitTime, revision } from './commit.ts';
import { lastStage } from './dockerfile.ts';
import { ARCHITECTURES, appLayer, baseLayer } from './layers.ts';

const [, , name = `plegwatch:${VERSION}`, out = join(CHECKOUT, 'dist/image')] = process.argv;

const { config, layers } = lastStage(readFileSync(join(CHECKOUT, 'Dockerfile'), 'utf8'), {
  VERSION,
  REVISION: revision(),
});
const description: ImageDescription = { name, config, created: commitTime() };

const app = packLayer(appLayer());
const images = await Promise.all(
  ARCHITECTURES.map(async (architecture) => {
    const origin = where(`image-base-${architecture}`);
    const base = packLayer(baseLayer({ node: join(origin, 'node'), debian: join(origin, 'debian') }));
    const packed = new Map([
      ['/image/base', await base],
      ['/image/app', await app],
    ]);
    const ordered = layers.map((folder) => {
      const layer = packed.get(folder);
      if (layer === undefined)
        throw new Error(`the Dockerfile copies ${folder}, which is no layer of devtools/image/layers.ts`);
      return layer;
    });
    return platformImage(architecture, description, ordered);
  }),
);

mkdirSync(out, { recursive: true });
const write = (suffix: string, of: typeof images): void => {
  const path = join(out, `plegwatch-${VERSION}${suffix}.tar`);
  const archive = packArchive(description, of);
  // Renamed into place: whoever reads it meanwhile sees a whole archive.
  writeFileSync(`${path}.new`, archive);
  renameSync(`${path}.new`, path);
  console.log(
    `${path}: ${name}, ${of.map(({ architecture }) => architecture).join(' and ')}, ${(archive.length / 1_048_576).toFixed(1)} MiB`,
  );
};
for (const image of images) {
  write(`-${image.architecture}`, [image]);
  console.log(`  manifest ${image.manifest.digest}`);
}
write('', images);
