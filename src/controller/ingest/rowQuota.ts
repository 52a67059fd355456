/*
 * How many rows of a node are stored in a day of UTC, by the database's clock: one for each record, and for each gap, epoch and context that
 * its batches add. Pure.
 *
 * Rows over the quota are counted, in one gap for each epoch and day. An epoch that begins then still gets its row, up to a reserve: an
 * agent that restarts goes on to be known.
 */

/** A node that replaces seven pods a second, all day, needs as many: 16 rows for each pod with one container. */
export const DEFAULT_NODE_ROWS_PER_DAY = 10_000_000;
/** Rows over the quota for epochs and contexts, and for what could not be foreseen of a batch. */
export const RESERVED_ROWS = 10_000;

/** The rows that a batch may add, and those that it adds. */
export class RowBudget {
  readonly #limit: number;
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  get left(): number {
    return Math.max(0, this.#limit - this.#used);
  }

  take(rows: number): void {
    this.#used += rows;
  }
}
