/*
 * The timeline to which a node of the fleet leads.
 */
import type { FleetNode } from '../../api.ts';
import { isLossy } from '../colours.ts';
import { type Colouring, DEFAULT_PERIOD, type NodePlace } from '../place.ts';
import { msOf } from '../text.ts';

/** What a node's misses and completeness are counted in. */
const DAY = { last: 86_400 };
const SILENT_MS = 1_800_000;
const [BEFORE_END_MS, AFTER_END_MS] = [3_300_000, 300_000];

/** The period that the reader's colouring, or a mark, is about; of a silent node the one in which its evidence ends. */
export function placeOfNode(found: FleetNode, now: string, colouring: Colouring): NodePlace {
  const { cluster, node, agent, lastSeen } = found;
  const end = lastSeen === null ? undefined : msOf(lastSeen);
  const isOld = agent !== 'Reporting' && end !== undefined && msOf(now) - end > SILENT_MS;
  const period = isOld
    ? { from: end - BEFORE_END_MS, to: end + AFTER_END_MS }
    : colouring === 'mode' && !isLossy(found)
      ? DEFAULT_PERIOD
      : DAY;
  return { view: 'node', cluster, node, period, only: '' };
}
