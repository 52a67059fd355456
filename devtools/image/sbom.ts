/*
 * The list of what is in the image of one platform, as CycloneDX 1.6: the packages in the bundle, Node, and Debian's libraries.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT } from '../checkout.ts';
import type { BundledPackage } from './bundle.ts';
import { DEBIAN_PACKAGES, packageVersion } from './debian.ts';
import { type Architecture, type BaseOrigin, librariesOf } from './layers.ts';

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

export interface SbomInput {
  readonly architecture: Architecture;
  readonly origin: BaseOrigin;
  readonly version: string;
  /** ISO 8601. */
  readonly created: string;
  readonly packages: readonly BundledPackage[];
}

export function sbom({ architecture, origin, version, created, packages }: SbomInput): string {
  const root = { type: 'application', 'bom-ref': 'plegwatch', name: 'plegwatch', version };
  const components = [
    nodeComponent(origin),
    ...DEBIAN_PACKAGES.map((name) => debianComponent(name, architecture, origin)),
    ...libraryComponents(origin),
    ...npmComponents(packages),
  ];
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { timestamp: created, component: { ...root, licenses: licensed('Apache-2.0') } },
    components,
    dependencies: [{ ref: 'plegwatch', dependsOn: components.map((component) => component['bom-ref']) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

const licensed = (expression: string) => [{ expression }];
const identified = (purl: string) => ({ purl, 'bom-ref': purl });

function nodeComponent({ node }: BaseOrigin) {
  const { version } = JSON.parse(readFileSync(join(node, 'package.json'), 'utf8')) as { version: string };
  return {
    type: 'platform',
    name: 'node',
    version,
    hashes: hashesOf(readFileSync(join(node, 'bin/node'))),
    licenses: licensed('MIT'),
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    ...identified(`pkg:generic/node@${version}`),
  };
}

function debianComponent(name: string, architecture: Architecture, { debian }: BaseOrigin) {
  const version = packageVersion(debian, name);
  const release = /^VERSION_ID="(.*)"$/m.exec(readFileSync(join(debian, 'usr/lib/os-release'), 'utf8'))?.[1];
  const place = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
  return {
    type: 'library',
    name,
    version,
    ...identified(`pkg:deb/debian/${place}?arch=${architecture}&distro=debian-${release}`),
  };
}

/** The files of Debian's packages that are in the image: mirrors keep no old package, so that its version alone proves nothing later. */
function libraryComponents(origin: BaseOrigin) {
  return [...librariesOf(origin)].map(([path, { data }]) => ({
    type: 'file',
    name: `/${path}`,
    hashes: hashesOf(data),
    'bom-ref': `/${path}`,
  }));
}

const hashesOf = (data: Buffer) => [
  { alg: 'SHA-256', content: createHash('sha256').update(data).digest('hex') },
];

function npmComponents(packages: readonly BundledPackage[]) {
  const lock = JSON.parse(readFileSync(join(CHECKOUT, 'package-lock.json'), 'utf8')) as Lock;
  return packages.map(({ name, version, license }) => {
    const locked = Object.entries(lock.packages).find(
      ([path, one]) => path.endsWith(`node_modules/${name}`) && one.version === version,
    );
    const [algorithm, digest] = locked?.[1].integrity?.split('-') ?? [];
    if (algorithm !== 'sha512' || digest === undefined)
      throw new Error(`${name} ${version} is not in the lock`);
    return {
      type: 'library',
      name,
      version,
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
      licenses: licensed(license),
      ...identified(`pkg:npm/${name.replace('@', '%40')}@${version}`),
    };
  });
}
