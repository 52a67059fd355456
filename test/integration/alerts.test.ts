/*
 * The alerts, as helm renders them, run by promtool: each fires in its case, and none on a healthy cluster or during a rolling update.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import {
  type AlertCase,
  CASES,
  END,
  HEALTHY,
  INTERVAL_S,
  rollingUpdate,
  type SeriesValues,
} from '../support/alertCases.ts';
import {
  type AlertRule,
  type MonitoringObject,
  promtool,
  type RuleGroup,
  renderMonitoring,
  ruleGroupsOf,
} from '../support/monitoring.ts';
import { needs } from '../support/needs.ts';

const RUNBOOKS = new URL('../../docs/runbooks', import.meta.url).pathname;
const SEVERITIES = ['critical', 'warning', 'info'];
const RULES = { enabled: true, runbookUrl: 'https://git.example.com/docs/runbooks' };

let folder: TemporaryFolder;
let object: MonitoringObject | undefined;
let groups: readonly RuleGroup[] = [];
const rules = (): AlertRule[] => groups.flatMap((group) => group.rules);
const names = (): string[] => rules().map(({ alert }) => alert);

needs('helm', 'promtool')('the alerts of the chart', () => {
  beforeAll(() => {
    folder = temporaryFolder('alerts', undefined);
    object = renderMonitoring({ rules: RULES }).find(({ kind }) => kind === 'PrometheusRule');
    groups = ruleGroupsOf(object);
    writeFileSync(join(folder.dir, 'rules.yaml'), stringify({ groups }));
  });
  afterAll(() => folder?.remove());

  test('promtool accepts the rules', () => {
    expect(promtool(folder.dir, 'check', 'rules', '--lint=all', '--lint-fatal', 'rules.yaml')).toMatchObject({
      ok: true,
    });
  });

  test('every alert has a severity, a summary, a description and a runbook page, and every page has an alert', () => {
    for (const { alert, labels, annotations } of rules()) {
      expect(SEVERITIES, alert).toContain(labels['severity']);
      expect(Object.keys(annotations).sort(), alert).toEqual(['description', 'runbook_url', 'summary']);
      expect(annotations['runbook_url']).toBe(`${RULES.runbookUrl}/${alert}.md`);
    }
    const pages = readdirSync(RUNBOOKS).filter((file) => file.startsWith('Plegwatch'));
    expect(pages.sort()).toEqual(
      names()
        .map((name) => `${name}.md`)
        .sort(),
    );
  });

  test('every runbook page says what it means, what it costs, how to find the cause, and how to cure it', () => {
    for (const name of names()) {
      const page = readFileSync(join(RUNBOOKS, `${name}.md`), 'utf8');
      expect(page.replaceAll(/^```.*?^```/gms, '').match(/^#+ .*$/gm), name).toEqual([
        `# ${name}`,
        '## Meaning',
        '## Impact',
        '## Diagnosis',
        '## Cure',
      ]);
      expect(page, name).toMatch(/```/);
    }
  });

  test('alerts can be left out, and without access to kubelets no mode is expected', () => {
    const left = (monitoring: object, values: object = {}) =>
      ruleGroupsOf(
        renderMonitoring(monitoring, values).find(({ kind }) => kind === 'PrometheusRule'),
      ).flatMap((group) => group.rules.map(({ alert }) => alert));
    expect(left({ rules: { ...RULES, disabled: ['PlegwatchVersionSkew'] } })).toEqual(
      names().filter((name) => name !== 'PlegwatchVersionSkew'),
    );
    expect(left({ rules: RULES }, { agent: { kubelet: { enabled: false } } })).toEqual(
      names().filter((name) => name !== 'PlegwatchModeUnknown'),
    );
  });

  test('the rules read only the namespaces of the release', () => {
    const selectors = rules().flatMap(({ expr }) => expr.match(/plegwatch_\w+(\{[^}]*\})?/g) ?? []);
    expect(selectors.filter((selector) => !/\{namespace=~"watching"[,}]/.test(selector))).toEqual([]);
  });

  describe('run by promtool', () => {
    test('none fires on a healthy cluster', () => {
      expect(run('healthy', HEALTHY, [firesEver([])])).toEqual({ ok: true, output: expect.any(String) });
    });

    test('none fires during a rolling update', () => {
      const outcome = run('rolling', rollingUpdate(), [firesEver([])]);
      expect(outcome.output).not.toContain('FAILED');
      expect(outcome.ok).toBe(true);
    });

    test.each(CASES)('%s fires when %s, and no other does', (alert, _what, { differs, without, ...when }) => {
      const series = Object.fromEntries(
        Object.entries(HEALTHY).filter(([name]) => without === undefined || !without.test(name)),
      );
      const severity = rules().find((rule) => rule.alert === alert)?.labels['severity'] ?? 'no such alert';
      const { ok, output } = run(alert, { ...series, ...differs }, [
        ...(when.notYet === undefined ? [] : [firesAt(when.notYet, [])]),
        firesAt(when.fires, [{ alertname: alert, severity, ...when.labels }]),
      ]);
      expect(output).not.toContain('FAILED');
      expect(ok).toBe(true);
    });

    test('every alert has a case', () => {
      expect([...new Set(CASES.map(([alert]) => alert))].sort()).toEqual(names().sort());
    });

    test('a queue that shrinks after an outage does not alert', () => {
      const [[depth = '']] = Object.entries(HEALTHY).filter(([name]) => name.includes('queue="1"')) as [
        [string, string],
      ];
      const shrinking = { ...HEALTHY, [depth]: '30000-120x240' };
      expect(run('shrinking', shrinking, [firesEver([])]).output).not.toContain('FAILED');
    });
  });
});

interface Expectation {
  readonly expr: string;
  readonly eval_time: string;
  readonly exp_samples: readonly { readonly labels: string; readonly value: number }[];
}

type Labels = Readonly<Record<string, string>>;

const FIRING = 'ALERTS{alertstate="firing"}';

const firesAt = (time: AlertCase['fires'], alerts: readonly Labels[]): Expectation => ({
  expr: FIRING,
  eval_time: time,
  exp_samples: alerts.map((labels) => ({ labels: seriesOf({ ...labels, alertstate: 'firing' }), value: 1 })),
});

/** At any time of the three hours. */
const firesEver = (alerts: readonly Labels[]): Expectation => ({
  ...firesAt(END, alerts),
  expr: `max_over_time(${FIRING}[${END}])`,
});

const seriesOf = (labels: Labels): string =>
  `ALERTS{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',')}}`;

function run(
  name: string,
  series: SeriesValues,
  expectations: readonly Expectation[],
): { ok: boolean; output: string } {
  const input = Object.entries(series).map(([each, values]) => ({ series: each, values }));
  const file = {
    rule_files: ['rules.yaml'],
    evaluation_interval: `${INTERVAL_S}s`,
    tests: [{ name, interval: `${INTERVAL_S}s`, input_series: input, promql_expr_test: expectations }],
  };
  writeFileSync(join(folder.dir, 'tests.yaml'), stringify(file));
  return promtool(folder.dir, 'test', 'rules', 'tests.yaml');
}
