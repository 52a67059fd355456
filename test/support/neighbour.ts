/*
 * Another subscriber of a runtime, in a process of its own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Neighbour {
  readonly pid: number;
  /** Resolves at its first event: nothing else confirms a subscription. */
  readonly subscribed: Promise<unknown>;
  /** Also ends a frozen one. */
  stop(): Promise<void>;
}

export function startNeighbour(socket: string): Neighbour {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('./neighbourMain.ts', import.meta.url)), socket],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  const subscribed = once(child.stdout, 'data');
  child.stdout.resume();
  return {
    pid: child.pid ?? -1,
    subscribed,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
