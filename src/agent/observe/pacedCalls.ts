/*
 * Paced calls: one after the other, at most five a second, and a bounded number of them waits. The other side, a runtime or a kubelet, has
 * other work.
 */
const INTERVAL_MS = 200;
const MAX_WAITING = 1_000;

export class PacedCalls<T> {
  readonly #call: (item: T) => Promise<void>;
  /** By key, those that go first and the others. */
  readonly #first = new Map<string, T>();
  readonly #others = new Map<string, T>();
  /** Runs only while a call waits, so that an idle node is not woken up. */
  #timer: NodeJS.Timeout | undefined;
  #calling = false;
  #stopped = false;

  /** `call` must not reject. */
  constructor(call: (item: T) => Promise<void>) {
    this.#call = call;
  }

  /** Queues a call; a key waits only once. Returns false, and drops it, if too many wait. */
  add(key: string, item: T, goesFirst = false): boolean {
    if (this.#stopped || this.#first.size + this.#others.size >= MAX_WAITING) return false;
    (goesFirst ? this.#first : this.#others).set(key, item);
    this.#timer ??= setInterval(() => void this.#callNext(), INTERVAL_MS);
    return true;
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #callNext(): Promise<void> {
    if (this.#calling) return;
    for (const waiting of [this.#first, this.#others]) {
      for (const [key, item] of waiting) {
        waiting.delete(key);
        this.#calling = true;
        await this.#call(item);
        this.#calling = false;
        return;
      }
    }
    this.#stopTimer();
  }
}
