/*
 * Downtime gaps: stretches before this agent started in which nobody observed its node. An agent that could stop in order has declared
 * its own end, and the gap lasts until this one starts; here is what it could not say.
 */
import { randomUUID } from 'node:crypto';
import { monoNow, readClocks, wallNow } from '../../platform/clock.ts';
import { type GapScope, MAX_OFFSET, type RecordOf } from '../../protocol/record.ts';
import { type Mono, mono, offset, since, type Wall } from '../../protocol/units.ts';

/** What is known of the agents before this one. */
export interface PreviousAgents {
  /** The start of this epoch. */
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

/** Gaps from the last moment that a previous agent observed until now. */
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
