/*
 * The image of both platforms, which the first file of tests that asks for it builds for all others of a test run.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';
import { VERSION } from '../../src/platform/version.ts';
import { ROOT } from './build.ts';

export const IMAGE = `registry.example:5000/team/plegwatch:${VERSION}`;

/** The folder of the image, in the environment of the processes that run tests. */
const FOLDER = 'PLEGWATCH_SHARED_IMAGE';
/** Moved into place: a build that failed is repeated. */
const BUILD = '[ -e "$1" ] || { "$0" devtools/image/build.ts "$2" "$1.new" && mv "$1.new" "$1"; }';

export default function setup(): () => void {
  const folder = temporaryFolder('sharedimage', undefined);
  process.env[FOLDER] = folder.dir;
  return () => folder.remove();
}

/** Returns the folder of its archives, once nobody else builds them. */
export async function sharedImage(): Promise<string> {
  const folder = process.env[FOLDER];
  if (folder === undefined) throw new Error('only the project release has this image');
  const images = join(folder, 'image');
  const build = ['-c', BUILD, where('image-node'), images, IMAGE];
  await promisify(execFile)('flock', [folder, 'sh', ...build], { cwd: ROOT });
  return images;
}
