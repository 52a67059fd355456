/*
 * Builds the program once before the tests that run it, so that none of them tests an old one.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CLI = `${ROOT}dist/cli.js`;

/** Set in the environment of a test run once it has built: each of its projects asks for that. */
const BUILT = 'PLEGWATCH_BUILT';

export default function setup(): void {
  if (process.env[BUILT] !== undefined) return;
  execFileSync(process.execPath, ['build.mjs'], { cwd: ROOT, stdio: 'inherit' });
  process.env[BUILT] = 'true';
}
