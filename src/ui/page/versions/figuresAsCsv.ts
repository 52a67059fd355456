/*
 * The figures of the plots, for spreadsheets.
 */
import { csvLine } from '../../../platform/csv.ts';
import type { DayOfFallbacks, MissRate, PoolReadiness } from '../../api.ts';

export const missRatesCsv = (rates: readonly MissRate[]): string =>
  tableOf(rates, [
    'cluster',
    'runtimeName',
    'runtimeVersion',
    'kubeletVersion',
    'nodes',
    'decided',
    'missed',
    'perMillion',
    'lowPerMillion',
    'highPerMillion',
  ]);

export const readinessCsv = (pools: readonly PoolReadiness[]): string =>
  tableOf(
    pools.map((pool) => ({ ...pool, reasons: pool.reasons.join('; ') })),
    ['cluster', 'pool', 'safe', 'unsafe', 'unknown', 'reasons'],
  );

export const fallbacksCsv = (days: readonly DayOfFallbacks[]): string =>
  tableOf(days, ['cluster', 'day', 'fallbacks', 'nodes']);

/** The names of the columns are those of SQL. */
export function tableOf<K extends string>(
  rows: readonly Readonly<Record<K, string | number | null>>[],
  columns: readonly K[],
): string {
  const names = columns.map((column) => column.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  return [names, ...rows.map((row) => columns.map((column) => row[column]))].map(csvLine).join('');
}
