/*
 * Whose inputs are next, where more wait than can be handled: senders take turns, whoever has waited for the longest first.
 *
 * The sender stands in an id, and anybody may write any. A flood under one name delays only that name; one under many names delays others by a
 * turn for each of them, and no sender that is known waits for one that came after it.
 */

/** More than a queue has nodes. Beyond it, those of which nothing waits are forgotten. */
const MAX_SENDERS = 10_000;

export class SenderTurns {
  /** In the order of their turns. */
  readonly #senders = new Set<string>();

  /** Chooses at most this many of these ids. */
  choose(ids: readonly string[], most: number): string[] {
    const waiting = Map.groupBy(ids, senderOf);
    for (const sender of waiting.keys()) this.#senders.add(sender);
    if (this.#senders.size > MAX_SENDERS) this.#forgetAllBut(waiting);
    const order = [...this.#senders].filter((sender) => waiting.has(sender));
    const chosen: string[] = [];
    for (let round = 0; chosen.length < Math.min(most, ids.length); round += 1) {
      for (const sender of order) {
        const id = waiting.get(sender)?.[round];
        if (id === undefined || chosen.length === most) continue;
        chosen.push(id);
        this.#senders.delete(sender);
        this.#senders.add(sender);
      }
    }
    return chosen;
  }

  #forgetAllBut(waiting: ReadonlyMap<string, unknown>): void {
    for (const sender of this.#senders) if (!waiting.has(sender)) this.#senders.delete(sender);
  }
}

const senderOf = (id: string): string => id.slice(0, Math.max(0, id.indexOf('.')));
