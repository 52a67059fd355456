/*
 * The time from an event on a node to its committed row, while a fleet has 2,000 events a second, with more and more nodes. The senders are
 * sealed batches (sealedSenders.ts), which leave most of the machine to what is measured; once more they are the agents' own code
 * (benchFleet.ts), to show how far the two differ.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../src/platform/errors.ts';
import { barPlot } from '../barPlot.ts';
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { startFleet } from './benchFleet.ts';
import { churnPlan, lifetimeMs, PODS } from './churnPlan.ts';
import { COMMIT_TIMES, type CommitLag, eventLag } from './commitLag.ts';
import { type ControllerSystem, type ProcessorTime, startControllerSystem } from './controllerSystem.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { SealedSenders } from './sealedSenders.ts';

const QUEUES = 16;
const EVENTS_A_SECOND = SHORT ? 500 : 2_000;
const SIZES = [50, 100, 200, 1_000];
/** The size that the budget is for. */
const BUDGET_NODES = 1_000;
const BUDGET_MS = 1_000;
const SECONDS = SHORT ? 5 : 30;
const BUDGET_SECONDS = SHORT ? 5 : 60;
const AGENTS = SHORT ? 20 : 100;
/** Until pods that started together have spread, and new code has run. */
const SETTLE_MS = SHORT ? 2_000 : 10_000;
/** How long the rows of the last events are waited for. */
const STORED_WITHIN_MS = 30_000;
const ASK_EVERY_MS = 5_000;

interface Measured {
  readonly senders: string;
  readonly nodes: number;
  readonly lag: CommitLag;
  readonly seconds: number;
  readonly used: ProcessorTime;
  readonly sendersMs: number;
  /** Batches a second; null where they were not counted. */
  readonly batches: number | null;
  readonly lateMs: number | null;
  /** Jobs that were left a while after the end. */
  readonly left: number;
}

export const eventToRow: BenchPart = {
  name: 'lag',
  title: `From event to row, ${EVENTS_A_SECOND.toLocaleString('en')} events a second`,
  async run() {
    const measured: Measured[] = [];
    const failed: TableRow[] = [];
    const attempt = async (what: string, work: (system: ControllerSystem) => Promise<Measured>) => {
      log(`lag: ${what}`);
      try {
        measured.push(await withSystem(work));
      } catch (error) {
        failed.push({ what, figure: `failed: ${messageOf(error)}`, met: false });
      }
    };
    for (const nodes of SIZES) await attempt(`${nodes} nodes`, (system) => ofSealed(system, nodes));
    await attempt(`${AGENTS} agents`, (system) => ofAgents(system, AGENTS));
    const plotted = measured.filter(({ lag }) => Number.isFinite(lag.p99));
    return {
      rows: [...measured.flatMap(rowsOf), ...failed],
      plots: plotted.length === 0 ? [] : [{ file: 'lag.svg', svg: plotOf(plotted) }],
    };
  },
};

async function withSystem(work: (system: ControllerSystem) => Promise<Measured>): Promise<Measured> {
  const system = await startControllerSystem({ queues: QUEUES, postgres: COMMIT_TIMES });
  try {
    return await work(system);
  } finally {
    await system.stop();
  }
}

async function ofSealed(system: ControllerSystem, nodes: number): Promise<Measured> {
  const names = Array.from({ length: nodes }, (_, n) => `node-${n}`);
  const seconds = nodes === BUDGET_NODES ? BUDGET_SECONDS : SECONDS;
  const senders = await SealedSenders.start(system, names);
  try {
    const plan = churnPlan({ nodes: names, eventsASecond: EVENTS_A_SECOND, seconds });
    const { from, to, late, used, sendersMs, unanswered } = await senders.play(plan, ASK_EVERY_MS);
    return {
      ...{ senders: 'sealed batches', nodes, seconds: (to - from) / 1000, used, sendersMs, left: unanswered },
      lag: await eventLag(system.postgres.url, from, to),
      batches: plan.length / seconds,
      lateMs: quantile(late, 0.99),
    };
  } finally {
    await senders.close();
  }
}

async function ofAgents(system: ControllerSystem, nodes: number): Promise<Measured> {
  const fleet = await startFleet(system, {
    // One process cannot drive them: its thread would be what is measured.
    ...{ nodes, processes: 2 },
    flags: {
      pods: `${PODS}`,
      'pod-lifetime': `${lifetimeMs(nodes, EVENTS_A_SECOND)}ms`,
      'start-within': '10s',
    },
  });
  try {
    await delay(SETTLE_MS);
    const [from, before] = [Date.now(), fleet.processorMs()];
    const counted = system.countProcessorTime();
    await delay(1_000 * SECONDS);
    const [to, used, sendersMs] = [Date.now(), counted(), fleet.processorMs() - before];
    fleet.stopChurn();
    const deadline = Date.now() + STORED_WITHIN_MS;
    while (fleet.totals().unacknowledged > 0 && Date.now() < deadline) await delay(500);
    return {
      ...{ senders: "the agents' own code", nodes, seconds: (to - from) / 1000, used, sendersMs },
      lag: await eventLag(system.postgres.url, from, to),
      ...{ batches: null, lateMs: null, left: await system.left() },
    };
  } finally {
    await fleet.stop();
  }
}

function rowsOf({
  senders,
  nodes,
  lag,
  seconds,
  used,
  sendersMs,
  batches,
  lateMs,
  left,
}: Measured): TableRow[] {
  const share = (ms: number) => `${(ms / seconds / 10).toFixed(0)} %`;
  const isMet = lag.p99 <= BUDGET_MS && left === 0;
  const sent = [
    `${Math.round(lag.rows / seconds)} events/s`,
    ...(batches === null ? [] : [`${Math.round(batches)} batches/s`]),
    ...(lateMs === null ? [] : [`sent ${Math.round(lateMs)} ms late (p99)`]),
  ];
  return [
    {
      what: `${nodes} nodes, ${senders}: p99 (p50, longest)`,
      figure: `${ms(lag.p99)} (${ms(lag.p50)}, ${ms(lag.max)})${left > 0 ? `; ${left} batches still wait` : ''}`,
      ...(nodes === BUDGET_NODES ? { budget: `≤ ${BUDGET_MS} ms`, met: isMet } : {}),
    },
    { what: '  stored', figure: sent.join(', ') },
    {
      what: '  of a core: controller, Postgres, Redis; senders',
      figure: `${share(used.controller)}, ${share(used.postgres)}, ${share(used.redis)}; ${share(sendersMs)}`,
    },
  ];
}

const ms = (value: number): string => `${Math.round(value).toLocaleString('en')} ms`;

const plotOf = (measured: readonly Measured[]): string =>
  barPlot({
    title: 'From event to row',
    unit: 'ms',
    groups: measured.map(({ nodes, senders, lag }) => ({
      name: `${nodes} ${senders === 'sealed batches' ? 'nodes' : 'real agents'}`,
      bars: [
        { name: 'p50', mean: lag.p50 },
        { name: 'p99', mean: lag.p99 },
      ],
    })),
  });
