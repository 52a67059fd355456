/*
 * The two layers of the image, which the Dockerfile copies.
 *
 *   base   Node, the libraries that it needs, certificates, users: the same until Node or a library changes
 *   app    plegwatch
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { CHECKOUT } from '../checkout.ts';
import { bundledFiles, NOTICES } from './bundle.ts';
import { DEBIAN_PACKAGES, packageState } from './debian.ts';
import { readElf } from './elf.ts';
import { type Entry, type FileEntry, file, link, type Tree } from './tree.ts';

export const ARCHITECTURES = ['amd64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** e_machine of an ELF file → the folder of Debian's libraries. */
const LIBRARY_FOLDERS: ReadonlyMap<number, string> = new Map([
  [62, 'x86_64-linux-gnu'],
  [183, 'aarch64-linux-gnu'],
]);

export interface BaseOrigin {
  /** Has bin/node and LICENSE. */
  readonly node: string;
  /** The root of Debian's unpacked packages. */
  readonly debian: string;
}

export function baseLayer({ node, debian }: BaseOrigin): Tree {
  return new Map<string, Entry>([
    ['usr/local/bin/node', file(readFileSync(join(node, 'bin/node')), true)],
    ['usr/local/share/doc/node/LICENSE', file(readFileSync(join(node, 'LICENSE')))],
    ...librariesOf({ node, debian }),
    ...DEBIAN_PACKAGES.flatMap((name): [string, Entry][] => [
      [`var/lib/dpkg/status.d/${name}`, file(`${packageState(debian, name)}\n`)],
      [
        `usr/share/doc/${name}/copyright`,
        file(readFileSync(join(debian, 'usr/share/doc', name, 'copyright'))),
      ],
    ]),
    ['etc/os-release', file(readFileSync(join(debian, 'usr/lib/os-release')))],
    // Node has Mozilla's certificates built in. As a file, they can be named in a setting that takes a file.
    ['etc/ssl/certs/ca-certificates.crt', file(`${getCACertificates('bundled').join('\n')}\n`)],
    ['etc/nsswitch.conf', file('hosts: files dns\n')],
    [
      'etc/passwd',
      file('root:x:0:0:root:/:/nonexistent\nplegwatch:x:65532:65532:plegwatch:/:/nonexistent\n'),
    ],
    ['etc/group', file('root:x:0:\nplegwatch:x:65532:\n')],
  ]);
}

/** Node's loader, and its libraries with those that they need in turn. */
export function librariesOf({ node, debian }: BaseOrigin): Map<string, FileEntry> {
  const { machine, loader, libraries } = readElf(readFileSync(join(node, 'bin/node')));
  const folder = LIBRARY_FOLDERS.get(machine);
  if (folder === undefined || loader === undefined) throw new Error('Node is of an unknown architecture');
  const found = new Map<string, FileEntry>();
  const take = (name: string): void => {
    const path = name === basename(loader) ? loader.slice(1) : `lib/${folder}/${name}`;
    if (found.has(path)) return;
    const data = readFileSync(libraryFile(debian, folder, name));
    found.set(path, file(data, name === basename(loader)));
    readElf(data).libraries.forEach(take);
  };
  take(basename(loader));
  libraries.forEach(take);
  return found;
}

function libraryFile(debian: string, folder: string, name: string): string {
  const candidates = ['usr/lib', 'lib'].map((lib) => join(debian, lib, folder, name));
  const path = candidates.find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error(`Node needs ${name}, which is in none of ${candidates.join(', ')}`);
  return path;
}

/** The program as build.mjs bundled it last. */
export function appLayer(): Tree {
  const read = (path: string): Entry => file(readFileSync(join(CHECKOUT, path)));
  return new Map<string, Entry>([
    ...bundledFiles().map((path): [string, Entry] => [`app/${path}`, read(path)]),
    ...readdirSync(join(CHECKOUT, 'migrations')).map((name): [string, Entry] => [
      `app/migrations/${name}`,
      read(`migrations/${name}`),
    ]),
    ['app/package.json', read('package.json')],
    ['app/LICENSE', read('LICENSE')],
    ['app/THIRD-PARTY-NOTICES.txt', read(NOTICES)],
    // For kubectl exec: there is no shell, so the kernel starts Node.
    ['app/plegwatch.js', file("#!/usr/local/bin/node\nimport './dist/cli.js';\n", true)],
    ['usr/local/bin/plegwatch', link('/app/plegwatch.js')],
  ]);
}
