/*
 * `plegwatch report`: the reports of one or several clusters, read from SQL. Works without Kubernetes and without a running controller.
 */

import { notFound } from '../../store/notFound.ts';
import type { SqlRunner } from '../../store/runner.ts';
import listClusters from '../../store/sql/listClusters.sql';
import { buildStatus } from './build.ts';
import { conditionOf, type NamedReport } from './namedReport.ts';
import { writeReports } from './outputs.ts';
import { readEvidence } from './queue.ts';
import type { REPORT_FAILURES, REPORT_OUTPUTS } from './settings.ts';
import listReportedNodes from './sql/listReportedNodes.sql';

type ReportOutput = (typeof REPORT_OUTPUTS)[number];
type ReportFailure = (typeof REPORT_FAILURES)[number];

export interface ReportCommand {
  readonly store: SqlRunner;
  /** Default: every cluster that the role may read. */
  readonly clusters?: readonly string[] | undefined;
  /** Default: every node. */
  readonly nodes?: readonly string[] | undefined;
  readonly output: ReportOutput;
  readonly failOn?: readonly ReportFailure[] | undefined;
}

export interface ReportOutcome {
  /** With a final newline. */
  readonly text: string;
  /** A sentence for each thing in `failOn` that a node has. */
  readonly failures: readonly string[];
}

/** A node has what `--fail-on` names. */
export const EXIT_FAIL_ON = 3;

const NODES_PER_QUERY = 100;
const MAX_NAMES = 10;

/** Throws NOT_FOUND for a cluster or a node that is not there. */
export async function runReport(command: ReportCommand): Promise<ReportOutcome> {
  const { store, clusters, output, failOn = [] } = command;
  const { rows } = await store.run<{ name: string }>({ text: listClusters });
  requireAll('cluster', clusters, new Set(rows.map(({ name }) => name)));
  const { reports, now } = await readReports(command);
  return {
    text: writeReports(reports, { output, now, cluster: clusters?.length === 1 ? clusters[0] : undefined }),
    failures: failOn.flatMap((failure) => failureOf(failure, reports)),
  };
}

interface ReportedNode {
  readonly node_id: number;
  readonly node: string;
  readonly cluster: string;
}

async function readReports({ store, clusters, nodes }: ReportCommand) {
  const { rows } = await store.run<ReportedNode>({ text: listReportedNodes }, [clusters ?? null]);
  requireAll('node', nodes, new Set(rows.map(({ node }) => node)));
  const asked = rows.filter(({ node }) => nodes?.includes(node) ?? true);
  const reports: NamedReport[] = [];
  let now: Date | undefined;
  for (let at = 0; at < asked.length; at += NODES_PER_QUERY) {
    const some = asked.slice(at, at + NODES_PER_QUERY);
    const read = await readEvidence(
      store,
      some.map(({ node_id }) => node_id),
    );
    const byId = new Map(read.map((row) => [row.node_id, row]));
    for (const { node_id, cluster } of some) {
      const row = byId.get(node_id);
      // The node was removed after it was listed.
      if (row === undefined) continue;
      now ??= row.now;
      const status = buildStatus(row, { ingestCaughtUpForMs: Number.POSITIVE_INFINITY });
      reports.push({ cluster, name: row.node, createdAt: row.created_at, status });
    }
  }
  return { reports, now };
}

function requireAll(what: string, asked: readonly string[] | undefined, known: ReadonlySet<string>): void {
  const missing = asked?.find((name) => !known.has(name));
  if (missing !== undefined) throw notFound(what, missing, [...known]);
}

const FAILURES: Readonly<Record<ReportFailure, (report: NamedReport) => boolean>> = {
  missed: ({ status }) => (status.missed?.last24h ?? 0) > 0,
  fallback: ({ status }) => status.mode === 'Fallback',
  unknown: ({ status }) => status.mode === 'Unknown',
  incomplete: (report) => conditionOf(report, 'EvidenceComplete')?.status !== 'True',
  silent: (report) => conditionOf(report, 'AgentReporting')?.status !== 'True',
};

function failureOf(failure: ReportFailure, reports: readonly NamedReport[]): string[] {
  const names = reports.filter(FAILURES[failure]).map(({ name }) => name);
  if (names.length === 0) return [];
  const rest = names.length - MAX_NAMES;
  const more = rest > 0 ? ` and ${rest} more` : '';
  return [`${failure}: ${names.slice(0, MAX_NAMES).join(', ')}${more}`];
}
