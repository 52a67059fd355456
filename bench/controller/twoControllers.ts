/*
 * Two controllers that share the queues: how much faster than one they drain them, and what becomes of records when one of the two is killed
 * every few seconds.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { barPlot } from '../barPlot.ts';
import { median } from '../statistics.ts';
import { type ControllerSystem, startControllerSystem } from './controllerSystem.ts';
import { drained, fill, timedDrain } from './drain.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { preparedBatches } from './preparedBatches.ts';

const QUEUES = 16;
const NODES = 100;
const RECORDS = 20;
const ROUNDS = SHORT ? 1 : 3;
const BATCHES_A_NODE = SHORT ? 4 : 15;
/** The batches for the rounds in which controllers are killed. */
const UNDER_KILLS_A_NODE = SHORT ? 40 : 120;
const KILL_EVERY_MS = 3_000;

export const twoControllers: BenchPart = {
  name: 'replicas',
  title: 'Two controllers',
  async run() {
    const system = await startControllerSystem({ queues: QUEUES });
    try {
      const all = preparedBatches(NODES, 2 + 2 * ROUNDS * BATCHES_A_NODE + UNDER_KILLS_A_NODE, RECORDS);
      const next = (batchesANode: number) => all.splice(0, NODES * batchesANode);
      const total = all.length * RECORDS;
      const rates: Record<'one' | 'two', number[]> = { one: [], two: [] };
      for (const count of ['one', 'two'] as const) {
        if (count === 'two') await system.addController();
        // Epochs, contexts and partitions are there before, and its code has run once.
        await fill(system, next(1));
        await drained(system);
        for (let round = 0; round < ROUNDS; round += 1) {
          log(`replicas: ${count}, round ${round + 1} of ${ROUNDS}`);
          const batches = next(BATCHES_A_NODE);
          rates[count].push((await timedDrain(system, batches, batches.length * RECORDS)).rate);
        }
      }
      const batches = next(UNDER_KILLS_A_NODE);
      log(`replicas: ${batches.length * RECORDS} records, one of two killed every ${KILL_EVERY_MS / 1000} s`);
      for (const each of system.controllers) await each.kill('SIGSTOP');
      await fill(system, batches);
      const began = performance.now();
      for (const each of system.controllers) await each.kill('SIGCONT');
      const kills = await killWhileBusy(system);
      const seconds = Math.round((performance.now() - began) / 1000);
      const stored = await storedRecords(system.postgres.url);
      const ratio = median(rates.two) / median(rates.one);
      return {
        rows: [
          {
            what: 'two controllers against one, batches of 20 records',
            figure: `${ratio.toFixed(2)} × (${Math.round(median(rates.two))} against ${Math.round(median(rates.one))} records/s)`,
          },
          {
            what: 'records stored, one of two killed every few seconds',
            figure: `${stored.rows} of ${total}, ${stored.rows - stored.distinct} twice (${kills} kills in ${seconds} s)`,
            budget: 'all, each once',
            met: kills > 0 && stored.rows === total && stored.distinct === total,
          },
        ],
        plots: [
          {
            file: 'replicas.svg',
            svg: barPlot({
              title: 'Queues drained by one and two controllers',
              unit: '1,000 records a second',
              groups: [
                {
                  name: `batches of ${RECORDS}`,
                  bars: [
                    { name: 'one', mean: median(rates.one) / 1_000 },
                    { name: 'two', mean: median(rates.two) / 1_000 },
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

/** Kills the controllers in turns, and starts each again, until nothing waits. Returns how often. */
async function killWhileBusy(system: ControllerSystem): Promise<number> {
  let kills = 0;
  for (;;) {
    await delay(KILL_EVERY_MS);
    if ((await system.left()) === 0) return kills;
    const one: LocalPlegwatch | undefined = system.controllers[kills % system.controllers.length];
    await one?.kill('SIGKILL');
    kills += 1;
    await one?.restart();
  }
}

async function storedRecords(databaseUrl: string): Promise<{ rows: number; distinct: number }> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ rows: number; distinct: number }>(
      `SELECT count(*)::int4 AS rows, count(DISTINCT (node_id, seq))::int4 AS distinct
         FROM (SELECT node_id, seq FROM store.container_event UNION ALL SELECT node_id, seq FROM store.relist_change) AS record`,
    );
    const [counts] = rows;
    if (counts === undefined) throw new Error('no counts');
    return counts;
  } finally {
    await client.end();
  }
}
