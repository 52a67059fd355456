/*
 * Runs `plegwatch audit` as a user does.
 */
import { execFile } from 'node:child_process';
import { CLI } from './build.ts';
import { WITHIN_MS } from './waitFor.ts';

export interface Audited {
  readonly cluster: string;
  readonly databaseUrl: string;
  /** All nodes, where none is given. */
  readonly node?: string | undefined;
  /** More arguments. */
  readonly more?: readonly string[];
  /** The built command line; this checkout's, where none is given. */
  readonly cli?: string;
}

export interface AuditOutcome {
  readonly code: number | string;
  /** Its output. */
  readonly output: string;
}

/** Runs it again where Postgres did not accept the connection in time, as on a busy machine. */
export async function auditCommand(audited: Audited): Promise<AuditOutcome> {
  const deadline = performance.now() + WITHIN_MS;
  for (;;) {
    const outcome = await run(audited);
    if (!outcome.output.includes('connection timeout') || performance.now() > deadline) return outcome;
  }
}

function run({ cluster, databaseUrl, node, more = [], cli = CLI }: Audited): Promise<AuditOutcome> {
  const args = [cli, 'audit', '--cluster', cluster, '--database-url', databaseUrl, ...more];
  if (node !== undefined) args.push('--node', node);
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), output: stdout + stderr }),
    );
  });
}
