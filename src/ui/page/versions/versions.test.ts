import { expect, test } from 'vitest';
import type { MissRate } from '../../api.ts';
import { columnsOf } from './fallbackColumns.ts';
import { fallbacksCsv, missRatesCsv, readinessCsv } from './figuresAsCsv.ts';

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
