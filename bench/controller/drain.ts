/*
 * How fast a controller drains its queues, beside the bare tables in the same run, in rounds that take turns.
 *
 * The controller is stopped while the queues are filled, so that neither the senders nor its start count.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { batchId, encodeBatch } from '../../src/protocol/batch.ts';
import { inboxKey, queueOf } from '../../src/protocol/redisKeys.ts';
import { CLUSTER } from '../../test/support/batches.ts';
import { barPlot } from '../barPlot.ts';
import { median } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { BareTables } from './bareTables.ts';
import { type ControllerSystem, type ProcessorTime, startControllerSystem } from './controllerSystem.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { type PreparedBatch, preparedBatches } from './preparedBatches.ts';

const QUEUES = 16;
const NODES = 100;
const ROUNDS = SHORT ? 2 : 5;
const SIZES = SHORT
  ? [
      { records: 20, batchesANode: 4 },
      { records: 500, batchesANode: 1 },
    ]
  : [
      { records: 20, batchesANode: 15 },
      { records: 500, batchesANode: 2 },
    ];
const MIN_RATIO = 0.7;

export interface Drain {
  /** Records a second. */
  readonly rate: number;
  /** Microseconds a record. */
  readonly cost: ProcessorTime;
}

interface Round extends Drain {
  readonly bareRate: number;
  readonly bareCost: number;
}

interface Size {
  readonly records: number;
  readonly rounds: readonly Round[];
}

export const drain: BenchPart = {
  name: 'drain',
  title: 'Full queues, drained by one controller',
  async run() {
    const system = await startControllerSystem({ queues: QUEUES });
    const bare = new BareTables(system.databaseUrl);
    try {
      const sizes: Size[] = [];
      for (const { records, batchesANode } of SIZES)
        sizes.push({ records, rounds: await roundsOf(system, bare, { records, batchesANode }) });
      return { rows: sizes.flatMap(rowsOf), plots: [{ file: 'drain.svg', svg: plotOf(sizes) }] };
    } finally {
      await system.stop();
    }
  },
};

async function roundsOf(
  system: ControllerSystem,
  bare: BareTables,
  { records, batchesANode }: (typeof SIZES)[number],
): Promise<Round[]> {
  const all = preparedBatches(NODES, 1 + ROUNDS * batchesANode, records);
  // Epochs, contexts and partitions are there before.
  await fill(system, all.slice(0, NODES));
  await drained(system);
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    log(`batches of ${records}, round ${round + 1} of ${ROUNDS}`);
    const from = NODES * (1 + round * batchesANode);
    const batches = all.slice(from, from + NODES * batchesANode);
    const count = batches.length * records;
    const drainedRound = await timedDrain(system, batches, count);
    const inserted = await bare.insert(batches);
    rounds.push({
      ...drainedRound,
      bareRate: (1_000 * count) / inserted.ms,
      bareCost: (1_000 * inserted.processorMs) / count,
    });
  }
  return rounds;
}

/** The controllers, which were stopped while their queues were filled, drain them until at most this many inputs and jobs are left. */
export async function timedDrain(
  system: ControllerSystem,
  batches: readonly PreparedBatch[],
  records: number,
  left = 0,
): Promise<Drain> {
  for (const each of system.controllers) await each.kill('SIGSTOP');
  await fill(system, batches);
  const used = system.countProcessorTime();
  const began = performance.now();
  for (const each of system.controllers) await each.kill('SIGCONT');
  await drained(system, left);
  const ms = performance.now() - began;
  const cost = used();
  const perRecord = (each: number) => (1_000 * each) / records;
  return {
    rate: (1_000 * records) / ms,
    cost: {
      controller: perRecord(cost.controller),
      postgres: perRecord(cost.postgres),
      redis: perRecord(cost.redis),
    },
  };
}

export async function fill(system: ControllerSystem, batches: readonly PreparedBatch[]): Promise<void> {
  for (const batch of batches) {
    const data = JSON.stringify(await encodeBatch(batch));
    await system.client.hsetnx(inboxKey(CLUSTER, queueOf(batch.node, system.queues)), batchId(batch), data);
  }
}

export async function drained(system: ControllerSystem, left = 0): Promise<void> {
  while ((await system.left()) > left) await delay(50);
}

function rowsOf({ records, rounds }: Size): TableRow[] {
  const of = (value: (round: Round) => number) => median(rounds.map(value));
  const ratios = rounds.map(({ rate, bareRate }) => rate / bareRate);
  const ratio = median(ratios);
  const rate = of((round) => round.rate);
  const us = (value: (round: Round) => number) => `${of(value).toFixed(1)} µs`;
  return [
    {
      what: `batches of ${records} records: controller against bare tables`,
      figure: `${ratio.toFixed(2)} × (rounds ${ratios.map((each) => each.toFixed(2)).join(', ')})`,
      budget: `≥ ${MIN_RATIO} ×`,
      met: ratio >= MIN_RATIO,
    },
    { what: '  drained', figure: `${Math.round(rate / records)} batches/s, ${Math.round(rate)} records/s` },
    { what: '  bare tables', figure: `${Math.round(of(({ bareRate }) => bareRate))} records/s` },
    {
      what: '  processor time of a record: controller, Postgres, Redis',
      figure: [
        us(({ cost }) => cost.controller),
        us(({ cost }) => cost.postgres),
        us(({ cost }) => cost.redis),
      ].join(', '),
    },
    { what: '  Postgres of bare tables', figure: us(({ bareCost }) => bareCost) },
  ];
}

const plotOf = (sizes: readonly Size[]): string =>
  barPlot({
    title: 'Queues drained by one controller',
    unit: '1,000 records a second',
    groups: sizes.map(({ records, rounds }) => ({
      name: `batches of ${records}`,
      bars: [
        { name: 'controller', mean: median(rounds.map(({ rate }) => rate)) / 1_000 },
        { name: 'bare tables', mean: median(rounds.map(({ bareRate }) => bareRate)) / 1_000 },
      ],
    })),
  });
