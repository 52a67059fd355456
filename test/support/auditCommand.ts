/*
 * Runs `plegwatch audit` as a user does.
 */
import { execFile } from 'node:child_process';
import { CLI } from './build.ts';

export interface Audited {
  readonly cluster: string;
  readonly databaseUrl: string;
  /** All nodes, where none is given. */
  readonly node?: string | undefined;
  /** The built command line; this checkout's, where none is given. */
  readonly cli?: string;
}

export interface AuditOutcome {
  readonly code: number | string;
  /** What it printed. */
  readonly output: string;
}

export function auditCommand({ cluster, databaseUrl, node, cli = CLI }: Audited): Promise<AuditOutcome> {
  const args = [cli, 'audit', '--cluster', cluster, '--database-url', databaseUrl];
  if (node !== undefined) args.push('--node', node);
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), output: stdout + stderr }),
    );
  });
}
