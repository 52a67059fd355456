/*
 * Stopping everything that was started, the last first. A failure to stop one does not leave the others running.
 */
import { messageOf } from '../../src/platform/errors.ts';
import { programFailed } from './process.ts';

export type Stops = (() => Promise<void> | void)[];

/** Empties `stops`. `cure`: what to do about what could not be stopped. */
export async function stopAll(stops: Stops, cure: string): Promise<void> {
  const failures: unknown[] = [];
  for (const each of stops.splice(0).reverse()) {
    try {
      await each();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 0) return;
  const message = `Not everything could be stopped: ${failures.map(messageOf).join('; ')}.`;
  throw programFailed(message, cure, failures[0]);
}
