/*
 * The chart in every version of Kubernetes and helm that it is for.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { where } from '../../devtools/localServices/where.ts';
import {
  CHART,
  documents,
  helm,
  home,
  MINIMAL,
  NAMESPACE,
  type ProgramResult,
  ROOT,
  run,
  template,
  VARIANTS,
  type Values,
  withHome,
} from '../support/chart.ts';
import { kubernetesVersions, SCHEMA_PATH, writeSchemas } from '../support/kubernetesSchemas.ts';
import { has, needs } from '../support/needs.ts';

withHome();

/** Kinds of the Prometheus operator: monitors.test.ts holds them against its definitions. */
const OPERATORS = 'PodMonitor,PrometheusRule,ServiceMonitor';
/** Everything that the chart can add. */
const MORE: Values = {
  monitoring: { monitor: 'ServiceMonitor', rules: { enabled: true }, dashboards: { enabled: true } },
};
/** A version on each side of the only one that a template asks for. */
const [BEFORE, SINCE] = ['1.29.0', '1.37.0'];
const sideOf = (version: string): string => (Number(version.split('.')[1]) < 30 ? BEFORE : SINCE);
const textFor = (version: string, values: Values): Promise<string> =>
  template(values, ['--kube-version', version]);
const PRESETS = [...VARIANTS, ['with monitors, alerts and dashboards', { ...MINIMAL, ...MORE }]] as const;

needs(
  'helm',
  'kubeconform',
  'kubernetes-api',
)('every preset of the chart', () => {
  const versions = has('kubernetes-api') ? kubernetesVersions() : [];
  const kubeconform = (version: string, ...manifests: readonly string[]): Promise<ProgramResult> =>
    run(where('kubeconform'), [
      ...['-strict', '-output', 'json', '-verbose', '-skip', OPERATORS],
      ...['-kubernetes-version', version, '-schema-location', join(home.dir, SCHEMA_PATH), ...manifests],
    ]);

  test('is checked against each minor version from the one that Chart.yaml asks for', () => {
    const { kubeVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
    const minors = versions.map((version) => Number(version.split('.')[1]));
    expect(kubeVersion).toBe(`>=1.${minors[0]}.0-0`);
    expect(minors).toEqual(minors.map((_, at) => (minors[0] ?? 0) + at));
  });

  test('is the same on each side of 1.30, which only the definition of the resource asks for', async () => {
    const folder = join(CHART, 'templates');
    const asking = readdirSync(folder).flatMap((file) =>
      readFileSync(join(folder, file), 'utf8')
        .split('\n')
        .filter((line) => line.includes('Capabilities'))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(asking).toEqual([
      'crd.yaml: {{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}',
    ]);
    for (const version of versions)
      expect([version, await textFor(version, MINIMAL)]).toEqual([
        version,
        await textFor(sideOf(version), MINIMAL),
      ]);
  });

  test.each(versions)('has no object and no field that Kubernetes %s does not have', async (version) => {
    const texts = await Promise.all(PRESETS.map(([, values]) => textFor(sideOf(version), values)));
    const objects = texts.flatMap(documents);
    writeSchemas(home.dir, version, new Set(objects.map(({ kind }) => kind)));
    const manifests = join(home.dir, `manifests-${version}`);
    mkdirSync(manifests);
    for (const [at, text] of texts.entries()) writeFileSync(join(manifests, `${at}.yaml`), text);
    const { code, stdout } = await kubeconform(version, manifests);
    const { resources } = JSON.parse(stdout) as Found;
    expect(resources.filter(({ status }) => !['statusValid', 'statusSkipped'].includes(status))).toEqual([]);
    const skipped = resources.filter(({ status }) => status === 'statusSkipped');
    expect(skipped.filter(({ kind }) => !OPERATORS.includes(kind))).toEqual([]);
    expect(resources.length).toBe(objects.length);
    expect(code).toBe(0);
  });

  test('is refused where a version does not have a field, a kind or a type', async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [] } };
    const [oldest = '', newest = ''] = [versions.at(0), versions.at(-1)];
    for (const version of [oldest, newest]) writeSchemas(home.dir, version, new Set(['Pod']));
    const found = async (version: string, object: object) => {
      const file = join(home.dir, 'object.json');
      writeFileSync(file, JSON.stringify(object));
      const { stdout } = await kubeconform(version, file);
      return (JSON.parse(stdout) as Found).resources[0]?.status;
    };
    const later = { ...pod, spec: { containers: [], hostnameOverride: 'h' } };
    expect([await found(oldest, later), await found(newest, later)]).toEqual([
      'statusInvalid',
      'statusValid',
    ]);
    const mistyped = { ...pod, spec: { containers: [{ name: 'c', args: [1] }] } };
    expect(await found(newest, mistyped)).toBe('statusInvalid');
    expect(await found(newest, { ...pod, kind: 'Pad' })).toBe('statusError');
  });
});

describe.each(['helm', 'helm-3'] as const)('with %s', (program) => {
  needs(program)('every preset', () => {
    test.each(PRESETS)('passes helm lint: %s', async (_name, values) => {
      const lint = await helm(['lint', '--strict', CHART], values, program);
      expect(lint).toMatchObject({ code: 0, stdout: expect.stringContaining('0 chart(s) failed') });
    });
  });
});

needs('helm', 'helm-3')('the oldest helm that the install page names', () => {
  test('is the one that is tried', () => {
    const install = readFileSync(join(ROOT, 'docs/how-to/install.md'), 'utf8');
    const [, named] = /Helm (3\.\d+)/.exec(install) ?? [];
    expect(where('helm-3')).toContain(`/helm-${named}.`);
  });

  test.each(PRESETS)('renders the objects that the newest one renders: %s', async (_name, values) => {
    const args = ['template', 'plegwatch', CHART, '-n', NAMESPACE, '--kube-version', SINCE];
    const { stdout, stderr } = await helm(args, values, 'helm-3');
    expect(stderr).toBe('');
    const byName = (text: string) =>
      documents(text)
        .map((object) => JSON.stringify(object))
        .sort();
    expect(byName(stdout)).toEqual(byName(await textFor(SINCE, values)));
  });
});

interface Found {
  readonly resources: readonly { readonly kind: string; readonly status: string; readonly msg: string }[];
}
