import { setTimeout as delay } from 'node:timers/promises';

/** Waits `ms`, or until the signal is aborted. Never throws: callers check the signal. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal }).catch(() => undefined);
}
