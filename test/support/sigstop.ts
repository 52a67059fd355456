/*
 * Freezes processes, which keep their files and sockets open, as the cgroup freezer or a stuck disk does.
 */
import { readFileSync } from 'node:fs';
import { waitFor } from './waitFor.ts';

/** Waits until all of the processes are stopped; on a busy machine one may be killed meanwhile for being silent. */
export async function freeze(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  await waitFor('the processes are stopped', () => pids.every((pid) => stateOf(pid) === 'T' || !exists(pid)));
}

export function thaw(...pids: readonly number[]): void {
  for (const pid of pids) {
    if (exists(pid)) process.kill(pid, 'SIGCONT');
  }
}

export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

/** Whether the process exists and is no zombie. */
export const exists = (pid: number): boolean => !['', 'Z', 'X'].includes(stateOf(pid));

/** One letter (proc(5)); empty if there is no such process. */
function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).charAt(0);
  } catch {
    return '';
  }
}
