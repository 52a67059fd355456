/*
 * Work that is repeated until it is stopped, never twice at the same time.
 *
 *   work ── returns a wait ──► waiting ── the wait is over, or wake() ──► work
 *    ▲ └── throws ──► backoff ──┐
 *    └──────────────────────────┘
 */
import { Backoff, type BackoffOptions } from './backoff.ts';
import { sleep } from './sleep.ts';

export interface LoopOptions {
  /** Does the work once. Returns how long to wait before the next time, in milliseconds; `Infinity`: until it is woken. */
  readonly work: (signal: AbortSignal) => Promise<number>;
  /** Called with what `work` threw and the wait before the next try; not once the loop is stopped. */
  readonly onError: (error: unknown, waitMs: number) => void;
  readonly backoff: BackoffOptions;
  /** The least wait after an error, in milliseconds, such as a server's Retry-After. */
  readonly minWaitMs?: (error: unknown) => number;
}

/** Longer than this a Node timer cannot wait. */
const MAX_WAIT_MS = 2 ** 31 - 1;

export class Loop {
  readonly #options: LoopOptions;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.backoff);
  }

  /** Aborted by {@link stop}. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends the wait after a run, also the one after the run under way. A wait after an error is not shortened. */
  wake(): void {
    this.#wake.abort();
  }

  /** Resolves when the run under way has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { work, onError, minWaitMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#wake = new AbortController();
        const waitMs = await work(signal);
        this.#backoff.reset();
        if (waitMs > 0 && !signal.aborted) await sleep(Math.min(waitMs, MAX_WAIT_MS), this.#wake.signal);
      } catch (error) {
        if (signal.aborted) return;
        const waitMs = Math.round(this.#backoff.next(minWaitMs?.(error)));
        onError(error, waitMs);
        await sleep(waitMs, signal);
      }
    }
  }
}
