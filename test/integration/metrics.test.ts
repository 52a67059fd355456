/*
 * The figures of the built programs at /metrics: what the reference promises, from the start, and the figures of an outage.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { dashboards } from '../support/dashboards.ts';
import { documentedMetrics } from '../support/documentedMetrics.ts';
import { needs } from '../support/needs.ts';
import { isServed, selectorsOf } from '../support/selectors.ts';
import { answerOf, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

let system: System;
let runtime: SimulatedRuntime;
let agent: LocalPlegwatch;
let controller: LocalPlegwatch;

needs(
  'kube-apiserver',
  'etcd',
  'redis-server',
  'postgres',
)('a running agent and controller', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    await system.addNode('node-a');
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: 1 });
    agent = await system.agent('node-a', system.folder('cri.sock'));
  });
  afterAll(async () => {
    await system?.stop();
    await runtime?.stop();
  });

  test('the age of the oldest unacknowledged record grows until a controller stores it', async () => {
    await waitFor('the oldest record is seconds old', async () => {
      const age = (await metric(agent, 'plegwatch_oldest_unacked_age_seconds')) ?? 0;
      return age > 2 ? true : undefined;
    });
    expect(await metric(agent, 'plegwatch_spool_unacked_bytes')).toBeGreaterThan(0);
    const started = Date.now() / 1000;
    controller = await system.controller();
    await waitFor('everything is acknowledged', async () =>
      (await metric(agent, 'plegwatch_oldest_unacked_age_seconds')) === 0 ? true : undefined,
    );
    expect(await metric(controller, 'plegwatch_last_commit_timestamp_seconds')).toBeGreaterThan(started);
    expect(await metric(agent, 'plegwatch_spool_max_bytes')).toBe(256 * 1024 * 1024);
    expect(await metric(agent, 'plegwatch_spool_failing')).toBe(0);
  });

  test('every documented metric is served with its labels, and no other', async () => {
    await waitFor('the nodes are counted', async () =>
      (await metric(controller, 'plegwatch_nodes_by_agent{reason="Reporting"}')) === 1 ? true : undefined,
    );
    await waitFor('the figures are read', () =>
      metric(controller, 'plegwatch_maintenance_last_success_timestamp_seconds'),
    );
    await waitFor('it says that signatures are not required', async () =>
      (await metric(controller, 'plegwatch_signatures_required')) === 0 ? true : undefined,
    );
    for (const [program, part] of [
      [agent, 'Agent'],
      [controller, 'Controller'],
    ] as const) {
      const served = servedMetrics((await answerOf(program, '/metrics'))?.body ?? '');
      const documented = documentedMetrics(part).map(({ name, labels, type }) => [
        name,
        `${type} {${labels.toSorted().join(',')}}`,
      ]);
      expect(served).toEqual(Object.fromEntries(documented));
    }
  });

  test('every series that an alert or a dashboard asks for is served', async () => {
    const served = await Promise.all(
      [agent, controller].map(async (each) => (await answerOf(each, '/metrics'))?.body),
    );
    const asked = [...new Set(readAsked().flatMap(selectorsOf))];
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter((selector) => !isServed(served.join('\n'), selector))).toEqual([]);
  });

  test('monitoring.dropSeries halves the series of an agent, and drops none that an alert or a dashboard asks for', async () => {
    const text = (await answerOf(agent, '/metrics'))?.body ?? '';
    const all = text.split('\n').filter((line) => /^\w/.test(line));
    const kept = all.filter((line) => !isDropped(line));
    expect(kept.length).toBeLessThanOrEqual(all.length / 2);
    const asked = readAsked()
      .flatMap(selectorsOf)
      .filter((selector) => isServed(text, selector));
    expect(asked.filter((selector) => !isServed(kept.join('\n'), selector))).toEqual([]);
  });

  test('build_info says the version, the commit and the version of Node.js', async () => {
    const commit = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8' }).trim();
    for (const program of [agent, controller]) {
      const body = (await answerOf(program, '/metrics'))?.body;
      expect(body).toContain(`commit="${commit}",node_version="${process.versions.node}"`);
    }
  });
});

const readChart = (file: string): string =>
  readFileSync(new URL(`../../helm/plegwatch/${file}`, import.meta.url), 'utf8');

/** The PromQL of the chart. */
const readAsked = (): string[] => [readChart('alerts.yaml'), ...dashboards.flatMap(({ promql }) => promql)];

interface DropRule {
  readonly sourceLabels: readonly string[];
  readonly regex: string;
}

const dropRules: readonly DropRule[] = parse(readChart('dropped-series.yaml'));

/** As Prometheus decides: the values of the labels, joined by `;`, against the whole expression. */
function isDropped(line: string): boolean {
  const [name = ''] = line.split(/[ {]/);
  const labelValue = (label: string): string =>
    label === '__name__' ? name : (new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? '');
  return dropRules.some(({ sourceLabels, regex }) =>
    new RegExp(`^(?:${regex})$`).test(sourceLabels.map(labelValue).join(';')),
  );
}

/** Type and labels of each metric of ours that has a series. */
function servedMetrics(text: string): Record<string, string> {
  const types = [...text.matchAll(/^# TYPE (plegwatch_\w+) (\w+)$/gm)];
  return Object.fromEntries(
    types.map(([, name = '', type = '']) => [name, `${type} {${labelsOf(text, name)}}`]),
  );
}

function labelsOf(text: string, name: string): string {
  const series = new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? `, 'm').exec(text);
  if (series === null) return 'no series';
  const labels = [...(series[1] ?? '').matchAll(/(\w+)="/g)].map(([, label = '']) => label);
  return labels
    .filter((label) => label !== 'le')
    .toSorted()
    .join(',');
}
