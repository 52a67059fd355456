/*
 * The versions that later ones are upgraded from: test/released/, as `make keep-release` fills it. Until the first one is kept, the present version stands
 * for it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { appLayer } from '../../devtools/image/layers.ts';
import { where } from '../../devtools/localServices/where.ts';
import { keep, PROGRAM, RELEASED } from '../../devtools/release/keep.ts';
import { VERSION } from '../../src/platform/version.ts';
import { ROOT } from './build.ts';

export interface Released {
  /** Its command line. */
  readonly cli: string;
  /** The archive of its chart. */
  readonly chart: string;
  readonly schemaVersion: number;
}

const isAnyKept = existsSync(RELEASED);

export const releasedVersions = (): string[] => (isAnyKept ? readdirSync(RELEASED).sort() : [VERSION]);

/** Unpacks a version into an empty folder. */
export function unpack(version: string, dir: string): Released {
  const kept = isAnyKept ? join(RELEASED, version) : join(dir, 'kept');
  const chart = join(kept, `plegwatch-${version}.tgz`);
  if (!isAnyKept) {
    const packed = ['package', `${ROOT}helm/plegwatch`, '--destination', dir];
    execFileSync(where('helm'), packed, { stdio: 'pipe' });
    keep(kept, appLayer(), join(dir, `plegwatch-${version}.tgz`));
  }
  const program = brotliDecompressSync(readFileSync(join(kept, PROGRAM)));
  execFileSync('tar', ['--extract', '--directory', dir], { input: program });
  const migrations = readdirSync(join(dir, 'app/migrations'));
  return { cli: join(dir, 'app/dist/cli.js'), chart, schemaVersion: migrations.length };
}
