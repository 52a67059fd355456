/*
 * A machine of its own for processes: network, mount, process and host name namespaces. All of it ends with the first process in them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ProcessOptions, type RunningProcess, startProcess, waitFor } from './process.ts';

const STOP_WITHIN_MS = 240_000;

export interface Machine {
  /** Its first process, as this machine numbers it. */
  readonly pid: number;
  stop(): Promise<void>;
}

/** `/var/lib` and `/var/log` in it are folders below `dir`, and `/run` is empty; every other path is that of this machine. */
export async function startMachine(name: string, dir: string): Promise<Machine> {
  const outer = await startProcess({
    name,
    command: 'unshare',
    args: [
      ...['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--propagation', 'private', '--'],
      ...[join(import.meta.dirname, 'machine.sh'), name, dir],
    ],
    logFile: join(dir, 'machine.log'),
    ready: async () => existsSync(join(dir, 'mounted')),
  });
  const pid = childOf(outer.pid);
  return {
    pid,
    stop: async () => {
      if (outer.running()) send(pid, 'SIGKILL');
      await outer.exited;
    },
  };
}

/**
 * Starts a process in the namespaces of a machine; `first` is the machine's first process. nsenter has to fork to enter a process namespace,
 * so the process that we start is not the one that runs the program: signals go to its child.
 */
export async function startInMachine(
  first: number,
  { command, args, ...options }: ProcessOptions,
): Promise<RunningProcess> {
  const entered = await startProcess({
    ...options,
    command: 'nsenter',
    args: [`--target=${first}`, '--net', '--mount', '--uts', '--pid', '--', command, ...args],
  });
  let pid = 0;
  await waitFor(`${options.name} has entered its machine`, STOP_WITHIN_MS, () => {
    if (!entered.running()) return true;
    pid = childOf(entered.pid);
    return pid !== 0;
  });
  const kill = (signal: NodeJS.Signals) => {
    if (!entered.running()) return;
    send(pid, signal);
    // nsenter stops itself with its child, and would not see the end of it.
    if (signal === 'SIGCONT') entered.kill(signal);
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
function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
