/*
 * GET /api/fleet: every node with its mode, its misses and how complete its evidence is.
 *
 * Every open page asks again every ten seconds, and all of them see the same clusters: those of the reader. One answer is read for all who ask within
 * a few seconds; of a very large fleet, for which Postgres takes longer, so rarely that it is busy for a twentieth of the time.
 */
import { eq, sql } from 'drizzle-orm';
import { heldUpBy } from '../../controller/reports/conditions.ts';
import { ordered } from '../../platform/ordered.ts';
import { bytewise, databaseNow, oneOf, typed } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { int4, timestamptz } from '../../store/schema/columns.ts';
import { cluster, node, report } from '../../store/schema/tables.ts';
import type { RowOf } from '../../store/statement.ts';
import type { FleetAnswer, FleetNode } from '../api.ts';
import { parametersOf } from '../parameters.ts';
import { keptBy, remembered } from '../remembered.ts';
import { withAgentState } from './agentState.ts';
import { type Reader, readEach } from './reader.ts';
import { readFleet } from './statements.ts';

const MAX_NODES = 20_000;
/** From half of the time between two questions of a page on. */
const keptFor = keptBy(20, 5_000, 60_000);

export function fleetAnswers(reader: Reader): (query: URLSearchParams) => Promise<FleetAnswer> {
  const answers = remembered<FleetAnswer>({ keptFor, max: 1 });
  return async (query) => {
    parametersOf(query, []);
    return answers.ask('', () => fleetAnswer(reader));
  };
}

async function fleetAnswer(reader: Reader): Promise<FleetAnswer> {
  const { clusters } = reader;
  const parts = await readEach(reader, (runner) => readNodes(runner, clusters));
  const counted = ordered(
    parts.map((part) => part.counted),
    ({ name }) => name,
  );
  const nodes = ordered(
    parts.map((part) => part.nodes),
    (row) => row.cluster,
    (row) => row.node,
  ).slice(0, MAX_NODES);
  const total = counted.reduce((sum, each) => sum + each.nodes, 0);
  return {
    now: parts[0]?.now ?? new Date().toISOString(),
    clusters: counted.map(({ name, nodes: count }) => ({ name, nodes: count })),
    nodes,
    leftOut: total > nodes.length ? total - nodes.length : null,
    empty: nodes.length > 0 ? null : whyNone(counted.length, clusters),
  };
}

async function readNodes(runner: SqlRunner, clusters: readonly string[] | null) {
  const isThere = sql`${report.node_deleted_at} IS NULL`;
  const count = typed(int4, sql`(count(${node.node_id}) FILTER (WHERE ${isThere}))::int4`);
  const counted = await runner.query((db) =>
    db
      .select({ name: cluster.name, nodes: count, now: typed(timestamptz, databaseNow) })
      .from(cluster)
      .leftJoin(node, eq(node.cluster_id, cluster.cluster_id))
      .leftJoin(report, eq(report.node_id, node.node_id))
      .where(oneOf(cluster.name, clusters))
      .groupBy(cluster.name)
      .orderBy(bytewise(cluster.name)),
  );
  const { rows } = await runner.run(readFleet, [clusters, MAX_NODES]);
  const now = counted[0]?.now ?? new Date().toISOString();
  return { now, counted, nodes: rows.map((row) => fleetNode(now, row)) };
}

function fleetNode(
  now: string,
  { verdict, pod_namespace, pod_name, container_name, container_id, ...row }: RowOf<typeof readFleet>,
): FleetNode {
  const hang = verdict === null ? null : { verdict, pod_namespace, pod_name, container_name, container_id };
  return {
    ...withAgentState(now, row),
    lists: listsOf(hang !== null, row.relistHealthy),
    heldUpBy: hang && heldUpBy(hang),
  };
}

function listsOf(isHung: boolean, isHealthy: boolean | null): FleetNode['lists'] {
  if (isHung) return 'ListHangs';
  if (isHealthy === null) return null;
  return isHealthy ? 'Listing' : 'ListsFailing';
}

function whyNone(known: number, asked: readonly string[] | null): string {
  if (known > 0)
    return 'No node is known yet: no agent has reported, and no controller has listed the Nodes.';
  return asked === null
    ? 'The database has no cluster.'
    : `The database has no cluster ${asked.join(', ')}, or the role of plegwatch ui may not read it: store.grant_reader grants it.`;
}
