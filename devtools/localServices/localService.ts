/*
 * A local service: one process that tests may freeze, kill and restart on the same port and folder.
 *
 * After `kill`, `restart` starts it again with its data. `stop` is final: it ends the process and removes its temporary
 * folder.
 */
import type { RunningProcess } from './process.ts';

export interface LocalService {
  /** Process id of the current process; changes with each restart. */
  readonly pid: number;
  /** The log since the first start. */
  readonly logFile: string;
  running(): boolean;
  /** Sends a signal, by default SIGKILL; after SIGKILL it waits for the end of the process. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends it if it runs and starts it again; returns when it is ready. */
  restart(): Promise<void>;
  /** Ends it and removes its temporary files. May be called twice. */
  stop(): Promise<void>;
}

/** Starts a service. `start` is called again for each restart; `clean` runs once, at the end. */
export async function startService(
  start: () => Promise<RunningProcess>,
  clean: (wasRunning: boolean) => Promise<void>,
): Promise<LocalService> {
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
