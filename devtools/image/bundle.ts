/*
 * The last bundle of build.mjs: its files, the packages that are in them, and the texts of their licenses.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT } from '../checkout.ts';

interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>> }>
  >;
}

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression, as the package declares it. */
  readonly license: string;
  readonly licenseText: string;
}

/** The texts of their licenses, beside the bundle. */
export const NOTICES = 'dist/THIRD-PARTY-NOTICES.txt';
const MODULES = 'node_modules/';
const OUR_LICENSE = 'Apache-2.0';
const LICENSE_FILE = /^(un)?licen[cs]e|^notice|^copying|^copyright/i;

const metafile = (): Metafile => JSON.parse(readFileSync(join(CHECKOUT, 'dist/metafile.json'), 'utf8'));

/** Paths in the checkout. dist/ may hold files of earlier builds as well. */
export const bundledFiles = (): string[] => Object.keys(metafile().outputs);

/** The packages of which a byte is in the bundle, by name. */
export function bundledPackages(): BundledPackage[] {
  const filesOf = new Map<string, string[]>();
  for (const { inputs } of Object.values(metafile().outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const folder = packageFolder(path);
      if (folder === undefined || bytesInOutput === 0) continue;
      const files = filesOf.get(folder) ?? [];
      filesOf.set(folder, [...files, path]);
    }
  }
  return [...filesOf]
    .map(([folder, files]) => bundledPackage(folder, files))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The folder of the innermost package that a file is of. */
function packageFolder(path: string): string | undefined {
  const at = path.lastIndexOf(MODULES);
  if (at === -1) return undefined;
  const name = /^(@[^/]+\/)?[^/]+/.exec(path.slice(at + MODULES.length))?.[0];
  return name === undefined ? undefined : path.slice(0, at + MODULES.length) + name;
}

function bundledPackage(folder: string, files: readonly string[]): BundledPackage {
  const root = join(CHECKOUT, folder);
  const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
    license?: string;
  };
  if (license === undefined) throw new Error(`${name} ${version} declares no license`);
  const licenseText = licenseFiles(root) || readmeSection(root) || headers(files) || textOfOurs(license);
  if (licenseText === '') throw new Error(`${name} ${version} has no text of its license ${license}`);
  return { name, version, license: license.replace(/^\((.*)\)$/, '$1'), licenseText };
}

function licenseFiles(root: string): string {
  const names = readdirSync(root).filter((name) => LICENSE_FILE.test(name));
  return names.map((name) => readFileSync(join(root, name), 'utf8').trim()).join('\n\n');
}

/** Where a package only names the license: plegwatch's own has the whole text of it. */
const textOfOurs = (license: string): string =>
  license === OUR_LICENSE ? readFileSync(join(CHECKOUT, 'LICENSE'), 'utf8').trim() : '';

/** Some packages have their license at the end of their README only. */
function readmeSection(root: string): string {
  const readme = join(root, 'README.md');
  const text = existsSync(readme) ? readFileSync(readme, 'utf8') : '';
  return /^#+ licen[cs]e\s*\n([\s\S]*)/im.exec(text)?.[1]?.trim() ?? '';
}

/** Others have it at the top of their source files only. */
function headers(files: readonly string[]): string {
  const found = files.map((path) => {
    const source = readFileSync(join(CHECKOUT, path), 'utf8');
    return /^((?:\/\/.*\n)+|\/\*[\s\S]*?\*\/)/.exec(source)?.[0].trim() ?? '';
  });
  return [...new Set(found)].filter((comment) => /copyright/i.test(comment)).join('\n\n');
}
