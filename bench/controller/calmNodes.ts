/*
 * The cost of 5,000 calm nodes: each sends a record of ten minutes every ten, which also asks what is stored, and shows each other minute that it
 * runs; it asks for the flow settings every minute. From that follows how many such nodes the machine could carry.
 */
import { cpus } from 'node:os';
import { randomFor } from '../../devtools/simulator/random.ts';
import { TrafficNode, type TrafficRates } from '../../test/support/storedBytes.ts';
import { barPlot } from '../barPlot.ts';
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { COMMIT_TIMES, minuteLag } from './commitLag.ts';
import { startControllerSystem } from './controllerSystem.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { type PlannedBatch, SealedSenders } from './sealedSenders.ts';

const QUEUES = 16;
const NODES = SHORT ? 200 : 5_000;
const SECONDS = SHORT ? 10 : 60;
const MINUTE_MS = 60_000;
/** A node on which nothing happens reports this many minutes together. */
const MINUTES = 10;
const IDLE_ASK_MS = 60_000;
const LINGER_MS = 250;
const RATES: TrafficRates = {
  ...{ nodes: NODES, minutes: 10, recorded: 10, pods: 30, relistPeriodMs: 5_000 },
  // No pod starts or ends.
  minutesAPod: Number.MAX_SAFE_INTEGER,
};
/** As many different minutes; each is sent by many nodes. */
const MODELS = 50;
/** Half of what they took before batches were committed together, in shares of a core. */
const BUDGET = { controllerAndPostgres: 0.15, redis: 0.03 };

export const calmNodes: BenchPart = {
  name: 'calm',
  title: `${NODES.toLocaleString('en')} calm nodes`,
  async run() {
    const system = await startControllerSystem({ queues: QUEUES, postgres: COMMIT_TIMES });
    try {
      const names = Array.from({ length: NODES }, (_, n) => `node-${n}`);
      log(`calm: the first batches of ${NODES} nodes`);
      const senders = await SealedSenders.start(system, names);
      try {
        log(`calm: ${SECONDS} s`);
        const plan = planOf(names);
        const played = await senders.play(plan, IDLE_ASK_MS);
        const lag = await minuteLag(system.postgres.url, played.from, played.to);
        const seconds = (played.to - played.from) / 1000;
        const share = (ms: number) => ms / 1000 / seconds;
        const { controller, postgres, redis } = played.used;
        const [together, all] = [share(controller + postgres), share(controller + postgres + redis)];
        const limit = NODES * Math.min(1 / share(controller), cpus().length / all);
        const rows: TableRow[] = [
          {
            what: 'controller and Postgres',
            figure: `${percent(together)} of a core (${percent(share(controller))} and ${percent(share(postgres))})`,
            ...judged(together, BUDGET.controllerAndPostgres),
          },
          {
            what: 'Redis',
            figure: `${percent(share(redis))} of a core`,
            ...judged(share(redis), BUDGET.redis),
          },
          {
            what: '  from a record of minutes to its row: p99 (p50, longest)',
            figure: `${lag.p99.toFixed(0)} ms (${lag.p50.toFixed(0)}, ${lag.max.toFixed(0)}), of these ${LINGER_MS} in the agent`,
          },
          {
            what: '  batches',
            figure: `${(plan.length / seconds).toFixed(0)} a second, sent ${Math.round(quantile(played.late, 0.99))} ms late (p99); ${played.unanswered} still wait; senders ${percent(share(played.sendersMs))} of a core`,
          },
          {
            what: '  such nodes that would fill this machine, or one core with the controller, by arithmetic',
            figure: `${Math.floor(limit / 1_000).toLocaleString('en')},000`,
          },
        ];
        const svg = barPlot({
          title: `What ${NODES.toLocaleString('en')} calm nodes take`,
          unit: '% of a core',
          groups: [
            {
              name: 'one minute',
              bars: [
                { name: 'controller', mean: 100 * share(controller) },
                { name: 'Postgres', mean: 100 * share(postgres) },
                { name: 'Redis', mean: 100 * share(redis) },
              ],
            },
          ],
        });
        return { rows, plots: [{ file: 'calm.svg', svg }] };
      } finally {
        await senders.close();
      }
    } finally {
      await system.stop();
    }
  },
};

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** The budgets are for all nodes. */
const judged = (share: number, budget: number): Pick<TableRow, 'budget' | 'met'> =>
  SHORT ? {} : { budget: `≤ ${percent(budget)}`, met: share <= budget };

function planOf(names: readonly string[]): PlannedBatch[] {
  const models = Array.from({ length: MODELS }, (_, n) => new TrafficNode(n, 10 * MINUTE_MS, RATES));
  const untilMs = 1_000 * SECONDS;
  const batches = names.map((node, n) => {
    const random = randomFor('calm', n);
    const batch = (at: number, records: PlannedBatch['records']) => ({ node, at, objects: [], records });
    const ended = random.between(0, MINUTE_MS);
    const minute = models[n % MODELS]?.calmMinutes(1, MINUTES);
    if (minute === undefined) throw new Error('no minute');
    return n % MINUTES === 0
      ? batch(ended + LINGER_MS, ({ wall }) => [{ ...minute, wall: wall(ended) }])
      : { ...batch(ended, () => []), isSign: true };
  });
  return batches.filter(({ at }) => at < untilMs).sort((a, b) => a.at - b.at);
}
