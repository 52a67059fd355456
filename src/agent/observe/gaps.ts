/*
 * Gaps: stretches that could not be observed, from when they open until they close. At most one of a scope is open; beside it
 * there may be holes: moments of which something is lost, in what is otherwise observed.
 */
import type { GapScope, RecordOf } from '../../protocol/record.ts';
import { type Mono, offset } from '../../protocol/units.ts';

interface OpenGap {
  readonly gap: string;
  readonly cause: string;
  readonly from: Mono;
}

/** One that may go on. What is told of it is a stretch behind at most. */
interface Hole extends OpenGap {
  readonly scope: GapScope;
  readonly to: Mono;
  /** Whether it went on since it was told. */
  readonly untold: boolean;
  /** Whether it went on since the last stretch began. */
  readonly fresh: boolean;
}

export class Gaps {
  readonly #holes = new Map<string, Hole>();
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

  /**
   * Something is lost of the time from `from` to `to`. A runtime may make holes as fast as it can speak, so those of one
   * cause are one gap, until a whole stretch was without: told at once, and again where it went on.
   */
  hole(scope: GapScope, cause: string, from: Mono, to: Mono, now: Mono): void {
    const key = `${scope} ${cause}`;
    const known = this.#holes.get(key);
    const hole = known ?? { scope, gap: this.#mintId(), cause, from };
    if (known === undefined) this.#record(scope, hole, now, to);
    this.#holes.set(key, { ...hole, to, untold: known !== undefined, fresh: true });
  }

  /** A stretch ends here and the next begins: holes that did not go on in it are over. */
  stretch(now: Mono): void {
    for (const [key, hole] of this.#holes) {
      this.#tell(hole, now);
      if (hole.fresh) this.#holes.set(key, { ...hole, untold: false, fresh: false });
      else this.#holes.delete(key);
    }
  }

  /** What was observed ends here, and every hole in it. */
  endHoles(now: Mono): void {
    for (const hole of this.#holes.values()) this.#tell(hole, now);
    this.#holes.clear();
  }

  #tell(hole: Hole, now: Mono): void {
    if (hole.untold) this.#record(hole.scope, hole, now, hole.to);
  }

  /** Ends what is open: from here on it is the next life's to say. */
  closeAll(now: Mono): void {
    this.endHoles(now);
    for (const scope of [...this.#open.keys()]) this.close(scope, now, now);
  }

  /** A gap that is over already. */
  past(scope: GapScope, cause: string, from: Mono, to: Mono, now: Mono): void {
    this.#record(scope, { gap: this.#mintId(), cause, from }, now, to);
  }

  #record(scope: GapScope, { gap, cause, from }: OpenGap, now: Mono, to: Mono | null): void {
    const at = (position: Mono) => offset(position - this.#epochStart);
    this.#emit({
      type: 'gap',
      t: at(now),
      gapId: gap,
      scope,
      cause,
      from: at(from),
      to: to === null ? null : at(to),
    });
  }
}
