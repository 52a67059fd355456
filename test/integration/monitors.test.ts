/*
 * PodMonitor and ServiceMonitor as helm renders them; a real API server with the operator's definitions accepts them, the rules, and
 * all that comes with them.
 */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type MonitoringObject, renderMonitoring } from '../support/monitoring.ts';
import { needs } from '../support/needs.ts';

interface Endpoint {
  readonly port: string;
  readonly relabelings: readonly object[];
  readonly metricRelabelings?: readonly object[];
}

needs('helm')('the monitors of the chart', () => {
  test('there is none unless it is asked for', () => {
    expect(renderMonitoring({})).toEqual([]);
  });

  test.each([
    ['PodMonitor', 'podMetricsEndpoints'],
    ['ServiceMonitor', 'endpoints'],
  ])('a %s selects agents and controller, and names the node of each', (kind, field) => {
    const objects = renderMonitoring({ monitor: kind, labels: { release: 'prom' }, interval: '15s' });
    const monitors = objects.filter((object) => object.kind === kind);
    expect(monitors.map(({ metadata }) => metadata.name)).toEqual([
      'plegwatch-agent',
      'plegwatch-controller',
    ]);
    for (const monitor of monitors) {
      expect(monitor.apiVersion).toBe('monitoring.coreos.com/v1');
      expect(monitor.metadata.labels['release']).toBe('prom');
      const [endpoint, ...others] = endpointsOf(monitor, field);
      expect(others).toEqual([]);
      expect(endpoint).toMatchObject({ port: 'http', path: '/metrics', interval: '15s' });
      expect(endpoint?.relabelings).toEqual([
        { sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'node' },
      ]);
    }
  });

  test('a ServiceMonitor has a headless Service for each program, also while its pods are not ready', () => {
    const objects = renderMonitoring({ monitor: 'ServiceMonitor' });
    for (const monitor of objects.filter(({ kind }) => kind === 'ServiceMonitor')) {
      const selector: unknown = Reflect.get(Object(monitor.spec['selector']), 'matchLabels');
      const services = objects.filter(
        ({ kind, metadata }) => kind === 'Service' && contains(metadata.labels, Object(selector)),
      );
      expect(services.map(({ spec }) => spec)).toMatchObject([
        {
          clusterIP: 'None',
          publishNotReadyAddresses: true,
          selector,
          ports: [{ name: 'http', port: 9465 }],
        },
      ]);
    }
  });

  test('only series of agents are dropped, and only if that is asked for', () => {
    const dropping = (monitoring: object) =>
      renderMonitoring(monitoring)
        .filter((object) => endpointsOf(object, 'podMetricsEndpoints')[0]?.metricRelabelings !== undefined)
        .map(({ metadata }) => metadata.name);
    expect(dropping({ monitor: 'PodMonitor' })).toEqual([]);
    expect(dropping({ monitor: 'PodMonitor', dropSeries: true })).toEqual(['plegwatch-agent']);
  });

  test('without agents there is only the one of the controller', () => {
    const objects = renderMonitoring({ monitor: 'PodMonitor' }, { agent: { enabled: false } });
    expect(objects.map(({ metadata }) => metadata.name)).toEqual(['plegwatch-controller']);
  });
});

needs(
  'helm',
  'kube-apiserver',
  'etcd',
  'kubectl',
  'operator-crds',
)('a real API server', () => {
  let server: LocalApiServer;

  /** Throws if kubectl complains about anything. */
  const kubectl = (input: string, ...args: string[]): string =>
    execFileSync(where('kubectl'), ['--kubeconfig', server.kubeconfig, ...args], {
      input,
      encoding: 'utf8',
      stdio: 'pipe',
    });

  beforeAll(async () => {
    server = await startApiServer();
    kubectl('', 'create', 'namespace', 'watching');
    kubectl('', 'apply', '--server-side', '-f', where('operator-crds'));
    kubectl('', 'wait', '--for=condition=Established', '--timeout=240s', 'crd', '--all');
  });
  afterAll(() => server?.stop());

  test.each(['PodMonitor', 'ServiceMonitor'])('accepts every object of a release with a %s', (monitor) => {
    const objects = renderMonitoring({
      ...{ monitor, dropSeries: true, labels: { release: 'prom' } },
      rules: { enabled: true, runbookUrl: 'https://git.example.com/docs/runbooks' },
      dashboards: { enabled: true, annotations: { grafana_folder: 'Nodes' } },
    });
    const text = objects.map((object) => stringify(object)).join('---\n');
    const accepted = kubectl(
      text,
      'apply',
      '--server-side',
      '--dry-run=server',
      '--validate=strict',
      '-f',
      '-',
    );
    expect(accepted.trim().split('\n')).toHaveLength(objects.length);
    // A monitor for each program, with a Service where it needs one; the rules; three dashboards.
    expect(objects).toHaveLength(monitor === 'PodMonitor' ? 6 : 8);
  });

  test('refuses a field that a PrometheusRule does not have', () => {
    const [rule] = renderMonitoring({ rules: { enabled: true } });
    const text = stringify({ ...rule, spec: { groups: [{ name: 'a', rules: [{ alert: 'A', exp: '1' }] }] } });
    expect(() =>
      kubectl(text, 'apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'),
    ).toThrow(/exp: field not declared in schema/);
  });
});

const endpointsOf = ({ spec }: MonitoringObject, field: string): readonly Endpoint[] => {
  const endpoints: unknown = spec[field];
  return Array.isArray(endpoints) ? endpoints : [];
};

const contains = (labels: object, wanted: object): boolean =>
  Object.entries(wanted).every(([name, value]) => Reflect.get(labels, name) === value);
