/*
 * `plegwatch doctor`: checks all that is set, as agent and controller do when they start, and says what to do about what is wrong.
 */
import { PlegwatchError } from '../platform/errors.ts';
import { printable } from '../platform/printable.ts';
import type { CheckResult } from './check.ts';
import { checkDatabase } from './databaseChecks.ts';
import { checkKube } from './kubeChecks.ts';
import { checkNode } from './nodeChecks.ts';
import { checkProgram } from './programChecks.ts';
import { checkQueues } from './redisChecks.ts';
import type { DoctorConfig } from './settings.ts';

/** All subjects are checked, whatever is wrong with the others. Throws SETTING_INVALID if nothing is set. */
export async function examine(config: DoctorConfig): Promise<readonly CheckResult[]> {
  const checks = [checkProgram, checkNode, checkQueues, checkDatabase, checkKube];
  const results = (await Promise.all(checks.map((check) => check(config)))).flat();
  if (results.length === 0) {
    throw new PlegwatchError(
      'SETTING_INVALID',
      'Nothing to check: none of --http-address, --cri-endpoint, --kubelet-url, --redis-url, --database-url and --kubeconfig is set',
      'Run it in the pod of an agent or a controller, or give it their settings. See plegwatch doctor --help.',
    );
  }
  return results;
}

export const hasFailed = (results: readonly CheckResult[]): boolean =>
  results.some(({ status }) => status === 'failed');

export function written(results: readonly CheckResult[], output: DoctorConfig['output']): string {
  if (output === 'json') return `${JSON.stringify({ ok: !hasFailed(results), checks: results }, null, 2)}\n`;
  const width = Math.max(...results.map(({ name }) => name.length));
  return results.map((result) => lineOf(result, width)).join('');
}

const STATUS_WIDTH = 'warning'.length;

function lineOf({ name, status, message, cure, code }: CheckResult, width: number): string {
  const line = `${status.padEnd(STATUS_WIDTH)}  ${name.padEnd(width)}  ${printable(message)}\n`;
  if (cure === undefined) return line;
  return `${line}${' '.repeat(STATUS_WIDTH + width + 4)}${printable(cure)}${code === undefined ? '' : `  [${code}]`}\n`;
}
