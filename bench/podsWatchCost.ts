/*
 * The cost of watching the kubelet's PodsAPI, for the agent and the kubelet. Run by `make bench-agent`.
 *
 *   two nodes, alike ── one agent watches, the other does not ──► calm windows ──► windows in which a pod is replaced every two seconds
 *
 * Both are measured in the same windows, and what is compared is the difference within each: a busy machine spoils both alike.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { startApiServer } from '../devtools/localServices/apiServer.ts';
import { run } from '../devtools/localServices/process.ts';
import { type Stops, stopAll } from '../devtools/localServices/stopAll.ts';
import { where } from '../devtools/localServices/where.ts';
import { type BenchAgent, startAgent } from './agent.ts';
import { estimate, printedEstimate } from './experiment/estimate.ts';
import { type ExperimentNode, startNode } from './experiment/node.ts';
import { cpuMs, loadAverage } from './processes.ts';
import { machine, writeResult } from './results.ts';
import { startSystem } from './system.ts';
import { markdown, printed, type TableRow } from './table.ts';

const WINDOW_S = Number(process.env['PLEGWATCH_BENCH_SECONDS'] ?? 60);
const WINDOWS = Number(process.env['PLEGWATCH_BENCH_WINDOWS'] ?? 3);
const WARM_S = Number(process.env['PLEGWATCH_BENCH_WARM_SECONDS'] ?? 120);
const PODS = 50;
const REPLACED_EVERY_MS = 2_000;
const MIB = 1024 * 1024;

interface Watched {
  readonly node: ExperimentNode;
  readonly agent: BenchAgent;
}

/** Processor time, in milliseconds a second. */
interface Use {
  readonly agent: number;
  readonly kubelet: number;
}

const stops: Stops = [];
try {
  const loads = [loadAverage()];
  const system = await startSystem();
  stops.push(() => system.stop());
  const api = await startApiServer();
  stops.push(() => api.stop());
  await run(where('kubectl'), ['--kubeconfig', api.kubeconfig, 'create', 'serviceaccount', 'default']);
  const start = async (watches: boolean): Promise<Watched> => {
    const node = await startNode({
      ...{ api, minor: '1.37', containerd: '2.4', eventedPleg: false },
      name: watches ? 'watched' : 'unwatched',
    });
    stops.push(() => node.stop());
    await node.runPods(PODS);
    const { containerd, kubelet } = node;
    const podsApi = watches ? kubelet.podsApi : 'off';
    const agent = await startAgent({ ...system, containerd }, { relistPeriod: '5s', podsApi });
    stops.push(() => agent.stop());
    return { node, agent };
  };
  const both = [await start(true), await start(false)] as const;
  log(`${WARM_S} s for the agents to warm up`);
  await delay(WARM_S * 1_000);
  const watching = await Promise.all(
    both.map(async ({ agent }) => isWatching(await agent.probe('/metrics'))),
  );
  if (watching[0] !== true || watching[1] !== false)
    throw new Error(`one agent must watch the PodsAPI, not the other: they do ${watching.join(' and ')}`);
  const rows: TableRow[] = [];
  for (const replaced of [false, true]) {
    const when = replaced ? 'a pod replaced every 2 s' : 'calm';
    const windows: (readonly [Use, Use])[] = [];
    for (let i = 1; i <= WINDOWS; i += 1) {
      windows.push(await windowOf(both, replaced));
      loads.push(loadAverage());
      log(`${when}: window ${i} of ${WINDOWS}`);
    }
    rows.push(...rowsOf(when, windows));
  }
  const [on, off] = both.map(({ agent }) => anonymous(agent));
  rows.push({ what: 'anonymous memory of the agent: watching, not watching', figure: `${on}, ${off} MiB` });
  const about =
    `${machine()}, load average ${loads.join(' ')}; kubelet 1.37 (gate off), containerd 2.4, ${PODS} pods; ${WINDOWS} windows of ${WINDOW_S} s; ` +
    'ms of processor time a second, mean ± half of the 95 % interval\n';
  process.stdout.write(`\n${printed(rows)}\n${about}`);
  writeResult('podsWatch.md', `${about}\n${markdown(rows)}`);
} finally {
  await stopAll(stops, 'See what still runs with ps, and stop it.');
}

function isWatching(page: string): boolean {
  return page.includes('\nplegwatch_pods_api_state{state="Watching"} 1\n');
}

async function windowOf(both: readonly [Watched, Watched], replaced: boolean): Promise<readonly [Use, Use]> {
  const [watched, unwatched] = both;
  const before = both.map(cpuOf);
  const began = performance.now();
  const until = began + WINDOW_S * 1_000;
  while (performance.now() < until) {
    if (replaced) for (const { node } of both) node.replacePod();
    await delay(Math.min(replaced ? REPLACED_EVERY_MS : WINDOW_S * 1_000, until - performance.now()));
  }
  const seconds = (performance.now() - began) / 1_000;
  const since = (each: Watched, was: Use | undefined): Use => {
    const now = cpuOf(each);
    return {
      agent: (now.agent - (was?.agent ?? Number.NaN)) / seconds,
      kubelet: (now.kubelet - (was?.kubelet ?? Number.NaN)) / seconds,
    };
  };
  return [since(watched, before[0]), since(unwatched, before[1])];
}

function cpuOf({ agent, node }: Watched): Use {
  const { main, reader } = agent.cpu();
  return { agent: main + reader, kubelet: cpuMs(node.kubelet.pid) };
}

function rowsOf(when: string, windows: readonly (readonly [Use, Use])[]): TableRow[] {
  return (['agent', 'kubelet'] as const).map((part) => {
    const of = (uses: readonly number[]) => printedEstimate(estimate(uses));
    const on = of(windows.map(([use]) => use[part]));
    const off = of(windows.map(([, use]) => use[part]));
    const more = of(windows.map(([a, b]) => a[part] - b[part]));
    return {
      what: `${part}, ${when}: more with the watch`,
      figure: `${more} (watched ${on}, not watched ${off})`,
    };
  });
}

function anonymous(agent: BenchAgent): string {
  const { main, reader } = agent.memory();
  return ((main.anonymous + reader.anonymous) / MIB).toFixed(1);
}

function log(line: string): void {
  process.stdout.write(`bench: ${line}…\n`);
}
