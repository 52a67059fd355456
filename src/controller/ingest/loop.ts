/*
 * Something done again and again until it is stopped, never twice at the same time.
 */
import { setTimeout as delay } from 'node:timers/promises';

export interface Loop {
  stop(): Promise<void>;
}

/** Runs `work` now and then so long after each end. `failed` is told what it threw. */
export function startLoop(
  everyMs: number,
  work: () => Promise<void>,
  failed: (error: unknown) => void,
): Loop {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = (async () => {
    while (!signal.aborted) {
      await work().catch(failed);
      // Aborting ends the wait with an error, which is how it is meant.
      await delay(everyMs, undefined, { signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
