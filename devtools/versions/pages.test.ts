import { expect, test } from 'vitest';
import { chartFor, containerdRuns, leastKubernetes, matrix, situations } from './pages.ts';
import { type PairRun, readResults } from './results.ts';

const row = (...cells: readonly string[]): string => `|${cells.join('|')}|\n`;

const runOf = (kubelet: string, containerd: string, passed = true): PairRun => ({
  scenario: 'pair',
  kubelet,
  containerd,
  versions: { kubelet: [`${kubelet}.2`], containerd: [`${containerd}.9`] },
  digests: { kubelet: [], containerd: [] },
  date: '2026-11-25',
  seconds: 1,
  passed,
  situations: [{ name: 'gate on', said: 'Evented', since: null, truth: 'one stream' }],
});

test('a pair that was not run says so, one that failed too, and one that nobody recommends is empty', () => {
  const text = matrix([runOf('1.36', '2.2'), runOf('1.37', '2.3', false)], '1.28', row);
  expect(text).toContain('|1.36.2||not run|2026-11-25|not run|not run|');
  expect(text).toContain('|1.37.2||||**failed** 2026-11-25|not run|');
});

test('a pair that was run with other versions than the table names says with which', () => {
  const older = runOf('1.36', '2.4');
  const later = runOf('1.37', '2.4');
  const runs = [older, { ...later, versions: { ...later.versions, containerd: ['2.4.10'] } }];
  const text = matrix(runs, '1.28', row);
  expect(text).toContain('|1.36.2||not run|not run|not run|2026-11-25|');
  expect(text).toContain('|1.37.2||||not run|2026-11-25 (1.37.2 with 2.4.10)|');
});

test('the reports of plegwatch are listed with the pairs that passed, and with no other', () => {
  const runs = [runOf('1.36', '2.2'), runOf('1.36', '2.3'), runOf('1.37', '2.4', false)];
  const text = situations(runs, row);
  expect(text).toContain('Kubelets with containerds: 1.36.2 with 2.2.9, 2.3.9.');
  expect(text).toContain('|gate on|Evented: all|\n');
});

test('a result of only some pairs is listed with those, and a kubelet with all of its pairs by its version alone', () => {
  const churn = (said: string, run: PairRun): PairRun => ({
    ...run,
    situations: [{ name: 'churn', said, since: null, truth: 'a drop' }],
  });
  const runs = [
    churn('missed', runOf('1.36', '2.2')),
    churn('nothing', runOf('1.36', '2.3')),
    churn('missed', runOf('1.37', '2.4')),
  ];
  expect(situations(runs, row)).toContain(
    '|churn|missed: 1.36.2 with 2.2.9; 1.37.2<br>nothing: 1.36.2 with 2.3.9|\n',
  );
});

test('the chart is for Kubernetes from the lowest version that passed, and from that which its templates need', () => {
  expect(leastKubernetes([runOf('1.33', '2.1'), runOf('1.30', '2.1', false)], '1.28')).toBe('1.33');
  expect(leastKubernetes([runOf('1.9', '2.1')], '1.28')).toBe('1.28');
  expect(() => leastKubernetes([], '1.28')).toThrow('make versions');
});

test('chart and README name the same version of Kubernetes', () => {
  expect(chartFor("kubeVersion: '>=1.20.0-0'\n", '1.33')).toBe("kubeVersion: '>=1.33.0-0'\n");
  expect(matrix([runOf('1.36', '2.2')], '1.33', row)).toContain('Kubernetes 1.33 or later');
});

test('the profiles of containerd are verified by those that passed with any kubelet, each listed once', () => {
  const runs = [
    runOf('1.36', '2.10'),
    runOf('1.36', '2.4', false),
    runOf('1.33', '2.9'),
    runOf('1.30', '2.9'),
  ];
  expect([...containerdRuns(runs).matchAll(/version: '(.*?)'/g)].map(([, version]) => version)).toEqual([
    '2.9.9',
    '2.10.9',
  ]);
});

test('the result file names the versions, the digests and the date of every run', () => {
  for (const { versions, digests, date } of readResults()) {
    expect(versions.kubelet.length).toBe(digests.kubelet.length);
    expect(versions.containerd.length).toBe(digests.containerd.length);
    expect(date).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  }
});
