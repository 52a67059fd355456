/*
 * Builds the image once before the tests that run it, for the registry that their nodes pull from.
 */
import { execFileSync } from 'node:child_process';
import { REGISTRY } from '../../devtools/cluster/documentedCommands.ts';
import { ProgramMissing, where } from '../../devtools/localServices/where.ts';
import { VERSION } from '../../src/platform/version.ts';
import { ROOT } from '../support/build.ts';

export default function setup(): void {
  try {
    where('buildah');
    const name = `${REGISTRY}/plegwatch:${VERSION}`;
    execFileSync(where('image-node'), ['devtools/image/build.ts', name], { cwd: ROOT, stdio: 'inherit' });
  } catch (error) {
    // Then the tests say what is missing.
    if (!(error instanceof ProgramMissing)) throw error;
  }
}
