/*
 * The documents have every metric and every reason of a failed scrape, and no other metric.
 */
import { readFileSync } from 'node:fs';
import type { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { documentedMetrics } from '../test/support/documentedMetrics.ts';
import { AgentMetrics } from './agent/metrics.ts';
import { SCRAPE_FAILURES } from './agent/observe/kubelet/scrapeError.ts';
import { ControllerMetrics } from './controller/metrics.ts';
import { UiMetrics } from './ui/metrics.ts';

const readDoc = (path: string) => readFileSync(new URL(`../docs/${path}`, import.meta.url), 'utf8');
const documented = (part: 'Agent' | 'Controller' | 'Page'): string[] =>
  documentedMetrics(part).map(({ name, labels, type }) => `${name} {${labels.join(',')}} ${type}`);

const aboutItself = /^(process|nodejs)_/;

async function served(registry: Registry): Promise<string[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics
    .filter(({ name }) => !aboutItself.test(name))
    .map(({ name, type }) => `${name} {${labelsOf(registry, name).join(',')}} ${type}`);
}

/** The labels of a metric are in no public type of the library. */
function labelsOf(registry: Registry, name: string): string[] {
  return Reflect.get(Object(registry.getSingleMetric(name)), 'labelNames');
}

describe('docs/reference/metrics.md', () => {
  test('has every metric of an agent, with its labels and its type', async () => {
    expect(documented('Agent').sort()).toEqual((await served(new AgentMetrics().registry)).sort());
  });

  test('has every metric of a controller', async () => {
    expect(documented('Controller').sort()).toEqual((await served(new ControllerMetrics().registry)).sort());
  });

  test('has every metric of the page', async () => {
    expect(documented('Page').sort()).toEqual((await served(new UiMetrics().registry)).sort());
  });
});

test.each(SCRAPE_FAILURES)(
  'docs/how-to/kubelet-metrics.md has the cure of a scrape that fails: %s',
  (reason) => {
    expect(readDoc('how-to/kubelet-metrics.md')).toContain(`\`${reason}\``);
  },
);

test.each([
  ['an agent', new AgentMetrics().registry],
  ['a controller', new ControllerMetrics().registry],
  ['the page', new UiMetrics().registry],
])('every counter of %s has a series from the start', async (_program, registry) => {
  const counters = (await registry.getMetricsAsJSON()).filter(({ type }) => String(type) === 'counter');
  expect(counters.filter(({ values }) => values.length === 0).map(({ name }) => name)).toEqual([]);
});
