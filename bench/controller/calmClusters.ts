/*
 * Several clusters of 5,000 calm nodes, each with a controller, in one Postgres: what they take of it beside one such cluster.
 */
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { calmMinute, NODES, percent } from './calmNodes.ts';
import { type BenchPart, CLUSTER_COUNTS } from './part.ts';

export const calmClusters: BenchPart = {
  name: 'clusters',
  title: `Clusters of ${NODES.toLocaleString('en')} calm nodes in one Postgres`,
  async run() {
    const rows: TableRow[] = [];
    let one: number | null = null;
    for (const count of CLUSTER_COUNTS) {
      const { used, lag, late, unanswered } = await calmMinute(
        Array.from({ length: count }, (_, n) => `cluster-${n}`),
      );
      const each = used.postgres / count;
      one ??= each;
      rows.push({
        what: `${(count * NODES).toLocaleString('en')} nodes in ${count} cluster${count === 1 ? '' : 's'}: Postgres`,
        figure:
          `${percent(used.postgres)} of a core, ${(each / one).toFixed(2)} × a cluster; controllers ${percent(used.controller)}, Redis ${percent(used.redis)}; ` +
          `record to row p99 ${lag.p99.toFixed(0)} ms; sent ${Math.round(quantile(late, 0.99))} ms late (p99), ${unanswered} still wait`,
      });
    }
    return { rows, plots: [] };
  },
};
