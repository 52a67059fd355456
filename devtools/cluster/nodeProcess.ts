/*
 * A process in the namespaces of a node. nsenter has to fork to enter a process namespace, so the process that we start is not the
 * one that runs the program: signals go to its child.
 */
import { readFileSync } from 'node:fs';
import { type ProcessOptions, type RunningProcess, startProcess, waitFor } from '../localServices/process.ts';

const STOP_WITHIN_MS = 240_000;

/** `node`: the first process of the node. The new one ends with it. */
export async function startInNode(
  node: number,
  { command, args, ...options }: ProcessOptions,
): Promise<RunningProcess> {
  const entered = await startProcess({
    ...options,
    command: 'nsenter',
    args: [`--target=${node}`, '--net', '--mount', '--uts', '--pid', '--', command, ...args],
  });
  let pid = 0;
  await waitFor(`${options.name} has entered its node`, STOP_WITHIN_MS, () => {
    if (!entered.running()) return true;
    pid = childOf(entered.pid);
    return pid !== 0;
  });
  const kill = (signal: NodeJS.Signals) => {
    if (entered.running()) send(pid, signal);
  };
  return {
    ...entered,
    pid,
    kill,
    async stop() {
      kill('SIGTERM');
      kill('SIGCONT');
      const timer = setTimeout(() => kill('SIGKILL'), STOP_WITHIN_MS);
      const exit = await entered.exited;
      clearTimeout(timer);
      return exit;
    },
  };
}

/** The first child of a process; 0 if it has none. */
export function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
