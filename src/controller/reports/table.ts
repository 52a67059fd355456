/*
 * The table of reports, exactly as kubectl prints it from the resource's printer columns.
 */
import { printable } from '../../platform/printable.ts';
import { ageOf } from './age.ts';
import { conditionOf, type NamedReport } from './namedReport.ts';

interface TableColumn {
  readonly name: string;
  /** Only with `-o wide`, or of several clusters. */
  readonly only?: 'wide' | 'clusters';
  readonly cell: (report: NamedReport, now: Date) => string | number | undefined;
}

const complete = (report: NamedReport) => conditionOf(report, 'EvidenceComplete');
const since = (at: string | undefined, now: Date) =>
  at === undefined ? undefined : ageOf(new Date(at), now);

const COLUMNS: readonly TableColumn[] = [
  { name: 'CLUSTER', only: 'clusters', cell: ({ cluster }) => cluster },
  { name: 'NAME', cell: ({ name }) => name },
  { name: 'MODE', cell: ({ status }) => status.mode },
  { name: 'STREAM', cell: ({ status }) => status.stream?.state },
  { name: 'MISSED', cell: ({ status }) => status.missed?.last24h },
  { name: 'LAST MISSED', cell: ({ status }, now) => since(status.missed?.lastAt, now) },
  { name: 'COMPLETE', cell: (report) => complete(report)?.status },
  { name: 'AGE', cell: ({ createdAt }, now) => ageOf(createdAt, now) },
  { name: 'RUNTIME', only: 'wide', cell: ({ status }) => status.runtime.version },
  { name: 'KUBELET', only: 'wide', cell: ({ status }) => status.kubelet.version },
  { name: 'RELIST P99', only: 'wide', cell: ({ status }) => status.relist?.p99Milliseconds },
  { name: 'LAST SEEN', only: 'wide', cell: ({ status }, now) => since(status.agent.lastSeen, now) },
  { name: 'REASON', only: 'wide', cell: (report) => complete(report)?.reason },
];

/** kubectl's columns are at least 6 wide with a gap of 3, and absent values are empty. */
const MIN_WIDTH = 6;
const GAP = 3;

export interface TableOptions {
  readonly wide: boolean;
  /** With the cluster of each node, as kubectl shows namespaces. */
  readonly withCluster: boolean;
}

export function printTable(
  reports: readonly NamedReport[],
  now: Date,
  { wide, withCluster }: TableOptions,
): string {
  const isShown = { wide, clusters: withCluster };
  const columns = COLUMNS.filter(({ only }) => only === undefined || isShown[only]);
  const rows = reports.map((report) => columns.map(({ cell }) => printable(String(cell(report, now) ?? ''))));
  const lines = [columns.map(({ name }) => name), ...rows];
  const widths = columns.map((_, at) =>
    Math.max(MIN_WIDTH, ...lines.map((line) => [...(line[at] ?? '')].length + GAP)),
  );
  const last = columns.length - 1;
  return lines
    .map((line) => `${line.map((text, at) => (at === last ? text : pad(text, widths[at] ?? 0))).join('')}\n`)
    .join('');
}

/** kubectl counts characters, not bytes. */
const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - [...text].length));
