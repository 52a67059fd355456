/*
 * The formats of `plegwatch report`. Names are of nodes and clusters, which nobody has checked: they reach no terminal unescaped.
 */
import { Document, isScalar, visit } from 'yaml';
import { csvLine } from '../../platform/csv.ts';
import { printable } from '../../platform/printable.ts';
import { type ConditionType, conditionOf } from './conditions.ts';
import type { REPORT_OUTPUTS } from './settings.ts';
import { REPORT_API } from './status.ts';
import { type NamedReport, printTable } from './table.ts';
import { timestamp, withoutEmpty } from './text.ts';

export interface OutputOptions {
  readonly output: (typeof REPORT_OUTPUTS)[number];
  /** The time of the reports; undefined without any. */
  readonly now: string | undefined;
  /** The only cluster that was asked for. */
  readonly cluster: string | undefined;
}

/** Which cluster a report is of; in Kubernetes, where a report is in its cluster, it has no such annotation. */
const CLUSTER_ANNOTATION = 'plegwatch.dev/cluster';

export function writeReports(reports: readonly NamedReport[], options: OutputOptions): string {
  const { output, now, cluster } = options;
  if (output === 'json') return `${JSON.stringify(listOf(reports), null, 4)}\n`;
  if (output === 'yaml') return yamlOf(listOf(reports));
  if (output === 'csv') return csvOf(reports);
  if (now === undefined)
    return `No node${cluster === undefined ? '' : ` of cluster ${cluster}`} has reported yet.\n`;
  return printTable(reports, now, { wide: output === 'wide', withCluster: cluster === undefined });
}

/** The reports as Kubernetes has them, and the cluster of each. */
export const itemsOf = (reports: readonly NamedReport[]) =>
  reports.map(({ cluster, name, createdAt, status }) => ({
    ...REPORT_API,
    metadata: {
      name,
      creationTimestamp: timestamp(createdAt),
      annotations: { [CLUSTER_ANNOTATION]: cluster },
    },
    status: withoutEmpty(status),
  }));

const listOf = (reports: readonly NamedReport[]) => ({
  ...{ apiVersion: 'v1', kind: 'List', metadata: {} },
  items: itemsOf(reports),
});

const UNPRINTABLE = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu;

/** YAML that readers of YAML 1.1, as most are, read as it is meant: times and words such as `no` are quoted. */
function yamlOf(value: object): string {
  const document = new Document(value, { schema: 'yaml-1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && typeof node.value === 'string' && printable(node.value) !== node.value) {
        node.type = 'QUOTE_DOUBLE';
      }
    },
  });
  // Everything unprintable is in double quotes, where these are escapes of YAML.
  return document.toString({ lineWidth: 0, indentSeq: false }).replaceAll(UNPRINTABLE, (character) => {
    const point = (character.codePointAt(0) ?? 0).toString(16);
    return point.length > 4 ? `\\U${point.padStart(8, '0')}` : `\\u${point.padStart(4, '0')}`;
  });
}

type Cell = (report: NamedReport) => string | number | undefined;

/** The fields of a report that have one value, by their path in its status. */
const CSV_COLUMNS: Readonly<Record<string, Cell>> = {
  cluster: ({ cluster }) => cluster,
  node: ({ name }) => name,
  creationTimestamp: ({ createdAt }) => timestamp(createdAt),
  observedAt: ({ status }) => status.observedAt,
  completeThrough: ({ status }) => status.completeThrough,
  mode: ({ status }) => status.mode,
  modeSince: ({ status }) => status.modeSince,
  'stream.state': ({ status }) => status.stream?.state,
  'stream.since': ({ status }) => status.stream?.since,
  'stream.reason': ({ status }) => status.stream?.reason,
  'stream.lastError': ({ status }) => status.stream?.lastError,
  'missed.total': ({ status }) => status.missed?.total,
  'missed.last24h': ({ status }) => status.missed?.last24h,
  'missed.resolved24h': ({ status }) => status.missed?.resolved24h,
  'missed.lastAt': ({ status }) => status.missed?.lastAt,
  'observed24h.expected': ({ status }) => status.observed24h.expected,
  'observed24h.matched': ({ status }) => status.observed24h.matched,
  'observed24h.unobservable': ({ status }) => status.observed24h.unobservable,
  'observed24h.coveredSeconds': ({ status }) => status.observed24h.coveredSeconds,
  'relist.p50Milliseconds': ({ status }) => status.relist?.p50Milliseconds,
  'relist.p99Milliseconds': ({ status }) => status.relist?.p99Milliseconds,
  'relist.errors': ({ status }) => status.relist?.errors,
  'listHang.call': ({ status }) => status.listHang?.call,
  'listHang.since': ({ status }) => status.listHang?.since,
  'listHang.verdict': ({ status }) => status.listHang?.verdict,
  'listHang.heldUpBy': ({ status }) => status.listHang?.heldUpBy,
  'listHang.containerID': ({ status }) => status.listHang?.containerID,
  'runtime.name': ({ status }) => status.runtime.name,
  'runtime.version': ({ status }) => status.runtime.version,
  'kubelet.version': ({ status }) => status.kubelet.version,
  'kubelet.identity': ({ status }) => status.kubelet.identity,
  'kubelet.model': ({ status }) => status.kubelet.model,
  'kubelet.streamErrors': ({ status }) => status.kubelet.streamErrors,
  'kubelet.relistPeriodMilliseconds': ({ status }) => status.kubelet.relistPeriodMilliseconds,
  'agent.version': ({ status }) => status.agent.version,
  'agent.lastSeen': ({ status }) => status.agent.lastSeen,
  ...conditionColumns('AgentReporting'),
  ...conditionColumns('StreamConnected'),
  ...conditionColumns('RelistHealthy'),
  ...conditionColumns('EvidenceComplete'),
  ...conditionColumns('EventedPLEGInUse'),
  ...conditionColumns('Ready'),
};

function conditionColumns(type: ConditionType): Record<string, Cell> {
  return {
    [type]: ({ status }) => conditionOf(status, type)?.status,
    [`${type}.reason`]: ({ status }) => conditionOf(status, type)?.reason,
  };
}

function csvOf(reports: readonly NamedReport[]): string {
  const rows = reports.map((report) =>
    Object.values(CSV_COLUMNS).map((cell) => {
      const value = cell(report);
      return typeof value === 'string' ? printable(value) : value;
    }),
  );
  return [Object.keys(CSV_COLUMNS), ...rows].map(csvLine).join('');
}
