/*
 * A stream whose next value can be seen before it is taken.
 */

export class Lookahead<T> {
  readonly #values: AsyncIterator<T>;
  #next: Promise<IteratorResult<T>> | null = null;

  constructor(values: AsyncIterable<T>) {
    this.#values = values[Symbol.asyncIterator]();
  }

  /** The next value; null at the end. */
  async peek(): Promise<T | null> {
    this.#next ??= this.#values.next();
    const { done, value } = await this.#next;
    return done === true ? null : value;
  }

  async take(): Promise<T | null> {
    const value = await this.peek();
    this.#next = null;
    return value;
  }

  /** Takes the values up to the first one that does not match. */
  async takeWhile(matches: (value: T) => boolean): Promise<T[]> {
    const taken: T[] = [];
    for (;;) {
      const next = await this.peek();
      if (next === null || !matches(next)) return taken;
      taken.push(next);
      this.#next = null;
    }
  }
}
