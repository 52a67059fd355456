/*
 * Sets of seqs, as Postgres writes them.
 */

export interface SeqRange {
  readonly from: number;
  /** Inclusive. */
  readonly to: number;
}

export function* seqsOf(ranges: readonly SeqRange[]): Generator<number> {
  for (const { from, to } of ranges) {
    for (let seq = from; seq <= to; seq++) yield seq;
  }
}

export const countSeqs = (ranges: readonly SeqRange[]): number =>
  ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0);

/** Divides seqs into the first `count` of them and the others. */
export function divideSeqs(
  ranges: readonly SeqRange[],
  count: number,
): { readonly within: readonly SeqRange[]; readonly beyond: readonly SeqRange[] } {
  const within: SeqRange[] = [];
  const beyond: SeqRange[] = [];
  let left = count;
  for (const { from, to } of ranges) {
    const end = Math.min(to, from + left - 1);
    if (end >= from) within.push({ from, to: end });
    if (end < to) beyond.push({ from: Math.max(from, end + 1), to });
    left -= Math.max(0, end - from + 1);
  }
  return { within, beyond };
}

/** The seqs of an int4multirange. */
export const seqsIn = (multirange: string): SeqRange[] =>
  Array.from(multirange.matchAll(/\[(\d+),(\d+)\)/g), ([, from, end]) => ({
    from: Number(from),
    to: Number(end) - 1,
  }));

/** The literal of an int4multirange of exactly these seqs, which may come in any order and more than once. */
export function multirange(seqs: Iterable<number>): string {
  const ranges: { from: number; to: number }[] = [];
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && seq <= last.to + 1) last.to = seq;
    else ranges.push({ from: seq, to: seq });
  }
  return `{${ranges.map(({ from, to }) => `[${from},${to}]`).join(',')}}`;
}
