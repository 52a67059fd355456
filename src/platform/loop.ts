/*
 * Something done again and again until it is stopped, never twice at the same time.
 */
import { sleep } from './sleep.ts';

export interface Loop {
  stop(): Promise<void>;
}

const AFTER_FAILURE_MS = 1_000;

/** Runs `work` now and then so long after each end, sooner after a failure. `failed` is told what it threw. */
export function startLoop(
  everyMs: number,
  work: () => Promise<void>,
  failed: (error: unknown) => void,
): Loop {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = (async () => {
    while (!signal.aborted) {
      const waitMs = await work().then(
        () => everyMs,
        (error: unknown) => {
          failed(error);
          return Math.min(everyMs, AFTER_FAILURE_MS);
        },
      );
      await sleep(waitMs, signal);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
