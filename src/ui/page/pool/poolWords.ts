/*
 * A pool in words and figures: what its view, its slide and its links say alike.
 */
import type { FleetNode, PoolAnswer, PoolKey, PoolNode } from '../../api.ts';
import type { Verdicts } from '../drawing/verdictBar.tsx';
import { type Grouping, type PoolPlace, placeOfPool } from '../place.ts';
import { count, counted, moment, msOf, share, visible } from '../text.ts';

/** The view of a group of the fleet. Nodes without a pool, or of an unknown version, are those of all clusters. */
export function placeOfGroup([first]: readonly FleetNode[], by: Grouping): PoolPlace | undefined {
  if (first === undefined) return undefined;
  const { cluster, pool, runtimeName, runtimeVersion, kubeletVersion } = first;
  const own = {
    cluster: { cluster },
    pool: pool === null ? {} : { cluster, pool },
    version: { runtimeName, runtimeVersion, kubeletVersion },
  };
  return placeOfPool({ by, ...own[by] });
}

export function poolTitle({
  by,
  cluster,
  pool,
  runtimeName,
  runtimeVersion,
  kubeletVersion,
}: PoolKey): string {
  if (by === 'cluster') return `Cluster ${visible(cluster ?? '')}`;
  const of = cluster === null ? '' : ` of ${visible(cluster)}`;
  if (by === 'pool') return pool === null ? `Nodes without a pool${of}` : `Pool ${visible(pool)}${of}`;
  if (runtimeName === null && kubeletVersion === null) return 'Nodes of an unknown version';
  const runtime = [runtimeName, runtimeVersion].filter(Boolean).join(' ') || 'unknown runtime';
  return visible(`${runtime}, kubelet ${kubeletVersion ?? 'unknown'}`);
}

/** Whose evidence it is, and what is left out. */
export function sourceOfPool({ nodes, leftOut, linesLeftOut, now }: PoolAnswer): string {
  const seen = nodes.filter(({ watched }) => watched !== null).length;
  return [
    `Source: plegwatch, as of ${moment(msOf(now))} UTC; agents on ${count(seen)} of ${counted(nodes.length + (leftOut ?? 0), 'node')}.`,
    ...(leftOut === null ? [] : [`${counted(leftOut, 'node')} were not looked at.`]),
    ...(linesLeftOut === 0
      ? []
      : [`Lines of the ${count(linesLeftOut)} nodes with the shortest relists are left out.`]),
  ].join(' ');
}

export interface PoolFigure {
  readonly name: string;
  readonly value: string;
  readonly detail: string;
  readonly isBad: boolean;
}

/** As much as `plegwatch readiness` asks for. */
const MOSTLY = 0.9;

export function poolFigures({ nodes, watched }: Pick<PoolAnswer, 'nodes' | 'watched'>): PoolFigure[] {
  const mostly = nodes.filter((node) => (node.watched ?? 0) >= MOSTLY).length;
  const never = nodes.filter((node) => (node.watched ?? 0) === 0).length;
  const missed = sum(nodes, (node) => node.missed ?? 0);
  const decided = sum(nodes, (node) => node.decided);
  const fallbacks = sum(nodes, (node) => node.fallbacks);
  const fallen = nodes.filter((node) => node.fallbacks > 0).length;
  const isUnseen = fallbacks === 0 && nodes.every(({ mode }) => mode === 'Unknown');
  const silent = nodes.filter(({ agent }) => agent !== 'Reporting').length;
  return [
    {
      name: 'Nodes',
      value: count(nodes.length),
      detail: silent === 0 ? 'every agent reports now' : `${count(silent)} without a reporting agent now`,
      isBad: false,
    },
    {
      name: 'Watched',
      value: watched === null ? 'nothing' : share(watched),
      detail: `${count(mostly)} for 90 % or more, ${count(nodes.length - mostly - never)} for less, ${count(never)} not at all`,
      isBad: (watched ?? 0) < MOSTLY,
    },
    {
      name: 'Missed events',
      value: decided === 0 ? 'not known' : count(missed),
      detail:
        decided === 0 ? 'no event was due while somebody watched' : `of ${count(decided)} that were due`,
      isBad: missed > 0,
    },
    {
      name: 'Fallbacks',
      value: isUnseen ? 'not known' : count(fallbacks),
      detail: isUnseen
        ? 'the mode of no kubelet was seen'
        : fallbacks === 0
          ? 'none was seen'
          : `of ${counted(fallen, 'kubelet')}`,
      isBad: fallbacks > 0,
    },
    { name: 'PLEG modes', ...modesOf(nodes), isBad: false },
  ];
}

export const verdictsOf = (nodes: readonly PoolNode[]): Verdicts => {
  const count = (verdict: PoolNode['verdict']) => nodes.filter((node) => node.verdict === verdict).length;
  return { unsafe: count('unsafe'), unknown: count('unknown'), safe: count('safe') };
};

/** At the end of the period, the commonest first. */
function modesOf(nodes: readonly PoolNode[]) {
  const [first, ...others] = countsOf(nodes.map(({ mode }) => mode));
  return {
    value: first === undefined ? 'none' : `${count(first[1])} ${visible(first[0])}`,
    detail:
      others.length === 0
        ? 'at the end of the period'
        : others.map(([mode, n]) => `${count(n)} ${visible(mode)}`).join(', '),
  };
}

/** Each value with how often it occurs, the commonest first. */
export function countsOf(values: readonly string[]): [value: string, n: number][] {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

const sum = (nodes: readonly PoolNode[], figure: (node: PoolNode) => number): number =>
  nodes.reduce((total, node) => total + figure(node), 0);
