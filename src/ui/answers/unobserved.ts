/*
 * GET /api/unobserved: what is not observed of which nodes, and why, in the words of their reports.
 */
import { and, eq, gt, isNotNull, isNull, sql } from 'drizzle-orm';
import { type ObservationRow, unobservedOf } from '../../controller/reports/unobserved.ts';
import { ordered } from '../../platform/ordered.ts';
import { millis } from '../../protocol/units.ts';
import { bytewise, databaseNow, oneOf, typed } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { float8, int4, text, timestamptz } from '../../store/schema/columns.ts';
import { ingest, node, relistMinute, reportCondition } from '../../store/schema/tables.ts';
import { listHang, nodeDetail } from '../../store/schema/views.ts';
import { nullable } from '../../store/statement.ts';
import type { UnobservedAnswer, UnobservedNode, UnobservedReason } from '../api.ts';
import { parametersOf } from '../parameters.ts';
import { remembered } from '../remembered.ts';
import { agentRow } from './agentState.ts';
import { type Reader, readEach } from './reader.ts';

const MAX_NODES = 20_000;
const MAX_REASONS = 50;
const KEPT_FOR = millis(5_000);

export function unobservedAnswers(reader: Reader): (query: URLSearchParams) => Promise<UnobservedAnswer> {
  const answers = remembered<UnobservedAnswer>({ keptFor: () => KEPT_FOR, max: 1 });
  return async (query) => {
    parametersOf(query, []);
    return answers.ask('', () => unobservedAnswer(reader));
  };
}

async function unobservedAnswer(reader: Reader): Promise<UnobservedAnswer> {
  const parts = await readEach(reader, async (runner) => {
    const found = await readNodes(runner, reader.clusters);
    const hangs = await readHangs(runner);
    return { found, rows: found.flatMap((row) => unobservedNode(row, hangs.get(row.nodeId) ?? null)) };
  });
  const rows = ordered(
    parts.map((part) => part.rows),
    (row) => row.cluster,
    (row) => row.node,
  );
  const found = parts.reduce((sum, part) => sum + part.found.length, 0);
  const total = parts.reduce((sum, part) => sum + (part.found[0]?.total ?? 0), 0);
  const reasons = reasonsOf(rows);
  return {
    now: parts.find((part) => part.found.length > 0)?.found[0]?.now ?? new Date().toISOString(),
    nodes: total,
    leftOut: total > found ? total - found : null,
    reasons: reasons.slice(0, MAX_REASONS),
    reasonsLeftOut: Math.max(0, reasons.length - MAX_REASONS),
    rows,
    empty: whyEmpty(total, found, rows.length),
  };
}

/** `lookedAt`: of the nodes; `rows`: what was found of these. */
export function whyEmpty(nodes: number, lookedAt: number, rows: number): string | null {
  if (nodes === 0) return 'No node is known.';
  if (rows > 0) return null;
  return nodes === lookedAt
    ? 'Everything is observed of every node.'
    : `Everything is observed of the ${lookedAt} nodes that were looked at; ${nodes - lookedAt} more were not.`;
}

/** The nodes that have a report, or would have one in Kubernetes, with what their conditions follow from. */
const readNodes = (runner: SqlRunner, clusters: readonly string[] | null) =>
  runner.query((db) =>
    db
      .select({
        ...{ nodeId: nodeDetail.node_id, cluster: nodeDetail.cluster, node: nodeDetail.node },
        ...{ lastSeen: nodeDetail.last_seen, kubeletVersion: nodeDetail.kubelet_version },
        ...{ streamState: nodeDetail.stream_state, streamSince: nodeDetail.stream_since },
        relistReason: nodeDetail.relist_reason,
        ...{ mode: nodeDetail.mode, modeReason: nodeDetail.mode_reason, modeSince: nodeDetail.mode_since },
        ...{ kubeletError: nodeDetail.kubelet_error },
        pool: nodeDetail.pool,
        relistHealthy: nodeDetail.relist_healthy,
        caughtUpMs: typed(float8, sql`store.caught_up_ms(${ingest.said_at}, ${ingest.caught_up_since})`),
        agentStatus: typed(nullable(text), sql`${reportCondition.status}`),
        agentSince: typed(nullable(timestamptz), sql`${reportCondition.since}`),
        now: typed(timestamptz, databaseNow),
        total: typed(int4, sql`(count(*) OVER ())::int4`),
      })
      .from(nodeDetail)
      .innerJoin(node, eq(node.node_id, nodeDetail.node_id))
      .leftJoin(ingest, eq(ingest.cluster_id, node.cluster_id))
      .leftJoin(
        reportCondition,
        and(eq(reportCondition.node_id, node.node_id), eq(reportCondition.type, 'AgentReporting')),
      )
      .where(and(oneOf(nodeDetail.cluster, clusters), isNull(nodeDetail.deleted_at)))
      .orderBy(bytewise(nodeDetail.cluster), bytewise(nodeDetail.node))
      .limit(MAX_NODES),
  );

type NodeRow = Awaited<ReturnType<typeof readNodes>>[number];

/** The lists that hang now, by node: of a quarter of an hour, in which each minute of an agent says so. */
async function readHangs(runner: SqlRunner) {
  const since = sql`now() - interval '15 minutes'`;
  const hanging = await runner.query((db) =>
    db
      .select({ nodeId: relistMinute.node_id })
      .from(relistMinute)
      .where(
        and(
          ...[
            isNotNull(relistMinute.hang_from),
            isNull(relistMinute.hang_to),
            gt(relistMinute.minute, since),
          ],
          sql`${relistMinute.day} >= ((${since}) AT TIME ZONE 'UTC')::date`,
        ),
      )
      .groupBy(relistMinute.node_id),
  );
  const nodes = hanging.map(({ nodeId }) => nodeId);
  if (nodes.length === 0) return new Map<number, NonNullable<ObservationRow['list_hang']>>();
  const { node_id, list_call, from_at, verdict, why } = listHang;
  const { pod_namespace, pod_name, container_name, container_id } = listHang;
  const rows = await runner.query((db) =>
    db
      .select({
        ...{ node_id, list_call, from_at, verdict, why },
        ...{ pod_namespace, pod_name, container_name, container_id },
      })
      .from(listHang)
      .where(and(oneOf(node_id, nodes), isNull(listHang.to_at))),
  );
  return new Map(rows.map((row) => [row.node_id, row]));
}

function unobservedNode(row: NodeRow, hang: ObservationRow['list_hang']): UnobservedNode[] {
  const { cluster, node: name, pool, lastSeen, relistHealthy } = row;
  const found = unobservedOf({
    ...{ ...agentRow(row.now, row), list_hang: hang },
    ...{
      kubelet_version: row.kubeletVersion ?? '',
      stream_since: row.streamSince,
      mode_since: row.modeSince,
    },
    state:
      relistHealthy === null
        ? null
        : {
            ...{ stream_state: row.streamState, mode: row.mode, mode_reason: row.modeReason ?? '' },
            ...{ relist_healthy: relistHealthy, relist_reason: row.relistReason ?? '' },
            kubelet_error: row.kubeletError,
          },
  });
  return found.map((each) => ({ cluster, node: name, pool, ...each, lastSeen }));
}

/** The most frequent first. */
function reasonsOf(rows: readonly UnobservedNode[]): UnobservedReason[] {
  const counts = new Map<string, UnobservedReason & { nodes: number }>();
  for (const { what, reason, cause } of rows) {
    const key = [what, reason, cause].join('.');
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { what, reason, cause, nodes: 1 });
    else known.nodes += 1;
  }
  return [...counts.values()].sort((a, b) => b.nodes - a.nodes);
}
