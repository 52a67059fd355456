/*
 * Permits: a fixed number of callers may do something at the same time; the others wait in order.
 */
export class Permits {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Returns what gives the permit back; it may be called more than once. */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    };
  }
}

/** Works on at most `limit` items at a time. After an error it starts no more, waits for those under way, and throws the first error. */
export async function forEachConcurrent<T>(
  limit: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = [...items];
  const worker = async () => {
    try {
      for (let item = remaining.shift(); item !== undefined; item = remaining.shift()) await work(item);
    } catch (error) {
      remaining.length = 0;
      throw error;
    }
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, worker));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
