/*
 * Reports: what the restart of a controller costs with 5,000 of them, how long a mode change takes to reach somebody who watches, and how often
 * reports are written meanwhile.
 *
 *   fill       the reports of all nodes are written at a pace that no controller has
 *   restart    the built controller is ended and started again, and then watched until it knows which agents are silent, and for a while after that
 *   changes    ten kubelets a second fall back, each of another node; first alone, then while a thousand first reports are due
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { sayCaughtUp } from '../../src/controller/ingest/statements.ts';
import { startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { startReportWriter } from '../../src/controller/reports/writer.ts';
import { openStore } from '../../src/store/store.ts';
import { silent } from '../../test/support/database.ts';
import { CLUSTER, System } from '../../test/support/system.ts';
import { waitFor } from '../../test/support/waitFor.ts';
import { memory } from '../processes.ts';
import { quantile } from '../statistics.ts';
import type { TableRow } from '../table.ts';
import { type BenchPart, log, SHORT } from './part.ts';
import { ReportedFleet } from './reportedFleet.ts';
import { ReportWatch } from './reportWatch.ts';

const NODES = SHORT ? 200 : 5_000;
/** The silent ones among them. */
const SILENT = NODES / 5;
const FIRST_REPORTS = SHORT ? 200 : 1_000;
const CHANGES_A_SECOND = 10;
const CHANGES = SHORT ? 50 : 300;
/** A controller that has run for 90 s knows which agents are silent, and looks every ten seconds. */
const RESTART_WINDOW_MS = 120_000;
const BUDGET = { changeMs: 5_000, writesPerSecond: 20, rssMiB: 512 } as const;
const FILL_PACE = { writesPerSecond: 10_000, minIntervalMs: 0, pollMs: 50 };
const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;

export const reports: BenchPart = {
  name: 'reports',
  title: 'Reports: a restart, and changes of mode',
  async run() {
    return { rows: await measure(), plots: [] };
  },
};

async function measure(): Promise<TableRow[]> {
  const system = await System.start({ kube: true });
  const fleet = await ReportedFleet.create(system);
  let watch: ReportWatch | undefined;
  try {
    const names = Array.from({ length: NODES }, (_, n) => nameOf('node', n));
    log(`reports: ${NODES} nodes`);
    await fleet.add(names);
    await fleet.silence(names.slice(0, SILENT));
    log('reports: their first reports');
    await fill(system);
    await fleet.catchUp();
    watch = await ReportWatch.start(system.kube);
    fleet.startMinutes();
    log('reports: a restart');
    const before = await system.controller();
    await isReady(before);
    await system.end(before);
    const began = performance.now();
    const controller = await system.controller();
    await isReady(controller);
    const readyMs = performance.now() - began;
    const restarted = await watchRestart(controller, watch, began);
    log('reports: changes of mode');
    const changing = names.slice(SILENT);
    const alone = await watchChanges(system, fleet, watch, changing.slice(0, CHANGES));
    await fleet.add(Array.from({ length: FIRST_REPORTS }, (_, n) => nameOf('new', n)));
    const behind = await watchChanges(system, fleet, watch, changing.slice(CHANGES, 2 * CHANGES));
    return [...rowsOfRestart(readyMs, restarted), ...rowsOfChanges(alone, behind)];
  } finally {
    await watch?.stop();
    await fleet.stop();
    await system.stop();
  }
}

const nameOf = (kind: string, n: number): string => `${kind}-${String(n).padStart(5, '0')}.example.internal`;

const isReady = (controller: LocalPlegwatch): Promise<boolean> =>
  waitFor('the controller is ready', async () => (await controller.ask('/readyz'))?.status === 200);

/** Writes what is due of reports, with the program's own writer. */
async function fill(system: System): Promise<void> {
  const store = await openStore({ databaseUrl: system.postgres.url, log: silent });
  const nodes = startNodeWatch({ kube: system.kube, log: silent });
  const writer = startReportWriter({
    ...{ store, kube: system.kube, nodes, cluster: CLUSTER, log: silent, pace: FILL_PACE },
    onResult: () => undefined,
  });
  try {
    const clusterId = await store.ensureCluster(CLUSTER);
    await waitFor('every Node has a report', async () => {
      // As a controller says that has run for a day: else the silent agents might have batches that are not stored yet.
      await store.run(sayCaughtUp, [clusterId, DAY_MS]);
      return (await unwritten(system)) === 0;
    });
  } finally {
    await writer.stop();
    await nodes.stop();
    await store.close();
  }
}

/** How many Nodes have no report yet. */
async function unwritten(system: System): Promise<number> {
  const [row] = await system.sql<{ n: number }>(
    `SELECT count(*)::int4 AS n FROM store.node n LEFT JOIN store.report r USING (node_id) WHERE r.written_at IS NULL`,
  );
  return row?.n ?? Number.NaN;
}

interface Restart {
  readonly rss: number;
  readonly peak: number;
  /** Reports that were built again and said nothing else, so they were not written. */
  readonly unchanged: number;
  readonly written: number;
  /** The part of them that said nothing new. */
  readonly writtenAgain: number;
  readonly busiest: number;
}

async function watchRestart(controller: LocalPlegwatch, watch: ReportWatch, began: number): Promise<Restart> {
  let peak = 0;
  while (performance.now() - began < RESTART_WINDOW_MS) {
    peak = Math.max(peak, memory(controller.pid).rss);
    await delay(500);
  }
  const metrics = (await controller.ask('/metrics'))?.body ?? '';
  const writes = watch.writesSince(began);
  return {
    rss: memory(controller.pid).rss,
    peak,
    unchanged: resultsOf(metrics, 'unchanged'),
    written: writes.length,
    writtenAgain: writes.filter(({ isNews }) => !isNews).length,
    busiest: busiest(writes, 1),
  };
}

const resultsOf = (metrics: string, result: string): number =>
  Number(
    new RegExp(`^plegwatch_report_writes_total\\{result="${result}"\\} (\\d+)`, 'm').exec(metrics)?.[1] ??
      Number.NaN,
  );

interface Changes {
  /** From sending each change to seeing it, in milliseconds. */
  readonly took: readonly number[];
  /** First reports that were due when the first and when the last change was sent. */
  readonly due: readonly [number, number];
  /** The most writes that were seen within one second, and within ten. */
  readonly busiest: readonly [number, number];
  readonly perSecond: number;
}

async function watchChanges(
  system: System,
  fleet: ReportedFleet,
  watch: ReportWatch,
  names: readonly string[],
): Promise<Changes> {
  const dueAtFirst = await unwritten(system);
  const began = performance.now();
  const sent = new Map<string, number>();
  for (const [n, name] of names.entries()) {
    await delay(Math.max(0, began + (n * 1_000) / CHANGES_A_SECOND - performance.now()));
    sent.set(name, await fleet.fallBack(name));
  }
  const dueAtLast = await unwritten(system);
  await waitFor('every change is shown', () => names.every((name) => watch.fellBackAt(name) !== undefined));
  const writes = watch.writesSince(began);
  const took = [...sent].map(([name, at]) => (watch.fellBackAt(name) ?? Number.NaN) - at);
  return {
    took,
    due: [dueAtFirst, dueAtLast],
    busiest: [busiest(writes, 1), busiest(writes, 10)],
    perSecond: (1_000 * writes.length) / (performance.now() - began),
  };
}

/** The most writes that were seen within this many seconds. */
function busiest(writes: readonly { readonly at: number }[], seconds: number): number {
  let most = 0;
  let first = 0;
  for (const [last, { at }] of writes.entries()) {
    while ((writes[first]?.at ?? at) <= at - 1_000 * seconds) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

function rowsOfRestart(
  readyMs: number,
  { rss, peak, unchanged, written, writtenAgain, busiest }: Restart,
): TableRow[] {
  const [now, most] = [rss, peak].map((bytes) => Math.round(bytes / MIB));
  return [
    {
      what: `a controller restarts with ${NODES} reports: ready after`,
      figure: `${(readyMs / 1000).toFixed(1)} s`,
    },
    {
      what: `  RSS, ${RESTART_WINDOW_MS / 1000} s later`,
      figure: `${now} MiB, at most ${most}`,
      budget: `≤ ${BUDGET.rssMiB} MiB`,
      met: peak <= BUDGET.rssMiB * MIB,
    },
    {
      what: '  reports built again without a change',
      figure: `${unchanged} (${SILENT} agents are silent, the others report each minute)`,
      budget: '0',
      met: unchanged === 0,
    },
    {
      what: '  reports written without a change',
      figure: `${writtenAgain} of ${written} writes, at most ${busiest} in a second`,
      budget: '0',
      met: writtenAgain === 0,
    },
  ];
}

function rowsOfChanges(alone: Changes, behind: Changes): TableRow[] {
  const ms = (took: readonly number[], share: number) => `${Math.round(quantile(took, share))} ms`;
  const row = (what: string, { took }: Changes): TableRow => ({
    what,
    figure: `p50 ${ms(took, 0.5)}, p99 ${ms(took, 0.99)}, at most ${ms(took, 1)}`,
    budget: `p99 ≤ ${BUDGET.changeMs / 1000} s`,
    met: quantile(took, 0.99) <= BUDGET.changeMs,
  });
  const within = (n: 0 | 1) => Math.max(alone.busiest[n], behind.busiest[n]);
  return [
    row(`mode change to watch event, ${CHANGES_A_SECOND} a second`, alone),
    row(`  while first reports are due: ${behind.due[0]}, at the end ${behind.due[1]}`, behind),
    {
      what: '  writes of reports',
      figure: `${alone.perSecond.toFixed(1)} and ${behind.perSecond.toFixed(1)} a second; at most ${within(1)} within ten seconds, ${within(0)} within one`,
      // One that was written in the second before may be seen within the ten.
      budget: `≤ ${BUDGET.writesPerSecond}/s, after a pause ${BUDGET.writesPerSecond} more`,
      met: within(1) <= 12 * BUDGET.writesPerSecond,
    },
  ];
}
