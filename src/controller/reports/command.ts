/*
 * `plegwatch report`: the reports of a cluster, read from SQL. Works without Kubernetes and without a running controller.
 */
import type { REPORT_OUTPUTS } from '../config.ts';
import type { SqlRunner } from '../store/store.ts';
import { buildStatus } from './build.ts';
import type { EvidenceRow } from './evidence.ts';
import { REPORT_API } from './put.ts';
import { readEvidence } from './queue.ts';
import listReportedNodes from './sql/listReportedNodes.sql';
import { type NamedReport, printTable } from './table.ts';
import { timestamp } from './text.ts';

type ReportOutput = (typeof REPORT_OUTPUTS)[number];

export interface ReportCommand {
  readonly store: SqlRunner;
  readonly cluster: string;
  readonly output: ReportOutput;
}

const NODES_PER_QUERY = 100;

/** Returns the output of `plegwatch report`, with a final newline. */
export async function runReport({ store, cluster, output }: ReportCommand): Promise<string> {
  const rows = await readCluster(store, cluster);
  const reports = rows.map(reportOf);
  if (output === 'json') return `${JSON.stringify(listOf(reports), null, 4)}\n`;
  const now = rows[0]?.now;
  if (now === undefined) return `No node of cluster ${cluster} has reported yet.\n`;
  return printTable(reports, now, output === 'wide');
}

async function readCluster(store: SqlRunner, cluster: string): Promise<EvidenceRow[]> {
  const { rows } = await store.run<{ node_id: number }>({ text: listReportedNodes }, [cluster]);
  const read: EvidenceRow[] = [];
  for (let at = 0; at < rows.length; at += NODES_PER_QUERY) {
    const ids = rows.slice(at, at + NODES_PER_QUERY).map(({ node_id }) => node_id);
    read.push(...(await readEvidence(store, ids)));
  }
  return read;
}

function reportOf(row: EvidenceRow): NamedReport {
  const status = buildStatus(row, { ingestUpToDate: true });
  return { name: row.node, createdAt: row.created_at, status };
}

function listOf(reports: readonly NamedReport[]) {
  const items = reports.map(({ name, createdAt, status }) => ({
    ...REPORT_API,
    metadata: { name, creationTimestamp: timestamp(createdAt) },
    status,
  }));
  return { apiVersion: 'v1', kind: 'List', metadata: {}, items };
}
