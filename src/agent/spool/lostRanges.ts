/*
 * The lost ranges of an epoch: seqs that were dropped, with the cause. There may be a hundred thousand of them, and they may overlap: what
 * was declared unreadable may be declared again when its segment is dropped.
 */
import * as v from 'valibot';

const position = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

export const LostRangeSchema = v.object({ from: position, to: position, cause: v.string() });
export type LostRange = Readonly<v.InferOutput<typeof LostRangeSchema>>;

interface Stretch {
  from: number;
  to: number;
}

export class LostRanges {
  readonly #declared: LostRange[];
  /** All seqs of the ranges: in rising order, neither overlapping nor adjacent, so that a seq is found by bisection. */
  readonly #covered: Stretch[] = [];

  constructor(declared: readonly LostRange[] = []) {
    this.#declared = [...declared];
    for (const range of declared.toSorted((a, b) => a.from - b.from)) this.#cover(range);
  }

  /** As they were declared. */
  get declared(): readonly LostRange[] {
    return this.#declared;
  }

  /** The highest lost seq; 0 if there is none. */
  get last(): number {
    return this.#covered.at(-1)?.to ?? 0;
  }

  /** Adjacent ranges of one cause are merged. */
  add(range: LostRange): void {
    const before = this.#declared.at(-1);
    if (before?.cause === range.cause && before.to + 1 === range.from) {
      this.#declared[this.#declared.length - 1] = { ...before, to: range.to };
    } else {
      this.#declared.push(range);
    }
    this.#cover(range);
  }

  /** Whether every seq of a range is lost. True for an empty range. */
  include(from: number, to: number): boolean {
    const found = this.#covered[this.#indexOf(from)];
    return from > to || (found !== undefined && found.from <= from && found.to >= to);
  }

  /** The parts of a range that are not lost. */
  without(range: LostRange): LostRange[] {
    const parts: LostRange[] = [];
    let { from } = range;
    for (let i = this.#indexOf(from); from <= range.to; i += 1) {
      const next = this.#covered[i];
      const to = Math.min(range.to, (next?.from ?? Number.POSITIVE_INFINITY) - 1);
      if (from <= to) parts.push({ ...range, from, to });
      from = (next?.to ?? range.to) + 1;
    }
    return parts;
  }

  #cover({ from, to }: Stretch): void {
    const at = this.#indexOf(from - 1);
    const merged = { from, to };
    let end = at;
    for (
      let next = this.#covered[end];
      next !== undefined && next.from <= to + 1;
      next = this.#covered[end]
    ) {
      merged.from = Math.min(merged.from, next.from);
      merged.to = Math.max(merged.to, next.to);
      end += 1;
    }
    this.#covered.splice(at, end - at, merged);
  }

  /** The first covered stretch that ends at this seq or later; their number if none does. */
  #indexOf(seq: number): number {
    let low = 0;
    let high = this.#covered.length;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.#covered[middle]?.to ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
