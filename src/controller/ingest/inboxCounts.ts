/*
 * How many inputs the inboxes have. A node of a Redis Cluster may hang while the others answer: no inbox waits for the count of another one, and
 * none is counted twice at the same time.
 */
import { within } from '../../platform/within.ts';

export class InboxCounts {
  readonly #counting = new Set<number>();
  readonly #waitMs: number;

  /** `waitMs`: how long the counts of a call are waited for. */
  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * Counts the inboxes of these queues and says each count when it is known. Returns the sum of those that were known in time. One that cannot be
   * counted is left out: the depth of its queue shows that.
   */
  async count(
    queues: number,
    countOf: (queue: number) => Promise<number>,
    onCounted: (queue: number, inputs: number) => void,
  ): Promise<number> {
    let sum = 0;
    const counted = Array.from({ length: queues }, async (_, queue) => {
      if (this.#counting.has(queue)) return;
      this.#counting.add(queue);
      const inputs = await countOf(queue).catch(() => null);
      this.#counting.delete(queue);
      if (inputs === null) return;
      sum += inputs;
      onCounted(queue, inputs);
    });
    await within(Promise.all(counted), this.#waitMs);
    return sum;
  }
}
