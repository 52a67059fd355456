/*
 * The facts of dpkg about unpacked packages.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The packages that the image takes files from. Scanners look for them, and for the release, as in Debian. */
export const DEBIAN_PACKAGES = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6'] as const;

/** The paragraph of a package, as in /var/lib/dpkg/status. */
export function packageState(debian: string, name: string): string {
  const paragraphs = readFileSync(join(debian, 'var/lib/dpkg/status'), 'utf8').split(/\n{2,}/);
  const state = paragraphs.find((paragraph) => paragraph.startsWith(`Package: ${name}\n`));
  if (state === undefined) throw new Error(`the package ${name} is not in ${debian}`);
  return state.trim();
}

/** The version of a package. */
export function packageVersion(debian: string, name: string): string {
  const version = /^Version: (.*)$/m.exec(packageState(debian, name))?.[1];
  if (version === undefined) throw new Error(`the package ${name} has no version`);
  return version;
}
