/*
 * The rows of the plots, folded and the worst first: clusters that say the same of the same versions, or of pools of one name, are one row. None that
 * is worse than its row is hidden in it.
 */
import type { MissRate, PoolReadiness } from '../../api.ts';
import { counted, visible } from '../text.ts';

/** A row of several clusters. */
type Folded<T extends { readonly cluster: string }> = Omit<T, 'cluster'> & {
  readonly clusters: readonly string[];
};
export type FoldedRate = Folded<MissRate>;
export type FoldedPool = Folded<PoolReadiness>;

/** `3 clusters`, or the name of the only one. */
export const clustersInWords = ({ clusters }: FoldedRate | FoldedPool): string =>
  clusters.length === 1 ? visible(clusters[0] ?? '') : counted(clusters.length, 'cluster');

const MAX_REASONS = 3;

/** By versions, and only clusters whose intervals overlap. */
export function foldedRates(rates: readonly MissRate[], isFolded: boolean): FoldedRate[] {
  const groups = isFolded
    ? groupsOf(rates, ({ runtimeName, runtimeVersion, kubeletVersion }) => [
        runtimeName,
        runtimeVersion,
        kubeletVersion,
      ]).flatMap(alike)
    : rates.map((rate) => [rate]);
  return groups.flatMap(addedRates).toSorted(byRate);
}

/** By name and what the worst node of the pool is. */
export function foldedPools(pools: readonly PoolReadiness[], isFolded: boolean): FoldedPool[] {
  const groups = isFolded
    ? groupsOf(pools, (pool) => [pool.pool, verdictOf(pool)])
    : pools.map((pool) => [pool]);
  return groups.flatMap(addedPools).toSorted(byReadiness);
}

function groupsOf<T>(rows: readonly T[], keyOf: (row: T) => readonly (string | null)[]): T[][] {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const key = JSON.stringify(keyOf(row));
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()];
}

/** From the lowest rate on, a cluster joins those before it while its interval overlaps theirs. */
function alike(rates: readonly MissRate[]): MissRate[][] {
  const unknown = rates.filter(({ perMillion }) => perMillion === null);
  const groups: MissRate[][] = [];
  const known = rates.filter(({ perMillion }) => perMillion !== null);
  for (const rate of known.toSorted((a, b) => (a.perMillion ?? 0) - (b.perMillion ?? 0))) {
    const group = groups.at(-1) ?? [];
    const [sum] = addedRates(group);
    if (sum !== undefined && (rate.lowPerMillion ?? 0) <= (sum.highPerMillion ?? 0)) group.push(rate);
    else groups.push([rate]);
  }
  return [unknown, ...groups];
}

/** None of none. */
function addedRates(rates: readonly MissRate[]): FoldedRate[] {
  const [first] = rates;
  if (first === undefined) return [];
  const { cluster: _, ...row } = first;
  const clusters = rates.map(({ cluster }) => cluster);
  if (rates.length === 1) return [{ ...row, clusters }];
  const sum = (figure: (rate: MissRate) => number) => rates.reduce((all, rate) => all + figure(rate), 0);
  const decided = sum((rate) => rate.decided);
  const missed = sum((rate) => rate.missed);
  const nodes = sum((rate) => rate.nodes);
  return [{ ...row, clusters, nodes, decided, missed, ...perMillionOf(missed, decided) }];
}

/** Wilson's interval with 95 % confidence, as store.wilson_low and store.wilson_high of migrations/0006_questions.sql. */
function perMillionOf(
  hits: number,
  trials: number,
): Pick<MissRate, 'perMillion' | 'lowPerMillion' | 'highPerMillion'> {
  if (trials === 0) return { perMillion: null, lowPerMillion: null, highPerMillion: null };
  const middle = hits + 1.920729;
  const reach = 1.96 * Math.sqrt(Math.max(0, (hits * (trials - hits)) / trials) + 0.960365);
  const bound = (value: number) => Math.min(1, Math.max(0, value / (trials + 3.841459))) * 1e6;
  return {
    perMillion: (hits / trials) * 1e6,
    lowPerMillion: bound(middle - reach),
    highPerMillion: bound(middle + reach),
  };
}

function addedPools(pools: readonly PoolReadiness[]): FoldedPool[] {
  const [first] = pools;
  if (first === undefined) return [];
  const sum = (figure: (pool: PoolReadiness) => number) => pools.reduce((all, pool) => all + figure(pool), 0);
  return [
    {
      pool: first.pool,
      clusters: pools.map(({ cluster }) => cluster),
      safe: sum(({ safe }) => safe),
      unsafe: sum(({ unsafe }) => unsafe),
      unknown: sum(({ unknown }) => unknown),
      reasons: commonest(pools.flatMap(({ reasons }) => reasons)),
    },
  ];
}

/** Reasons that differ in their figures only are one. */
function commonest(reasons: readonly string[]): string[] {
  return groupsOf(reasons, (reason) => [reason.replaceAll(/\d+/g, '#')])
    .toSorted((a, b) => b.length - a.length)
    .flatMap(([reason]) => reason ?? [])
    .slice(0, MAX_REASONS);
}

const verdictOf = ({ unsafe, unknown }: Pick<PoolReadiness, 'unsafe' | 'unknown'>) =>
  unsafe > 0 ? 'unsafe' : unknown > 0 ? 'unknown' : 'safe';

/** First the rates that are proven to miss the most, then those of which nothing is known, then those that missed nothing, the less certain first. */
const byRate = (a: FoldedRate, b: FoldedRate): number =>
  classOf(a) - classOf(b) ||
  (b.lowPerMillion ?? 0) - (a.lowPerMillion ?? 0) ||
  (b.highPerMillion ?? 0) - (a.highPerMillion ?? 0);
const classOf = ({ perMillion, missed }: FoldedRate): number =>
  missed > 0 ? 0 : perMillion === null ? 1 : 2;

const VERDICTS = ['unsafe', 'unknown', 'safe'];
const byReadiness = (a: FoldedPool, b: FoldedPool): number =>
  VERDICTS.indexOf(verdictOf(a)) - VERDICTS.indexOf(verdictOf(b)) ||
  b.unsafe - a.unsafe ||
  b.unknown - a.unknown ||
  b.safe - a.safe;
