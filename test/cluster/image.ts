/*
 * Builds the image once before the tests that run it.
 */
import { execFileSync } from 'node:child_process';
import { ProgramMissing, where } from '../../devtools/localServices/where.ts';
import { ROOT } from '../support/build.ts';

export default function setup(): void {
  try {
    where('buildah');
    execFileSync(where('image-node'), ['devtools/image/build.ts'], { cwd: ROOT, stdio: 'inherit' });
  } catch (error) {
    // Then the tests say what is missing.
    if (!(error instanceof ProgramMissing)) throw error;
  }
}
