/*
 * Gaps: stretches that could not be observed, from when they open until they close. At most one of a scope is open.
 */
import type { GapScope, RecordOf } from '../evidence/record.ts';
import { type Mono, offset } from '../evidence/units.ts';

interface OpenGap {
  readonly gap: string;
  readonly cause: string;
  readonly from: Mono;
}

export class Gaps {
  readonly #open = new Map<GapScope, OpenGap>();
  readonly #epochStart: Mono;
  readonly #mintId: () => string;
  readonly #emit: (record: RecordOf<'gap'>) => void;

  constructor(epochStart: Mono, mintId: () => string, emit: (record: RecordOf<'gap'>) => void) {
    this.#epochStart = epochStart;
    this.#mintId = mintId;
    this.#emit = emit;
  }

  /** Opens a gap at `from`. Where one of this scope is open already, it goes on; its first cause stands. */
  open(scope: GapScope, cause: string, from: Mono, now: Mono): void {
    if (this.#open.has(scope)) return;
    const gap = { gap: this.#mintId(), cause, from };
    this.#open.set(scope, gap);
    this.#record(scope, gap, now, null);
  }

  close(scope: GapScope, to: Mono, now: Mono): void {
    const gap = this.#open.get(scope);
    if (gap === undefined) return;
    this.#open.delete(scope);
    this.#record(scope, gap, now, to < gap.from ? gap.from : to);
  }

  /** Ends what is open: from here on it is the next life's to say. */
  closeAll(now: Mono): void {
    for (const scope of [...this.#open.keys()]) this.close(scope, now, now);
  }

  /** A gap that is over already. */
  past(scope: GapScope, cause: string, from: Mono, to: Mono, now: Mono): void {
    this.#record(scope, { gap: this.#mintId(), cause, from }, now, to);
  }

  #record(scope: GapScope, { gap, cause, from }: OpenGap, now: Mono, to: Mono | null): void {
    const at = (position: Mono) => offset(position - this.#epochStart);
    this.#emit({
      kind: 'gap',
      t: at(now),
      gap,
      scope,
      cause,
      from: at(from),
      to: to === null ? null : at(to),
    });
  }
}
