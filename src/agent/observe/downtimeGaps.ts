/*
 * Absence: stretches before this agent began in which nobody watched its node, told as gaps that are over.
 */
import { randomUUID } from 'node:crypto';
import { monoNow, wallNow } from '../../platform/clock.ts';
import { type GapScope, MAX_OFFSET, type RecordOf } from '../../protocol/record.ts';
import { type Mono, offset, type Wall } from '../../protocol/units.ts';
import { since } from '../compare/findings.ts';

/** What is known of the agents before. */
export interface Before {
  /** The position that the offsets of this epoch count from. */
  readonly start: Mono;
  /** The last sign of life of the agent before this one. */
  readonly lastAlive: Wall | null;
  /** A spool of somebody else was in its place and was moved aside; what it held is not delivered from here. */
  readonly quarantined?: { readonly lastAlive: Wall | null } | null;
}

/** From the last sign of life of the agent before to now nobody watched this node. */
export function absences(before: Before): RecordOf<'gap'>[] {
  const gaps: RecordOf<'gap'>[] = [];
  if (before.lastAlive !== null) gaps.push(past(before.start, 'agent', 'down', before.lastAlive));
  if (before.quarantined != null)
    gaps.push(past(before.start, 'spool', 'foreign_spool', before.quarantined.lastAlive ?? wallNow()));
  return gaps;
}

/** A gap from a moment on the wall clock to now. */
function past(start: Mono, scope: GapScope, cause: string, from_: Wall): RecordOf<'gap'> {
  const away = Math.max(0, wallNow() - from_);
  const now = monoNow();
  const to = since(start, now);
  const from = offset(Math.max(-MAX_OFFSET, now - start - away));
  return { type: 'gap', t: to, gapId: randomUUID(), scope, cause, from, to };
}
