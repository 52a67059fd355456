/*
 * A started part: one process that tests may freeze, kill and start again on the same port and folder.
 *
 * `stop` is the end of it: the process is gone and its temporary folder is removed. After `kill`, `restart` brings it
 * back with its data.
 */
import type { RunningProcess } from './process.ts';

export interface Service {
  /** Of the present process: another one after each restart. */
  readonly pid: number;
  /** The log of all its lives. */
  readonly logFile: string;
  running(): boolean;
  /** Sends a signal, SIGKILL when not said. Waits for the end where the signal means one (SIGKILL). */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends it in order if it runs, and starts it again; returns when it is ready. */
  restart(): Promise<void>;
  /** Ends it for good and leaves nothing behind. May be called twice. */
  stop(): Promise<void>;
}

/** Keeps a process startable: `start` has to work again and again, `clean` runs once, at the end. */
export async function keepService(
  start: () => Promise<RunningProcess>,
  clean: (wasRunning: boolean) => Promise<void>,
): Promise<Service> {
  let process = await start().catch(async (error: unknown) => {
    await clean(false);
    throw error;
  });
  let stopping: Promise<void> | undefined;
  return {
    get pid() {
      return process.pid;
    },
    get logFile() {
      return process.logFile;
    },
    running: () => process.running(),
    async kill(signal = 'SIGKILL') {
      process.kill(signal);
      if (signal === 'SIGKILL') await process.exited;
    },
    async restart() {
      await process.stop();
      process = await start();
    },
    stop() {
      stopping ??= process.stop().then(() => clean(true));
      return stopping;
    },
  };
}
