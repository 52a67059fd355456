/*
 * Tests that need a program, root or a kernel that reports pressure: without it they are skipped, with the reason in their title. With CI=true they fail
 * instead, so that a green run has tested everything.
 */
import { existsSync } from 'node:fs';
import { describe, it } from 'vitest';
import { ProgramMissing, type ProgramName, where } from '../../devtools/localServices/where.ts';

export type Need = ProgramName | 'root' | 'pressure';

/** `needs('redis-server')('the queue', () => { … })` is `describe` if everything named is available. */
export function needs(...names: readonly Need[]): (title: string, tests: () => void) => void {
  const reasons = names.map(reasonAgainst).filter((reason) => reason !== undefined);
  if (reasons.length === 0) return (title, tests) => describe(title, tests);
  const why = reasons.join(' ');
  if (process.env['CI'] === 'true') {
    return (title) =>
      describe(title, () => {
        it('has what it needs', () => {
          throw new Error(why);
        });
      });
  }
  return (title, tests) => describe.skip(`${title} [skipped: ${why}]`, tests);
}

/** Whether it is available on this machine. */
export const has = (need: Need): boolean => reasonAgainst(need) === undefined;

function reasonAgainst(need: Need): string | undefined {
  if (need === 'root') {
    return process.getuid?.() === 0 ? undefined : 'It needs root.';
  }
  if (need === 'pressure') {
    return existsSync('/proc/pressure/cpu') ? undefined : 'It needs a kernel that reports pressure (psi=1).';
  }
  try {
    where(need);
    return undefined;
  } catch (error) {
    if (error instanceof ProgramMissing) return `${error.message} ${error.cure}`;
    throw error;
  }
}
