/*
 * The cost of 5,000 calm nodes: each sends a record of ten minutes every ten, which also asks what is stored, and shows each other minute that it
 * runs; it asks for the flow settings every minute. From that follows how many such nodes the machine could carry.
 */
import { cpus } from 'node:os';
import { randomFor } from '../../devtools/simulator/random.ts';
import { CLUSTER } from '../../test/support/batches.ts';
import { TrafficNode, type TrafficRates } from '../../test/support/storedBytes.ts';
import { barPlot } from '../barPlot.ts';
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { COMMIT_TIMES, type CommitLag, minuteLag } from './commitLag.ts';
import { type ProcessorTime, startControllerSystem } from './controllerSystem.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { type PlannedBatch, SealedSenders, sharesOf } from './sealedSenders.ts';

const QUEUES = 16;
export const NODES = SHORT ? 200 : 5_000;
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
/** Half as much again as they take, in shares of a core. */
const BUDGET = { controllerAndPostgres: 0.1, redis: 0.03 };

export const calmNodes: BenchPart = {
  name: 'calm',
  title: `${NODES.toLocaleString('en')} calm nodes`,
  async run() {
    const { used, batchesASecond, late, unanswered, senders, lag } = await calmMinute([CLUSTER]);
    const { controller, postgres, redis } = used;
    const [together, all] = [controller + postgres, controller + postgres + redis];
    const limit = NODES * Math.min(1 / controller, cpus().length / all);
    const rows: TableRow[] = [
      {
        what: 'controller and Postgres',
        figure: `${percent(together)} of a core (${percent(controller)} and ${percent(postgres)})`,
        ...judged(together, BUDGET.controllerAndPostgres),
      },
      {
        what: 'Redis',
        figure: `${percent(redis)} of a core`,
        ...judged(redis, BUDGET.redis),
      },
      {
        what: '  from a record of minutes to its row: p99 (p50, longest)',
        figure: `${lag.p99.toFixed(0)} ms (${lag.p50.toFixed(0)}, ${lag.max.toFixed(0)}), of these ${LINGER_MS} in the agent`,
      },
      {
        what: '  batches',
        figure: `${batchesASecond.toFixed(0)} a second, sent ${Math.round(quantile(late, 0.99))} ms late (p99); ${unanswered} still wait; senders ${percent(senders)} of a core`,
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
            { name: 'controller', mean: 100 * controller },
            { name: 'Postgres', mean: 100 * postgres },
            { name: 'Redis', mean: 100 * redis },
          ],
        },
      ],
    });
    return { rows, plots: [{ file: 'calm.svg', svg }] };
  },
};

/** In shares of a core. */
interface CalmMinute {
  readonly used: ProcessorTime;
  readonly senders: number;
  readonly batchesASecond: number;
  /** In milliseconds. */
  readonly late: readonly number[];
  readonly lag: CommitLag;
  readonly unanswered: number;
}

/** 5,000 calm nodes of each cluster, for a minute. */
export async function calmMinute(clusters: readonly string[]): Promise<CalmMinute> {
  const system = await startControllerSystem({ queues: QUEUES, clusters, postgres: COMMIT_TIMES });
  const senders: SealedSenders[] = [];
  try {
    const names = Array.from({ length: NODES }, (_, n) => `node-${n}`);
    for (const cluster of clusters) {
      log(`calm: the first batches of ${NODES} nodes`);
      senders.push(await SealedSenders.start(system, names, cluster));
    }
    log(`calm: ${SECONDS} s`);
    const plan = planOf(names);
    const played = await Promise.all(senders.map((each) => each.play(plan, IDLE_ASK_MS)));
    const from = Math.min(...played.map((each) => each.from));
    const to = Math.max(...played.map((each) => each.to));
    return {
      ...sharesOf(played),
      batchesASecond: (1000 * plan.length * clusters.length) / (to - from),
      late: played.flatMap(({ late }) => late),
      lag: await minuteLag(system.postgres.url, from, to),
      unanswered: Math.min(...played.map(({ unanswered }) => unanswered)),
    };
  } finally {
    for (const each of senders) each.close();
    await system.stop();
  }
}

export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

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
