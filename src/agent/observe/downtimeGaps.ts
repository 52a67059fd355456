/*
 * Downtime gaps: stretches before this agent started in which nobody observed its node.
 */
import { randomUUID } from 'node:crypto';
import { monoNow, wallNow } from '../../platform/clock.ts';
import { type GapScope, MAX_OFFSET, type RecordOf } from '../../protocol/record.ts';
import { type Mono, offset, since, type Wall } from '../../protocol/units.ts';

/** What is known of the agents before this one. */
export interface PreviousAgents {
  /** The start of this epoch. */
  readonly start: Mono;
  /** The last sign of life of the previous agent. */
  readonly lastAlive: Wall | null;
  /** A spool of another node or cluster was found and moved aside; its records are not delivered from here. */
  readonly quarantined?: { readonly lastAlive: Wall | null } | null;
}

/** Gaps from the last sign of life of a previous agent until now. */
export function downtimeGaps({ start, lastAlive, quarantined }: PreviousAgents): RecordOf<'gap'>[] {
  const gaps: RecordOf<'gap'>[] = [];
  if (lastAlive !== null) gaps.push(gapUntilNow(start, 'agent', 'down', lastAlive));
  if (quarantined != null)
    gaps.push(gapUntilNow(start, 'spool', 'foreign_spool', quarantined.lastAlive ?? wallNow()));
  return gaps;
}

function gapUntilNow(start: Mono, scope: GapScope, cause: string, wallFrom: Wall): RecordOf<'gap'> {
  const length = Math.max(0, wallNow() - wallFrom);
  const now = monoNow();
  const to = since(start, now);
  const from = offset(Math.max(-MAX_OFFSET, now - start - length));
  return { type: 'gap', t: to, gapId: randomUUID(), scope, cause, from, to };
}
