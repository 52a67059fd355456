/*
 * A node in one sentence, for the line above the map and for screen readers.
 */
import type { FleetNode } from '../../api.ts';
import type { Colouring } from '../place.ts';
import { count, share, visible } from '../text.ts';

const AGENTS: Readonly<Record<string, string>> = {
  AgentSilent: 'its agent is silent',
  NeverSeen: 'it never had an agent',
  NotReportedYet: 'its agent has not reported yet',
};

export function nodeInWords(node: FleetNode, colouring: Colouring): string {
  const name = visible(node.node);
  const silent = node.agent === 'Reporting' ? undefined : (AGENTS[node.agent] ?? 'no agent reports');
  if (silent !== undefined) return `${name}: ${silent}`;
  const facts = {
    mode: `${visible(node.mode)}${node.modeReason ? ` (${visible(node.modeReason)})` : ''}`,
    misses: missedInWords(node.missed24h),
    completeness: completenessInWords(node.completeness24h),
  };
  const order: readonly Colouring[] = [
    colouring,
    ...(['mode', 'misses', 'completeness'] as const).filter((each) => each !== colouring),
  ];
  return `${name}: ${order.map((each) => facts[each]).join(', ')}`;
}

const missedInWords = (missed: number | null): string => {
  if (missed === null) return 'misses not observable';
  return missed === 0 ? 'no event missed in 24 hours' : `${count(missed)} missed in 24 hours`;
};

const completenessInWords = (part: number | null): string =>
  part === null ? 'nothing watched' : `${share(part)} watched`;
