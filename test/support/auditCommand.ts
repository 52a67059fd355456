/*
 * Runs `plegwatch audit` as a user does.
 */
import { execFile } from 'node:child_process';
import { CLI } from './build.ts';
import { CLUSTER } from './system.ts';

export interface AuditOutcome {
  readonly code: number | string;
  /** What it printed. */
  readonly output: string;
}

export function auditCommand(databaseUrl: string, ...more: readonly string[]): Promise<AuditOutcome> {
  const args = [CLI, 'audit', '--cluster', CLUSTER, '--database-url', databaseUrl, ...more];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), output: stdout + stderr }),
    );
  });
}
