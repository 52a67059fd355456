/*
 * The wait of a program that starts while a service that it needs is away.
 */
import { between, type Micros } from '../protocol/units.ts';
import { monoNow } from './clock.ts';
import { type ErrorCode, PlegwatchError } from './errors.ts';
import { sleep } from './sleep.ts';

export interface Waiting {
  /** The errors that mean that a service is away. */
  readonly codes: readonly ErrorCode[];
  /** For how long they are waited out. */
  readonly wait: Micros;
  /** Called before each wait. */
  readonly onWait: (error: PlegwatchError) => void;
  readonly signal?: AbortSignal;
}

const RETRY_MS = 1_000;
const NEVER = new AbortController().signal;

/** Tries until it succeeds. Throws any other error at once, and the last one when the time is up or the signal is aborted. */
export async function untilReachable<T>(
  attempt: () => Promise<T>,
  { codes, wait, onWait, signal = NEVER }: Waiting,
): Promise<T> {
  const start = monoNow();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const isAway = error instanceof PlegwatchError && codes.includes(error.code);
      if (!isAway || signal.aborted || between(start, monoNow()) >= wait) throw error;
      onWait(error);
    }
    await sleep(RETRY_MS, signal);
  }
}
