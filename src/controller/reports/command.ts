/*
 * `plegwatch report`: the reports of one or several clusters, read from SQL. Works without Kubernetes and without a running controller.
 */
import { and, eq, isNull } from 'drizzle-orm';
import { ordered } from '../../platform/ordered.ts';
import { bytewise, oneOf } from '../../store/expressions.ts';
import { inEach, notFound, storesOf } from '../../store/notFound.ts';
import { cluster, node, report } from '../../store/schema/tables.ts';
import type { ReadStore } from '../../store/store.ts';
import { buildStatus } from './build.ts';
import { conditionOf } from './conditions.ts';
import { readEvidence } from './evidence.ts';
import { writeReports } from './outputs.ts';
import type { REPORT_FAILURES, REPORT_OUTPUTS } from './settings.ts';
import type { ReportStatus } from './status.ts';
import type { NamedReport } from './table.ts';

type ReportOutput = (typeof REPORT_OUTPUTS)[number];
type ReportFailure = (typeof REPORT_FAILURES)[number];

interface AskedReports {
  readonly store: ReadStore;
  /** Default: every cluster that the role may read. */
  readonly clusters?: readonly string[] | undefined;
  /** Default: every node. */
  readonly nodes?: readonly string[] | undefined;
}

export interface ReportCommand extends AskedReports {
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
  const { clusters, output, failOn = [] } = command;
  const { reports, now } = await readReports(command);
  return {
    text: writeReports(reports, { output, now, cluster: clusters?.length === 1 ? clusters[0] : undefined }),
    failures: failOn.flatMap((failure) => failureOf(failure, reports)),
  };
}

/** The nodes that have a report, or would have one in Kubernetes. */
const listNodes = (store: ReadStore, clusters: readonly string[] | undefined) =>
  store.query((db) =>
    db
      .select({ node_id: node.node_id, node: node.name, cluster: cluster.name })
      .from(node)
      .innerJoin(cluster, eq(cluster.cluster_id, node.cluster_id))
      .leftJoin(report, eq(report.node_id, node.node_id))
      .where(and(oneOf(cluster.name, clusters ?? null), isNull(report.node_deleted_at)))
      .orderBy(bytewise(cluster.name), bytewise(node.name)),
  );

/** Throws as {@link runReport}. */
export async function readReports({ store, clusters, nodes }: AskedReports) {
  const stores = await storesOf(store, clusters);
  const known = await inEach(stores, async (part) => ({ part, listed: await listNodes(part, clusters) }));
  const names = new Set(known.flatMap(({ listed }) => listed.map((each) => each.node)));
  const missing = nodes?.find((name) => !names.has(name));
  if (missing !== undefined) throw notFound('node', missing, [...names]);
  const parts = await Promise.all(
    known.map(({ part, listed }) =>
      readSome(
        part,
        listed.filter((each) => nodes?.includes(each.node) ?? true),
      ),
    ),
  );
  return {
    reports: ordered(
      parts.map(({ reports }) => reports),
      ({ cluster: ofCluster }) => ofCluster,
      ({ name }) => name,
    ),
    now: parts.find(({ now }) => now !== undefined)?.now,
  };
}

async function readSome(store: ReadStore, asked: Awaited<ReturnType<typeof listNodes>>) {
  const reports: NamedReport[] = [];
  let now: string | undefined;
  for (let at = 0; at < asked.length; at += NODES_PER_QUERY) {
    const some = asked.slice(at, at + NODES_PER_QUERY);
    const { rows } = await store.run(readEvidence, [some.map(({ node_id }) => node_id)]);
    const byId = new Map(rows.map((row) => [row.node_id, row]));
    for (const { node_id, cluster: ofCluster } of some) {
      const row = byId.get(node_id);
      // The node was removed after it was listed.
      if (row === undefined) continue;
      now ??= row.now;
      const status = buildStatus(row);
      reports.push({ cluster: ofCluster, name: row.node, createdAt: row.created_at, status });
    }
  }
  return { reports, now };
}

const FAILURES: Readonly<Record<ReportFailure, (status: ReportStatus) => boolean>> = {
  missed: ({ missed }) => (missed?.last24h ?? 0) > 0,
  fallback: ({ mode }) => mode === 'Fallback',
  unknown: ({ mode }) => mode === 'Unknown',
  incomplete: (status) => conditionOf(status, 'EvidenceComplete')?.status !== 'True',
  silent: (status) => conditionOf(status, 'AgentReporting')?.status !== 'True',
};

function failureOf(failure: ReportFailure, reports: readonly NamedReport[]): string[] {
  const names = reports.filter(({ status }) => FAILURES[failure](status)).map(({ name }) => name);
  if (names.length === 0) return [];
  const rest = names.length - MAX_NAMES;
  const more = rest > 0 ? ` and ${rest} more` : '';
  return [`${failure}: ${names.slice(0, MAX_NAMES).join(', ')}${more}`];
}
