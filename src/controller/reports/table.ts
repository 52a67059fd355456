/*
 * The table of reports, exactly as kubectl prints it from the resource's printer columns: with ages that are less precise the older something is
 * (apimachinery pkg/util/duration, HumanDuration).
 */
import { type Cell, tableText } from '../../platform/table.ts';
import { conditionOf } from './conditions.ts';
import type { ReportStatus } from './status.ts';

/** A report as it is, or would be, in Kubernetes. */
export interface NamedReport {
  readonly cluster: string;
  readonly name: string;
  readonly createdAt: string;
  readonly status: ReportStatus;
}

interface TableColumn {
  readonly name: string;
  /** Only with `-o wide`, or of several clusters. */
  readonly only?: 'wide' | 'clusters';
  readonly cell: (report: NamedReport, now: string) => Cell;
}

const complete = ({ status }: NamedReport) => conditionOf(status, 'EvidenceComplete');
const since = (at: string | undefined, now: string) => (at === undefined ? undefined : ageOf(at, now));

const COLUMNS: readonly TableColumn[] = [
  { name: 'CLUSTER', only: 'clusters', cell: ({ cluster }) => cluster },
  { name: 'NAME', cell: ({ name }) => name },
  { name: 'MODE', cell: ({ status }) => status.mode },
  { name: 'STREAM', cell: ({ status }) => status.stream?.state },
  { name: 'MISSED', cell: ({ status }) => status.missed?.last24h },
  { name: 'LAST MISSED', cell: ({ status }, now) => since(status.missed?.lastAt, now) },
  { name: 'COMPLETE', cell: (report) => complete(report)?.status },
  { name: 'HELD UP BY', cell: ({ status }) => status.listHang?.heldUpBy },
  { name: 'OBSERVED', cell: ({ status }, now) => ageOf(status.observedAt, now) },
  { name: 'RUNTIME', only: 'wide', cell: ({ status }) => status.runtime.version },
  { name: 'KUBELET', only: 'wide', cell: ({ status }) => status.kubelet.version },
  { name: 'RELIST P99', only: 'wide', cell: ({ status }) => status.relist?.p99Milliseconds },
  { name: 'LAST SEEN', only: 'wide', cell: ({ status }, now) => since(status.agent.lastSeen, now) },
  { name: 'REASON', only: 'wide', cell: (report) => complete(report)?.reason },
  { name: 'AGE', only: 'wide', cell: ({ createdAt }, now) => ageOf(createdAt, now) },
];

export interface TableOptions {
  readonly wide: boolean;
  /** With the cluster of each node, as kubectl shows namespaces. */
  readonly withCluster: boolean;
}

export function printTable(
  reports: readonly NamedReport[],
  now: string,
  { wide, withCluster }: TableOptions,
): string {
  const isShown = { wide, clusters: withCluster };
  const columns = COLUMNS.filter(({ only }) => only === undefined || isShown[only]);
  return tableText([
    columns.map(({ name }) => name),
    ...reports.map((report) => columns.map(({ cell }) => cell(report, now))),
  ]);
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const YEAR = 365 * DAY;

/** The age at `now` of something from `at`. `<invalid>` if `at` is in the future by more than a second of clock skew. */
export function ageOf(at: string, now: string): string {
  const seconds = Math.trunc((Date.parse(now) - Date.parse(at)) / 1000);
  if (seconds < -1) return '<invalid>';
  return humanDuration(Math.max(0, seconds));
}

/** The format of kubectl for whole seconds. */
export function humanDuration(seconds: number): string {
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return twoUnits(seconds, MINUTE, 'm', 1, 's');
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return twoUnits(seconds, HOUR, 'h', MINUTE, 'm');
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return twoUnits(seconds, DAY, 'd', HOUR, 'h');
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 8 * YEAR) return twoUnits(seconds, YEAR, 'y', DAY, 'd');
  return `${Math.floor(seconds / YEAR)}y`;
}

/** Two units; without the second one if it is zero. */
function twoUnits(seconds: number, unit: number, name: string, lesser: number, lesserName: string): string {
  const remainder = Math.floor((seconds % unit) / lesser);
  return `${Math.floor(seconds / unit)}${name}${remainder === 0 ? '' : `${remainder}${lesserName}`}`;
}
