/*
 * Runs the built program as a user does, on a terminal or not.
 */
import { execFile } from 'node:child_process';
import { programEnvironment } from '../../devtools/localServices/plegwatch.ts';
import { CLI } from './build.ts';

export interface Ended {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export function plegwatch(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const options = { env: { ...programEnvironment(), ...env }, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), stdout, stderr }),
    );
  });
}
