/*
 * The mixin, evaluated by jsonnet, has what the chart renders with the same settings.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { where } from '../../devtools/localServices/where.ts';
import { renderMonitoring, ruleGroupsOf } from '../support/monitoring.ts';
import { needs } from '../support/needs.ts';

const CHART = new URL('../../helm/plegwatch', import.meta.url).pathname;
const RULES = {
  disabled: ['PlegwatchVersionSkew', 'PlegwatchModeUnknown'],
  runbookUrl: 'https://git.example.com/docs/runbooks/',
};

needs('helm', 'jsonnet')('the mixin', () => {
  test('alerts are those of the chart in the same namespaces, without the same ones, and with the same pages', () => {
    const rendered = renderMonitoring({ rules: { enabled: true, ...RULES } });
    const groups = ruleGroupsOf(rendered.find(({ kind }) => kind === 'PrometheusRule'));
    expect(mixin('prometheusAlerts', { namespaces: 'watching', ...RULES })).toEqual({ groups });
  });

  test('alerts without settings are those of the rule file', () => {
    expect(mixin('prometheusAlerts', {})).toEqual(parse(readFileSync(`${CHART}/alerts.yaml`, 'utf8')));
  });

  test('dashboards are those of the chart, under the same names', () => {
    const maps = renderMonitoring({ dashboards: { enabled: true } }).map(({ data }) => data ?? {});
    const files = maps.flatMap((data) => Object.entries(data));
    expect(files.length).toBeGreaterThan(0);
    expect(mixin('grafanaDashboards', {})).toEqual(
      Object.fromEntries(files.map(([name, text]) => [name, JSON.parse(text)])),
    );
  });
});

function mixin(field: string, config: object): unknown {
  const code = `((import 'mixin.libsonnet') + {_config+:: ${JSON.stringify(config)}}).${field}`;
  return JSON.parse(execFileSync(where('jsonnet'), ['-J', CHART, '-e', code], { encoding: 'utf8' }));
}
