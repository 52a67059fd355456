/*
 * The timeline to which a node of the fleet leads.
 */
import type { FleetNode } from '../../api.ts';
import { isLossy } from '../colours.ts';
import { type Colouring, DEFAULT_PERIOD, type NodePlace, type Period } from '../place.ts';
import { msOf } from '../text.ts';

/** The period of a node's misses and completeness. */
const DAY = { last: 86_400 };
const JUST_NOW_MS = 1_800_000;
const [BEFORE_END_MS, AFTER_END_MS] = [3_300_000, 300_000];

/** The period that the reader's colouring, or a mark, is about; of a silent node the one in which its evidence ends. */
export function placeOfNode(found: FleetNode, now: string, colouring: Colouring): NodePlace {
  const { cluster, node, agent, lastSeen } = found;
  const usual = colouring === 'mode' && !isLossy(found) ? DEFAULT_PERIOD : DAY;
  const period = agent === 'Reporting' ? usual : (endPeriod(lastSeen, now) ?? usual);
  return { view: 'node', cluster, node, period, only: '' };
}

/** The period in which something ended; undefined if that was just now, or nobody knows when. */
export function endPeriod(end: string | null, now: string): Period | undefined {
  if (end === null || msOf(now) - msOf(end) <= JUST_NOW_MS) return undefined;
  return { from: msOf(end) - BEFORE_END_MS, to: msOf(end) + AFTER_END_MS };
}
