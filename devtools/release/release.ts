/*
 * Collects a release from what `make image` built into dist/release/, which it empties first: images, chart, CRD, kubectl's plugin, queries of a
 * lake, lists of components, notices, provenance and the digests of them all, which a key signs if one is given. Run by `make release`.
 *
 *   node devtools/release/release.ts [--key KEY] [FOLDER [IMAGES]]        FOLDER: a new one
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { CRD } from '../crd.ts';
import { bundledPackages, NOTICES } from '../image/bundle.ts';
import { commitId, commitTime, isDirty, revision } from '../image/commit.ts';
import { ARCHITECTURES } from '../image/layers.ts';
import { sbom } from '../image/sbom.ts';
import { where } from '../localServices/where.ts';
import { writeChart } from './chart.ts';
import { contentsOf, filesIn, PROVENANCE, SUMS } from './contents.ts';
import { sha256Of } from './digest.ts';
import { inputsOf } from './inputs.ts';
import { writePlugin } from './kubectlPlugin.ts';
import { readLayout } from './layout.ts';
import { provenance } from './provenance.ts';
import { publisher } from './publisher.ts';
import { sign } from './sign.ts';

const { values, positionals } = parseArgs({ options: { key: { type: 'string' } }, allowPositionals: true });
const [out = join(CHECKOUT, 'dist/release'), images = join(CHECKOUT, 'dist/image')] = positionals;
const by = publisher();
const from = (path: string): string => join(CHECKOUT, path);
const write = (name: string, text: string): void => writeFileSync(join(out, name), text);

if (isDirty()) console.error('release: the checkout differs from its commit; image and provenance say so');

if (positionals.length === 0) rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: positionals.length === 0 });
for (const suffix of ['', ...ARCHITECTURES.map((architecture) => `-${architecture}`)]) {
  const archive = `plegwatch-${VERSION}${suffix}.tar`;
  copyFileSync(join(images, archive), join(out, `image-${archive}`));
}
const image = readLayout(readFileSync(join(images, `plegwatch-${VERSION}.tar`)));
const built = [...image.revisions].join(' and ');
if (built !== revision()) {
  throw new Error(`${images} has an image of ${built}, and the checkout is ${revision()}: run make image`);
}
writeChart(out, { image, publisher: by, created: new Date(commitTime()) });
const lake = readdirSync(from('lake')).map((name) => `lake/${name}`);
for (const path of [CRD, 'LICENSE', NOTICES, ...lake]) copyFileSync(from(path), join(out, basename(path)));
writePlugin(out, by);

const packages = bundledPackages();
const lists = ARCHITECTURES.map((architecture) => {
  const base = where(`image-base-${architecture}`);
  const origin = { node: join(base, 'node'), debian: join(base, 'debian') };
  const list = sbom({ architecture, origin, version: VERSION, created: commitTime(), packages });
  write(`image-plegwatch-${VERSION}-${architecture}.cdx.json`, list);
  return list;
});

const subjects = [...contentsOf(filesIn(out))].map(([name, sha256]) => ({ name, digest: { sha256 } }));
const build = {
  source: by.source,
  commit: commitId(),
  isDirty: isDirty(),
  image: image.name,
  inputs: inputsOf(lists),
};
write(PROVENANCE, provenance({ subjects, ...build }));
const sums = [...filesIn(out)].map(([name, data]) => `${sha256Of(data)}  ${name}\n`);
write(SUMS, sums.join(''));
if (values.key !== undefined) sign(out, values.key, by.signKey.fingerprint);
console.log(`${out}:\n${sums.join('')}`);
if (values.key === undefined) console.error('release: NOT SIGNED: no KEY was given (docs/how-to/image.md)');
