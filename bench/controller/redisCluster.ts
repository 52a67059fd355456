/*
 * Queues in a Redis Cluster of three masters, beside those in one Redis: what draining them costs. Two systems take turns, in rounds, with the
 * same batches.
 */
import { barPlot } from '../barPlot.ts';
import { median } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { type ControllerSystem, startControllerSystem } from './controllerSystem.ts';
import { type Drain, drained, fill, timedDrain } from './drain.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { preparedBatches } from './preparedBatches.ts';

const QUEUES = 16;
const MASTERS = 3;
const NODES = 100;
const ROUNDS = SHORT ? 2 : 5;
const SIZES = SHORT
  ? [{ records: 20, batchesANode: 4 }]
  : [
      { records: 20, batchesANode: 10 },
      { records: 500, batchesANode: 1 },
    ];

interface Size {
  readonly records: number;
  readonly one: readonly Drain[];
  readonly cluster: readonly Drain[];
}

export const redisCluster: BenchPart = {
  name: 'redis-cluster',
  title: 'Queues in a Redis Cluster',
  async run() {
    const one = await startControllerSystem({ queues: QUEUES });
    try {
      const cluster = await startControllerSystem({ queues: QUEUES, masters: MASTERS });
      try {
        const sizes: Size[] = [];
        for (const size of SIZES) sizes.push(await roundsOf(one, cluster, size));
        return { rows: sizes.flatMap(rowsOf), plots: [{ file: 'redis-cluster.svg', svg: plotOf(sizes) }] };
      } finally {
        await cluster.stop();
      }
    } finally {
      await one.stop();
    }
  },
};

async function roundsOf(
  one: ControllerSystem,
  cluster: ControllerSystem,
  { records, batchesANode }: (typeof SIZES)[number],
): Promise<Size> {
  const all = preparedBatches(NODES, 1 + ROUNDS * batchesANode, records);
  for (const system of [one, cluster]) {
    await fill(system, all.slice(0, NODES));
    await drained(system);
  }
  const drains: { one: Drain[]; cluster: Drain[] } = { one: [], cluster: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    log(`Redis Cluster: batches of ${records}, round ${round + 1} of ${ROUNDS}`);
    const from = NODES * (1 + round * batchesANode);
    const batches = all.slice(from, from + NODES * batchesANode);
    drains.one.push(await timedDrain(one, batches, batches.length * records));
    drains.cluster.push(await timedDrain(cluster, batches, batches.length * records));
  }
  return { records, ...drains };
}

function rowsOf({ records, one, cluster }: Size): TableRow[] {
  const ratios = cluster.map(({ rate }, round) => rate / (one[round]?.rate ?? Number.NaN));
  const rateOf = (drains: readonly Drain[]) => {
    const rate = median(drains.map((each) => each.rate));
    return `${Math.round(rate / records)} batches/s, ${Math.round(rate)} records/s`;
  };
  const costOf = (drains: readonly Drain[]) =>
    (['controller', 'postgres', 'redis'] as const)
      .map((part) => `${median(drains.map(({ cost }) => cost[part])).toFixed(1)} µs`)
      .join(', ');
  return [
    {
      what: `batches of ${records} records: ${MASTERS} masters against one Redis`,
      figure: `${median(ratios).toFixed(2)} × (rounds ${ratios.map((each) => each.toFixed(2)).join(', ')})`,
    },
    { what: `  drained from ${MASTERS} masters`, figure: rateOf(cluster) },
    { what: '  drained from one Redis', figure: rateOf(one) },
    {
      what: `  a record from ${MASTERS} masters: controller, Postgres, all of Redis`,
      figure: costOf(cluster),
    },
    { what: '  from one Redis', figure: costOf(one) },
  ];
}

const plotOf = (sizes: readonly Size[]): string =>
  barPlot({
    title: 'Queues drained from one Redis and from a cluster',
    unit: '1,000 records a second',
    groups: sizes.map(({ records, one, cluster }) => ({
      name: `batches of ${records}`,
      bars: [
        { name: 'one Redis', mean: median(one.map(({ rate }) => rate)) / 1_000 },
        { name: `${MASTERS} masters`, mean: median(cluster.map(({ rate }) => rate)) / 1_000 },
      ],
    })),
  });
