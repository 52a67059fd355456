/*
 * Holds stored rows against the heads of a record chain (src/protocol/recordChain.ts). Pure.
 *
 *   stretch   the rows between two heads, or from the beginning of a chain to its first one: what a single comparison proves or refutes. Rows after a stretch
 *             that differs are compared all the same, because each head says what the next stretch begins with
 */
import { type Digests, digestWith, hintOf, NO_DIGESTS } from '../protocol/recordChain.ts';
import type { HeadStatement } from '../protocol/signature.ts';
import { RETENTION_OF, RETENTIONS, type Retention } from '../protocol/storedRecord.ts';
import type { SignedRow } from './signedRows.ts';

export interface Head extends Omit<HeadStatement, 'at'> {
  /** Hints of the last seqs up to that of the head. */
  readonly hints: Uint8Array;
}

export interface Seqs {
  readonly from: number;
  readonly to: number;
}

export interface Stretch extends Seqs {
  readonly retention: Retention;
  /** How many rows it has. */
  readonly rows: number;
  readonly matches: boolean;
  /** Where the first row is that differs, by the hints; null where they do not say. */
  readonly first: Seqs | null;
}

/** `heads`: of one chain, in the order of their seqs. `rows`: from its beginning to its last head. */
export async function compareChain(
  heads: readonly Head[],
  rows: AsyncIterable<SignedRow>,
): Promise<Stretch[]> {
  const walk = new Walk();
  let reached = 0;
  for await (const row of rows) {
    for (let head = heads[reached]; head !== undefined && row.seq > head.seq; head = heads[reached]) {
      walk.end(head);
      reached += 1;
    }
    walk.add(row);
  }
  for (const head of heads.slice(reached)) walk.end(head);
  return walk.stretches;
}

class Walk {
  readonly stretches: Stretch[] = [];
  #digests: Digests = NO_DIGESTS;
  #before: Head | null = null;
  #counts = { events: 0, findings: 0 };
  /** The hints by the rows of the stretch: each holds from its seq on. */
  #hints: { readonly seq: number; readonly hint: number }[] = [{ seq: 0, hint: hintOf(NO_DIGESTS) }];

  add(row: SignedRow): void {
    const retention = RETENTION_OF[row.type];
    this.#digests = { ...this.#digests, [retention]: digestWith(this.#digests[retention], row) };
    this.#counts[retention] += 1;
    this.#hints.push({ seq: row.seq, hint: hintOf(this.#digests) });
  }

  /** Ends a stretch. */
  end(head: Head): void {
    const from = this.#before === null ? head.from : this.#before.seq + 1;
    const isSame = RETENTIONS.every((retention) => this.#digests[retention] === head[retention]);
    const first = isSame ? null : this.#firstDifference(head, from);
    for (const retention of RETENTIONS) {
      const matches = this.#digests[retention] === head[retention];
      const rows = this.#counts[retention];
      this.stretches.push({ from, to: head.seq, retention, rows, matches, first });
    }
    this.#digests = { events: head.events, findings: head.findings };
    this.#counts = { events: 0, findings: 0 };
    this.#hints = [{ seq: head.seq, hint: hintOf(head) }];
    this.#before = head;
  }

  #firstDifference({ seq: to, hints }: Head, from: number): Seqs | null {
    let at = 0;
    const begin = to - hints.length + 1;
    for (let seq = Math.max(begin, from); seq <= to; seq += 1) {
      while ((this.#hints[at + 1]?.seq ?? Number.POSITIVE_INFINITY) <= seq) at += 1;
      if (hints[seq - begin] !== this.#hints[at]?.hint) return { from: seq === begin ? from : seq, to: seq };
    }
    return null;
  }
}

/** The seqs from 1 to an end that no range has. */
export function seqsOutside(ranges: readonly Seqs[], end: number): Seqs[] {
  const outside: Seqs[] = [];
  let next = 1;
  for (const { from, to } of [...ranges].sort((a, b) => a.from - b.from)) {
    if (from > next) outside.push({ from: next, to: from - 1 });
    next = Math.max(next, to + 1);
  }
  if (next <= end) outside.push({ from: next, to: end });
  return outside;
}
