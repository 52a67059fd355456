/*
 * Whether others wait for a node whose row somebody has locked: one node in each of eight queues is locked, and the others of all queues are
 * drained, in rounds that take turns with rounds without a lock.
 */
import { Client } from 'pg';
import { queueOf } from '../../src/protocol/redisKeys.ts';
import { barPlot } from '../barPlot.ts';
import { median } from '../statistics.ts';
import { type ControllerSystem, startControllerSystem } from './controllerSystem.ts';
import { drained, fill, timedDrain } from './drain.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { type PreparedBatch, preparedBatches } from './preparedBatches.ts';

const QUEUES = 16;
const LOCKED = 8;
const NODES = 100;
const RECORDS = 20;
const ROUNDS = SHORT ? 1 : 5;
const BATCHES_A_NODE = SHORT ? 4 : 10;
const MIN_RATIO = 0.9;

export const lockedNodes: BenchPart = {
  name: 'locks',
  title: 'Eight nodes whose rows are locked',
  async run() {
    const system = await startControllerSystem({ queues: QUEUES });
    try {
      const all = preparedBatches(NODES, 1 + 2 * ROUNDS * BATCHES_A_NODE, RECORDS);
      // Epochs, contexts and partitions are there before.
      await fill(system, all.slice(0, NODES));
      await drained(system);
      const locked = oneOfEachQueue(all);
      const rates: { free: number[]; locked: number[] } = { free: [], locked: [] };
      for (let round = 0; round < 2 * ROUNDS; round += 1) {
        const isLocked = round % 2 === 1;
        log(`locks: round ${round + 1} of ${2 * ROUNDS}, ${isLocked ? 'with' : 'without'} locks`);
        const from = NODES * (1 + round * BATCHES_A_NODE);
        const batches = all.slice(from, from + NODES * BATCHES_A_NODE);
        rates[isLocked ? 'locked' : 'free'].push(await rateOfOthers(system, batches, { locked, isLocked }));
      }
      const ratio = median(rates.locked) / median(rates.free);
      const [free, waiting] = [rates.free, rates.locked].map((each) => Math.round(median(each)));
      return {
        rows: [
          {
            what: `the other nodes while ${LOCKED} of ${NODES} are locked, in ${LOCKED} of ${QUEUES} queues`,
            figure: `${ratio.toFixed(2)} × (${waiting} against ${free} records/s)`,
            budget: `≥ ${MIN_RATIO} ×`,
            met: ratio >= MIN_RATIO,
          },
        ],
        plots: [
          {
            file: 'locks.svg',
            svg: barPlot({
              title: 'What the other nodes store',
              unit: '1,000 records a second',
              groups: [
                {
                  name: `batches of ${RECORDS}`,
                  bars: [
                    { name: 'no locks', mean: median(rates.free) / 1_000 },
                    { name: '8 locked', mean: median(rates.locked) / 1_000 },
                  ],
                },
              ],
            }),
          },
        ],
      };
    } finally {
      await system.stop();
    }
  },
};

/** Names of nodes, each of another queue. */
function oneOfEachQueue(batches: readonly PreparedBatch[]): ReadonlySet<string> {
  const byQueue = new Map(batches.map(({ node }) => [queueOf(node, QUEUES), node]));
  return new Set([...byQueue.values()].slice(0, LOCKED));
}

/** How many records a second are stored of the nodes that are not locked. */
async function rateOfOthers(
  system: ControllerSystem,
  batches: readonly PreparedBatch[],
  { locked, isLocked }: { readonly locked: ReadonlySet<string>; readonly isLocked: boolean },
): Promise<number> {
  const waiting = batches.filter(({ node }) => locked.has(node)).length;
  const others = (batches.length - waiting) * RECORDS;
  // Without locks the same nodes send the same, which is drained with the rest and is no more than the rest would wait for.
  if (!isLocked) return (await timedDrain(system, batches, others)).rate;
  const holder = new Client({ connectionString: system.postgres.url });
  await holder.connect();
  try {
    await holder.query('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0');
    await holder.query('SELECT 1 FROM store.node WHERE name = ANY ($1) FOR UPDATE', [[...locked]]);
    // Each waiting batch is an input and a job.
    const { rate } = await timedDrain(system, batches, others, 2 * waiting);
    await holder.query('COMMIT');
    await drained(system);
    return rate;
  } finally {
    await holder.end();
  }
}
