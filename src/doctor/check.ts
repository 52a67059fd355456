/*
 * One line of what the doctor says.
 *
 *   ok        it works
 *   warning   it works with less than it could, or nobody can say
 *   failed    agent or controller will not work
 */
import { type ErrorCode, messageOf, PlegwatchError } from '../platform/errors.ts';

export interface CheckResult {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly message: string;
  /** The cure; absent if it is ok. */
  readonly cure?: string;
  /** docs/reference/errors.md explains it. */
  readonly code?: ErrorCode;
}

export const ok = (name: string, message: string): CheckResult => ({ name, status: 'ok', message });
export const warning = (name: string, message: string, cure: string): CheckResult => ({
  name,
  status: 'warning',
  message,
  cure,
});
export const failed = (name: string, message: string, cure: string): CheckResult => ({
  name,
  status: 'failed',
  message,
  cure,
});

/** Runs checks of one subject. The error of the one that ends them is the last result. */
export async function attempt(
  name: string,
  checks: () => AsyncGenerator<CheckResult>,
): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  try {
    for await (const result of checks()) results.push(result);
  } catch (error) {
    results.push(failedWith(name, error));
  }
  return results;
}

function failedWith(name: string, error: unknown): CheckResult {
  if (error instanceof PlegwatchError) {
    const { code, cure } = error;
    return { name, status: 'failed', message: messageOf(error), cure, code };
  }
  return failed(name, messageOf(error), 'Look at the log of the program that uses it.');
}

/** Where two controllers write the same reports. */
export const ONE_CONTROLLER_CURE =
  'Uninstall all but one of the releases, or give each Kubernetes cluster a --cluster (PLEGWATCH_CLUSTER) of its own.';
