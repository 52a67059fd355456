/*
 * Another subscriber of a runtime, in a process of its own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Neighbour {
  readonly pid: number;
  /** After its first event: nothing else confirms a subscription. */
  isSubscribed(): boolean;
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
  let isSubscribed = false;
  child.stdout.on('data', () => {
    isSubscribed = true;
  });
  return {
    pid: child.pid ?? -1,
    isSubscribed: () => isSubscribed,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
