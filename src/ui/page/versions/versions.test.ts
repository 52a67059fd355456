import { expect, test } from 'vitest';
import type { MissRate } from '../../api.ts';
import { columnsOf } from '../fallbacks/fallbackColumns.ts';
import { fallbacksCsv, missRatesCsv, readinessCsv } from './figuresAsCsv.ts';
import { foldedPools, foldedRates } from './folded.ts';

const at = (time: string) => Date.parse(`2026-11-${time}Z`);

test('each day of the period has a column, and the clusters of a day are added', () => {
  const days = ['east', 'west'].map((cluster) => ({ cluster, day: '2026-11-21', fallbacks: 2, nodes: 1 }));
  const columns = columnsOf(days, at('20T12:00:00'), at('22T00:00:01'));
  expect(columns.map(({ fallbacks, nodes }) => [fallbacks, nodes])).toEqual([
    [0, 0],
    [4, 2],
    [0, 0],
  ]);
});

test('a period that ends at midnight has no column of the day that begins then', () => {
  expect(columnsOf([], at('20T00:00:00'), at('21T00:00:00'))).toHaveLength(1);
});

const rate: MissRate = {
  ...{ cluster: 'east', runtimeName: 'containerd', runtimeVersion: '2.0.5', kubeletVersion: null, nodes: 3 },
  ...{ decided: 1000, missed: 1, perMillion: 1000, lowPerMillion: 176.5, highPerMillion: null },
};

test('the file of a plot has the names of the columns as in SQL, and nothing where a figure is unknown', () => {
  expect(missRatesCsv([rate]).split('\n')).toEqual([
    'cluster,runtime_name,runtime_version,kubelet_version,nodes,decided,missed,per_million,low_per_million,high_per_million',
    'east,containerd,2.0.5,,3,1000,1,1000,176.5,',
    '',
  ]);
  expect(fallbacksCsv([])).toBe('cluster,day,fallbacks,nodes\n');
});

test('a name that a spreadsheet would run is text in the file', () => {
  const pool = { cluster: 'east', pool: '=cmd()', safe: 0, unsafe: 1, unknown: 0, reasons: ['a, b', 'c'] };
  expect(readinessCsv([pool]).split('\n')[1]).toBe(`east,'=cmd(),0,1,0,"a, b; c"`);
});

test('why the nodes of a pool are not safe is said once, however the figures of its nodes differ', () => {
  const reasons = [
    'at least 190 of a million events are missed',
    'at least 197 of a million events are missed',
  ];
  const pool = { cluster: 'east', pool: 'a', safe: 0, unsafe: 2, unknown: 0, reasons };
  expect(foldedPools([pool], false)[0]?.reasons).toEqual(reasons.slice(0, 1));
});

const rateOf = (cluster: string, missed: number, decided: number): MissRate => ({
  ...{ ...rate, cluster, missed, decided, kubeletVersion: 'v1.35.4' },
  ...{ perMillion: (missed / decided) * 1e6, lowPerMillion: null, highPerMillion: null },
});
const known = (cluster: string, missed: number, decided: number, low: number, high: number): MissRate => ({
  ...rateOf(cluster, missed, decided),
  ...{ lowPerMillion: low, highPerMillion: high },
});

test('clusters with the same versions are one row with what they add up to, and its interval is that of SQL', () => {
  const rates = [known('a', 1, 1000, 176, 5637), known('b', 3, 2000, 510, 4400)];
  const [row, ...others] = foldedRates(rates, true);
  expect(others).toEqual([]);
  expect(row).toMatchObject({ clusters: ['a', 'b'], nodes: 6, decided: 3000, missed: 4 });
  // SELECT 1e6 * store.wilson_low(4, 3000), 1e6 * store.wilson_high(4, 3000)
  expect(row?.perMillion).toBeCloseTo(1333.33, 1);
  expect(row?.lowPerMillion).toBeCloseTo(518.5988, 3);
  expect(row?.highPerMillion).toBeCloseTo(3423.5061, 3);
  expect(foldedRates(rates, false)).toHaveLength(2);
});

test('a cluster that misses more than others with the same versions stays a row of its own, above them', () => {
  const quiet = ['a', 'b', 'c'].map((cluster) => known(cluster, 0, 100_000, 0, 38));
  const rows = foldedRates([...quiet, known('lossy', 500, 1000, 469_000, 531_000)], true);
  expect(rows.map(({ clusters }) => clusters)).toEqual([['lossy'], ['a', 'b', 'c']]);
});

test('versions of which nothing could be observed are below those that miss events, and above those that miss none', () => {
  const versions = [
    { ...known('a', 0, 1000, 0, 3826), runtimeVersion: 'none missed' },
    { ...rateOf('a', 0, 0), perMillion: null, runtimeVersion: 'not observed' },
    { ...known('a', 1, 1e6, 0.2, 5.7), runtimeVersion: 'few missed' },
    { ...known('a', 9, 1000, 4742, 17_021), runtimeVersion: 'many missed' },
  ];
  expect(foldedRates(versions, true).map(({ runtimeVersion }) => runtimeVersion)).toEqual([
    'many missed',
    'few missed',
    'not observed',
    'none missed',
  ]);
});

test('pools of one name are one row where their worst nodes are alike, and unsafe ones are first', () => {
  const pool = (
    cluster: string,
    name: string | null,
    nodes: readonly [number, number, number],
    why: string[],
  ) => ({
    ...{ cluster, pool: name, safe: nodes[0], unsafe: nodes[1], unknown: nodes[2], reasons: why },
  });
  const pools = [
    pool('a', 'general', [9, 0, 0], []),
    pool('b', 'general', [7, 0, 0], []),
    pool('c', 'general', [5, 2, 0], ['it fell back', 'it fell back twice']),
    pool('d', 'general', [5, 1, 0], ['it fell back']),
    pool('a', null, [0, 0, 3], ['no agent reported']),
  ];
  expect(foldedPools(pools, true)).toEqual([
    {
      ...{ pool: 'general', clusters: ['c', 'd'], safe: 10, unsafe: 3, unknown: 0 },
      reasons: ['it fell back', 'it fell back twice'],
    },
    { pool: null, clusters: ['a'], safe: 0, unsafe: 0, unknown: 3, reasons: ['no agent reported'] },
    { pool: 'general', clusters: ['a', 'b'], safe: 16, unsafe: 0, unknown: 0, reasons: [] },
  ]);
});
