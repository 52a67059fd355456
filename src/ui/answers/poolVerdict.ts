/*
 * Whether Evented PLEG would be safe on a pool: as safe as its worst node, by the rules of `plegwatch readiness`. Nodes that nobody watched for long
 * enough have no verdict, so that a pool with one of them is not safe either.
 */
import type { PoolNode, Readiness } from '../api.ts';

type Judged = Pick<PoolNode, 'verdict' | 'reason'> & { readonly highPerMillion: number | null };

export interface PoolVerdict {
  readonly verdict: Readiness;
  readonly sentence: string;
}

/** `leftOut`: how many nodes of the pool are not among these. */
export function poolVerdict(nodes: readonly Judged[], leftOut: number): PoolVerdict {
  const all = nodes.length + leftOut;
  const of = (verdict: Readiness) => nodes.filter((node) => node.verdict === verdict);
  const unsafe = of('unsafe');
  if (unsafe.length > 0) {
    const sentence = `Not safe for Evented PLEG: ${unsafe.length} of ${leftOut === 0 ? counted(all) : `the ${counted(nodes.length)} that were looked at`} ${unsafe.length === 1 ? 'is' : 'are'} unsafe, ${mostly(unsafe)}.`;
    return { verdict: 'unsafe', sentence };
  }
  const unknown = of('unknown');
  if (unknown.length + leftOut > 0) {
    const why = [
      ...(unknown.length === 0 ? [] : [mostly(unknown)]),
      ...(leftOut === 0 ? [] : [`${leftOut} because they were not looked at`]),
    ];
    const sentence = `Nobody knows whether it is safe for Evented PLEG: too little is known of ${unknown.length + leftOut} of ${counted(all)}, ${why.join(', ')}.`;
    return { verdict: 'unknown', sentence };
  }
  if (all === 0) return { verdict: 'unknown', sentence: 'Nobody knows whether it is safe: it has no node.' };
  const most = Math.round(Math.max(...nodes.map(({ highPerMillion }) => highPerMillion ?? 0)));
  const sentence = `Safe for Evented PLEG: on ${all === 1 ? 'its only node' : `each of ${counted(all)}`} at most ${most} of a million events are missed, with 95 % confidence.`;
  return { verdict: 'safe', sentence };
}

/** Why most of them are, in the words of the first. Two reasons that differ in their figures are one. */
function mostly(nodes: readonly Judged[]): string {
  const kinds = Map.groupBy(nodes, ({ reason }) => reason.replaceAll(/\d+/g, '#'));
  const [group = []] = [...kinds.values()].sort((a, b) => b.length - a.length);
  const reason = group[0]?.reason ?? '';
  const similar = group.some((node) => node.reason !== reason) ? ', or about as much' : '';
  return `${group.length === nodes.length ? '' : `${group.length} of them `}because ${reason}${similar}`;
}

const counted = (n: number): string => `${n} node${n === 1 ? '' : 's'}`;
