/*
 * GET /api/fleet: every node with its mode, its misses and how complete its evidence is.
 */
import type { FleetAnswer, FleetNode } from '../api.ts';
import { parametersOf } from '../parameters.ts';
import type { Reader } from './reader.ts';
import countFleetSql from './sql/countFleet.sql';
import readFleetSql from './sql/readFleet.sql';

const MAX_NODES = 20_000;

interface ClusterRow {
  readonly name: string;
  readonly nodes: number;
  readonly now: string;
}

export async function fleetAnswer({ clusters, read }: Reader, query: URLSearchParams): Promise<FleetAnswer> {
  parametersOf(query, []);
  return read(async (sql) => {
    const counted = await sql.run<ClusterRow>({ text: countFleetSql }, [clusters]);
    const { rows: nodes } = await sql.run<FleetNode>({ text: readFleetSql }, [clusters, MAX_NODES]);
    const total = counted.rows.reduce((sum, cluster) => sum + cluster.nodes, 0);
    return {
      now: counted.rows[0]?.now ?? new Date().toISOString(),
      clusters: counted.rows.map(({ name, nodes: count }) => ({ name, nodes: count })),
      nodes,
      leftOut: total > nodes.length ? total - nodes.length : null,
      empty: nodes.length > 0 ? null : whyNone(counted.rows.length, clusters),
    };
  });
}

function whyNone(known: number, asked: readonly string[] | null): string {
  if (known > 0)
    return 'No node is known yet: no agent has reported, and no controller has listed the Nodes.';
  return asked === null
    ? 'The database has no cluster, or the role of plegwatch ui may read none: store.grant_reader grants it.'
    : `The database has no cluster ${asked.join(', ')}, or the role of plegwatch ui may not read it: store.grant_reader grants it.`;
}
