/*
 * The part of the chart that concerns Prometheus and Grafana, rendered by helm and checked by promtool.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { parseAllDocuments } from 'yaml';
import { where } from '../../devtools/localServices/where.ts';

const CHART = new URL('../../helm/plegwatch', import.meta.url).pathname;

export interface MonitoringObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
}

/** The objects that these values of `monitoring` add to a release in the namespace `watching`. */
export function renderMonitoring(monitoring: object, values: object = {}): MonitoringObject[] {
  const all = {
    cluster: 'prod-1',
    redis: { url: 'redis://redis:6379', agent: { url: 'redis://redis:6379' } },
    database: { url: 'postgres://plegwatch@postgres:5432/plegwatch' },
    ...values,
    monitoring,
  };
  const args = ['template', 'plegwatch', CHART, '-n', 'watching', '--values', '-'];
  const text = execFileSync(where('helm'), args, { input: JSON.stringify(all), encoding: 'utf8' });
  return parseAllDocuments(text)
    .map((document): MonitoringObject | null => document.toJS())
    .filter((object) => object !== null)
    .filter(({ apiVersion, metadata }) => isMonitoring(apiVersion, metadata.name));
}

const isMonitoring = (apiVersion: string, name: string): boolean =>
  apiVersion.startsWith('monitoring.coreos.com/') || /-(metrics|dashboard-\w+)$/.test(name);

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly keep_firing_for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

export function ruleGroupsOf(object: MonitoringObject | undefined): readonly RuleGroup[] {
  const groups: unknown = object?.spec['groups'];
  if (!Array.isArray(groups)) throw new Error('the PrometheusRule has no groups');
  return groups;
}

/** Runs promtool in a folder. Returns what it printed, and whether it found everything right. */
export function promtool(dir: string, ...args: readonly string[]): { ok: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync(where('promtool'), args, { cwd: dir, encoding: 'utf8' });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}
