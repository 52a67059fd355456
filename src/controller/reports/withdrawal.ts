/*
 * The writes of a controller that cannot work, one object after another. An object that changes meanwhile is left to whoever changed it; one that the API server
 * refuses keeps no other from its turn.
 */
import { isOfObject, type KubeStatusError } from '../../kube/kubeErrors.ts';
import { sleep } from '../../platform/sleep.ts';

const CHANGED_OR_GONE = [409, 404];

export class Withdrawal {
  readonly #intervalMs: number;
  readonly #signal: AbortSignal;
  #written = 0;
  #refusal: KubeStatusError | null = null;

  constructor(intervalMs: number, signal: AbortSignal) {
    this.#intervalMs = intervalMs;
    this.#signal = signal;
  }

  /** Throws an error that is not about this one object, and if the signal is aborted. */
  async write(apply: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    this.#signal.throwIfAborted();
    try {
      await apply(this.#signal);
      this.#written += 1;
    } catch (error) {
      if (!isOfObject(error)) throw error;
      if (!CHANGED_OR_GONE.includes(error.code)) this.#refusal ??= error;
    }
    await sleep(this.#intervalMs, this.#signal);
  }

  /** How many objects were written. Throws if one was refused. */
  end(): number {
    if (this.#refusal !== null) throw this.#refusal;
    return this.#written;
  }
}
