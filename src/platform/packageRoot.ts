/*
 * Where this program's own files are (migrations, the CRD): the folder of its package.json, the same from the sources
 * and from the bundle.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of plegwatch's package.json; null where the program was taken away from it. */
export function programHome(): string | null {
  for (let dir = import.meta.dirname; ; dir = dirname(dir)) {
    if (isOurs(dir)) return dir;
    if (dir === dirname(dir)) return null;
  }
}

function isOurs(dir: string): boolean {
  const file = join(dir, 'package.json');
  if (!existsSync(file)) return false;
  const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return Reflect.get(Object(manifest), 'name') === 'plegwatch';
}
