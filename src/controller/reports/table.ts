/*
 * The table of reports, exactly as kubectl prints it from the resource's printer columns.
 */
import { ageOf } from './age.ts';
import type { ReportStatus } from './status.ts';

/** A report as it is, or would be, in Kubernetes. */
export interface NamedReport {
  readonly name: string;
  readonly createdAt: Date;
  readonly status: ReportStatus;
}

interface TableColumn {
  readonly name: string;
  /** Only with `-o wide`. */
  readonly wide?: true;
  readonly cell: (report: NamedReport, now: Date) => string | number | undefined;
}

const complete = ({ conditions }: ReportStatus) => conditions.find(({ type }) => type === 'EvidenceComplete');
const since = (at: string | undefined, now: Date) =>
  at === undefined ? undefined : ageOf(new Date(at), now);

const COLUMNS: readonly TableColumn[] = [
  { name: 'NAME', cell: ({ name }) => name },
  { name: 'MODE', cell: ({ status }) => status.mode },
  { name: 'STREAM', cell: ({ status }) => status.stream?.state },
  { name: 'MISSED', cell: ({ status }) => status.missed?.last24h },
  { name: 'LAST MISSED', cell: ({ status }, now) => since(status.missed?.lastAt, now) },
  { name: 'COMPLETE', cell: ({ status }) => complete(status)?.status },
  { name: 'AGE', cell: ({ createdAt }, now) => ageOf(createdAt, now) },
  { name: 'RUNTIME', wide: true, cell: ({ status }) => status.runtime.version },
  { name: 'KUBELET', wide: true, cell: ({ status }) => status.kubelet.version },
  { name: 'RELIST P99', wide: true, cell: ({ status }) => status.relist?.p99Milliseconds },
  { name: 'LAST SEEN', wide: true, cell: ({ status }, now) => since(status.agent.lastSeen, now) },
  { name: 'REASON', wide: true, cell: ({ status }) => complete(status)?.reason },
];

/** kubectl's columns are at least 6 wide with a gap of 3, and absent values are empty. */
const MIN_WIDTH = 6;
const GAP = 3;

export function printTable(reports: readonly NamedReport[], now: Date, wide: boolean): string {
  const columns = COLUMNS.filter((column) => wide || column.wide === undefined);
  const rows = reports.map((report) => columns.map(({ cell }) => String(cell(report, now) ?? '')));
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
