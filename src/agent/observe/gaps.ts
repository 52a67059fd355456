/*
 * Gaps: stretches of time that could not be observed. At most one gap of a scope is open. Beside it there may be losses: moments in
 * which something was lost although observation went on. Downtime gaps are from before this agent.
 */
import { randomUUID } from 'node:crypto';
import { monoNow, readClocks, wallNow } from '../../platform/clock.ts';
import { type GapScope, MAX_OFFSET, type RecordOf } from '../../protocol/record.ts';
import { type Mono, mono, offset, since, type Wall } from '../../protocol/units.ts';

interface OpenGap {
  readonly gapId: string;
  readonly cause: string;
  readonly from: Mono;
}

/** A loss that may still grow. Its record is at most one interval behind. */
interface Loss extends OpenGap {
  readonly scope: GapScope;
  readonly to: Mono;
  /** It grew since it was last recorded. */
  readonly unrecorded: boolean;
  /** It grew in the current interval. */
  readonly growing: boolean;
}

export class Gaps {
  readonly #losses = new Map<string, Loss>();
  readonly #open = new Map<GapScope, OpenGap>();
  readonly #epochStart: Mono;
  readonly #mintId: () => string;
  readonly #report: (record: RecordOf<'gap'>) => void;

  constructor(epochStart: Mono, mintId: () => string, report: (record: RecordOf<'gap'>) => void) {
    this.#epochStart = epochStart;
    this.#mintId = mintId;
    this.#report = report;
  }

  isOpen(scope: GapScope): boolean {
    return this.#open.has(scope);
  }

  /** Opens a gap at `from`. If one of this scope is open already, that one continues with its first cause. */
  open(scope: GapScope, cause: string, from: Mono, now: Mono): void {
    if (this.#open.has(scope)) return;
    const gap = { gapId: this.#mintId(), cause, from };
    this.#open.set(scope, gap);
    this.#record(scope, gap, now, null);
  }

  close(scope: GapScope, to: Mono, now: Mono): void {
    const gap = this.#open.get(scope);
    if (gap === undefined) return;
    this.#open.delete(scope);
    this.#record(scope, gap, now, to < gap.from ? gap.from : to);
  }

  recordClosed(scope: GapScope, cause: string, from: Mono, to: Mono, now: Mono): void {
    this.#record(scope, { gapId: this.#mintId(), cause, from }, now, to);
  }

  /**
   * Something was lost between `from` and `to`. A runtime can cause losses as fast as it sends, so losses of one cause are one gap
   * until an interval passes without any. It is recorded at once, and again at the end of each interval in which it grew.
   */
  addLoss(scope: GapScope, cause: string, from: Mono, to: Mono, now: Mono): void {
    const key = `${scope} ${cause}`;
    const known = this.#losses.get(key);
    const loss = known ?? { scope, gapId: this.#mintId(), cause, from };
    if (known === undefined) this.#record(scope, loss, now, to);
    this.#losses.set(key, { ...loss, to, unrecorded: known !== undefined, growing: true });
  }

  /** Ends an interval, and with it the losses that did not grow in it. */
  endLossInterval(now: Mono): void {
    for (const [key, loss] of this.#losses) {
      this.#recordGrowth(loss, now);
      if (loss.growing) this.#losses.set(key, { ...loss, unrecorded: false, growing: false });
      else this.#losses.delete(key);
    }
  }

  endLosses(now: Mono): void {
    for (const loss of this.#losses.values()) this.#recordGrowth(loss, now);
    this.#losses.clear();
  }

  /**
   * The epoch ends: closes everything and opens a last gap, from the last moment that was observed. Nobody may ever come back to close
   * it, so it lasts until the next incarnation starts.
   */
  stop(cause: 'stopped' | 'suspended', observedUntil: Mono, now: Mono): void {
    this.endLosses(now);
    for (const scope of [...this.#open.keys()]) this.close(scope, now, now);
    this.open('agent', cause, observedUntil, now);
  }

  #recordGrowth(loss: Loss, now: Mono): void {
    if (loss.unrecorded) this.#record(loss.scope, loss, now, loss.to);
  }

  #record(scope: GapScope, { gapId, cause, from }: OpenGap, now: Mono, to: Mono | null): void {
    const at = (position: Mono) => offset(position - this.#epochStart);
    this.#report({
      type: 'gap',
      t: at(now),
      gapId,
      scope,
      cause,
      from: at(from),
      to: to === null ? null : at(to),
    });
  }
}

/** The known facts of the agents before this one. */
export interface PreviousAgents {
  readonly start: Mono;
  /** The last moment that the previous agent observed; null if there was none, or if it has recorded its own end. */
  readonly lastObserved: {
    /** Null on another boot: only the wall clock connects the two. */
    readonly mono: Mono | null;
    readonly wall: Wall;
    readonly cause: string;
  } | null;
  /** A spool of another node or cluster was found and moved aside; its records are not delivered from here. */
  readonly quarantined?: { readonly lastAlive: Wall | null } | null;
}

/**
 * Gaps from the last moment that a previous agent observed until now. One that could stop in order has declared its own end, and that gap lasts
 * until this one starts; here is what it could not say.
 */
export function downtimeGaps({ start, lastObserved, quarantined }: PreviousAgents): RecordOf<'gap'>[] {
  const gaps: RecordOf<'gap'>[] = [];
  if (lastObserved !== null) {
    const { mono: at, wall, cause } = lastObserved;
    gaps.push(gapUntilNow(start, 'agent', cause, at ?? onThisBoot(wall)));
  }
  if (quarantined != null)
    gaps.push(gapUntilNow(start, 'spool', 'foreign_spool', onThisBoot(quarantined.lastAlive ?? wallNow())));
  return gaps;
}

function onThisBoot(at: Wall): Mono {
  const { mono: now, wall } = readClocks();
  return mono(now - Math.max(0, wall - at));
}

function gapUntilNow(start: Mono, scope: GapScope, cause: string, from: Mono): RecordOf<'gap'> {
  const to = since(start, monoNow());
  const earliest = offset(Math.max(-MAX_OFFSET, since(start, from)));
  return { type: 'gap', t: to, gapId: randomUUID(), scope, cause, from: earliest, to };
}
