/*
 * The figures of the plots, for spreadsheets.
 */
import { csvLine } from '../../../platform/csv.ts';
import type { DayOfFallbacks, MissRate, PoolReadiness } from '../../api.ts';

export const missRatesCsv = (rates: readonly MissRate[]): string =>
  tableOf(rates, {
    cluster: (rate) => rate.cluster,
    runtime_name: (rate) => rate.runtimeName,
    runtime_version: (rate) => rate.runtimeVersion,
    kubelet_version: (rate) => rate.kubeletVersion,
    nodes: (rate) => rate.nodes,
    decided: (rate) => rate.decided,
    missed: (rate) => rate.missed,
    per_million: (rate) => rate.perMillion,
    low_per_million: (rate) => rate.lowPerMillion,
    high_per_million: (rate) => rate.highPerMillion,
  });

export const readinessCsv = (pools: readonly PoolReadiness[]): string =>
  tableOf(pools, {
    cluster: (pool) => pool.cluster,
    pool: (pool) => pool.pool,
    safe: (pool) => pool.safe,
    unsafe: (pool) => pool.unsafe,
    unknown: (pool) => pool.unknown,
    reasons: (pool) => pool.reasons.join('; '),
  });

export const fallbacksCsv = (days: readonly DayOfFallbacks[]): string =>
  tableOf(days, {
    cluster: (day) => day.cluster,
    day: (day) => day.day,
    fallbacks: (day) => day.fallbacks,
    nodes: (day) => day.nodes,
  });

function tableOf<T>(
  rows: readonly T[],
  columns: Readonly<Record<string, (row: T) => string | number | null>>,
): string {
  const values = Object.values(columns);
  return [
    csvLine(Object.keys(columns)),
    ...rows.map((row) => csvLine(values.map((value) => value(row)))),
  ].join('');
}
