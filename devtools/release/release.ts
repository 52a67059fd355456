/*
 * Collects a release from what `make image` built into dist/release/, or the folders that are given: images, chart, CRD, kubectl's plugin, lists of
 * components, notices, and the digests of them all. Run by `make release`.
 *
 *   node devtools/release/release.ts [FOLDER [IMAGES]]
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { VERSION } from '../../src/platform/version.ts';
import { CHECKOUT } from '../checkout.ts';
import { bundledPackages, NOTICES } from '../image/bundle.ts';
import { commitTime, isDirty } from '../image/commit.ts';
import { ARCHITECTURES } from '../image/layers.ts';
import { sbom } from '../image/sbom.ts';
import { where } from '../localServices/where.ts';
import { sha256 } from './digest.ts';
import { writePlugin } from './kubectlPlugin.ts';

const [, , out = join(CHECKOUT, 'dist/release'), images = join(CHECKOUT, 'dist/image')] = process.argv;
const DIGESTS = 'SHA256SUMS';
const from = (path: string): string => join(CHECKOUT, path);

const chart = parse(readFileSync(from('helm/plegwatch/Chart.yaml'), 'utf8')) as Record<string, string>;
if (chart['version'] !== VERSION || chart['appVersion'] !== VERSION) {
  throw new Error(`helm/plegwatch/Chart.yaml is not of version ${VERSION}, package.json is`);
}
if (isDirty()) console.error('release: the checkout differs from its commit; the image is labelled -dirty');

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const suffix of ['', ...ARCHITECTURES.map((architecture) => `-${architecture}`)]) {
  const archive = `plegwatch-${VERSION}${suffix}.tar`;
  copyFileSync(join(images, archive), join(out, `image-${archive}`));
}
execFileSync(where('helm'), ['package', from('helm/plegwatch'), '--destination', out], { stdio: 'ignore' });
const crd = 'plegreports.plegwatch.dev.yaml';
copyFileSync(from(`crds/${crd}`), join(out, crd));
copyFileSync(from('LICENSE'), join(out, 'LICENSE'));
writePlugin(out);

const packages = bundledPackages();
copyFileSync(from(NOTICES), join(out, basename(NOTICES)));
for (const architecture of ARCHITECTURES) {
  const base = where(`image-base-${architecture}`);
  const origin = { node: join(base, 'node'), debian: join(base, 'debian') };
  const list = sbom({ architecture, origin, version: VERSION, created: commitTime(), packages });
  writeFileSync(join(out, `image-plegwatch-${VERSION}-${architecture}.cdx.json`), list);
}

const digests = readdirSync(out)
  .sort()
  .map((name) => `${sha256(join(out, name))}  ${name}\n`);
writeFileSync(join(out, DIGESTS), digests.join(''));
console.log(`${out}:\n${digests.join('')}`);
