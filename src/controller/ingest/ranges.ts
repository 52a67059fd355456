/*
 * Ranges of seqs, as Postgres writes them.
 */

export interface Range {
  readonly from: number;
  /** Inclusive. */
  readonly to: number;
}

/** Every seq of some ranges, in their order. */
export function* seqsOf(ranges: readonly Range[]): Generator<number> {
  for (const { from, to } of ranges) {
    for (let seq = from; seq <= to; seq++) yield seq;
  }
}

/** The literal of an int4multirange that holds exactly these seqs, which may come in any order and more than once. */
export function multirange(seqs: Iterable<number>): string {
  const runs: { from: number; to: number }[] = [];
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last !== undefined && seq <= last.to + 1) last.to = seq;
    else runs.push({ from: seq, to: seq });
  }
  return `{${runs.map(({ from, to }) => `[${from},${to}]`).join(',')}}`;
}
