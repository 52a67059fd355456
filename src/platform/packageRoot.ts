/*
 * The folder of plegwatch's package.json, which also holds migrations/ and crds/. It is found from the sources and from the bundle.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Searches `from` and the folders above it; null where the program was moved away from its package. */
export function packageRoot(from: string = import.meta.dirname): string | null {
  for (let dir = from; ; dir = dirname(dir)) {
    if (isPackageRoot(dir)) return dir;
    if (dir === dirname(dir)) return null;
  }
}

function isPackageRoot(dir: string): boolean {
  const file = join(dir, 'package.json');
  if (!existsSync(file)) return false;
  const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return Reflect.get(Object(manifest), 'name') === 'plegwatch';
}
