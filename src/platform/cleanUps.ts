/*
 * The end of a program: it stops and closes what it started, the latest first.
 */
import { errorFields } from './errors.ts';
import type { Logger } from './log.ts';

export type CleanUp = () => Promise<void> | void;

/** Runs all, in the reverse order. One that fails is logged, and keeps none of the others from running. */
export async function runCleanUps(cleanUps: readonly CleanUp[], log: Pick<Logger, 'error'>): Promise<void> {
  for (const cleanUp of cleanUps.toReversed()) {
    try {
      await cleanUp();
    } catch (error) {
      log.error(errorFields(error), 'a part could not be stopped');
    }
  }
}
