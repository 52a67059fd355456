/*
 * `make experiment`: how much processor time Evented PLEG saves containerd and the kubelet, by the number of pods.
 *
 *   two nodes, alike but for the kubelet's gate ──► a number of pods on each ──► settle ──► windows ──► more pods ──► …
 *
 * Both nodes are measured in the same windows, so that a busy machine spoils both alike; what is compared is the difference within each
 * window. Between windows nothing happens: the pods sleep, and the kubelets relist.
 *
 *   --kubelet V      1.36 or 1.37; 1.37 by default
 *   --containerd V   2.1 or 2.4; 2.4 by default
 *   --pods LIST      numbers of pods, rising; 10,50,100 by default
 *   --windows N      how many windows at each number; 6 by default
 *   --seconds N      how long each lasts; 60 by default
 *   --settle N       seconds from the last start of a pod to the first window; 60 by default
 *   --plot FILE      where the plot is written; dist/experiment.svg by default
 *
 * Exit code 0: measured, and each kubelet was in its mode all the time. 1: otherwise. 2: wrong usage.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startApiServer } from '../../devtools/localServices/apiServer.ts';
import { run } from '../../devtools/localServices/process.ts';
import { type Stops, stopAll } from '../../devtools/localServices/stopAll.ts';
import { where } from '../../devtools/localServices/where.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { type Bar, barPlot } from '../barPlot.ts';
import { cpuMs, loadAverage } from '../processes.ts';
import { estimate, printedEstimate } from './estimate.ts';
import { type ExperimentNode, startNode } from './node.ts';

/** The figures of the article that this repeats: iSulad and a kubelet of 2022, with pods of busybox. */
const ARTICLE = { runtime: 30, kubelet: 10 } as const;
/** The first is that of the API server. */
const KUBELETS = ['1.36', '1.37'] as const;
const CONTAINERDS = ['2.1', '2.4'] as const;
const PARTS = ['runtime', 'kubelet'] as const;
type Part = (typeof PARTS)[number];
const NAMES = { runtime: 'containerd', kubelet: 'kubelet' } as const;

/** Milliseconds of processor time a second, and relists a minute, of one node in one window. */
interface Use extends Record<Part, number> {
  readonly relists: number;
}

/** The windows of one number of pods, of both nodes. */
interface Measured {
  readonly pods: number;
  readonly off: readonly Use[];
  readonly on: readonly Use[];
}

const options = readOptions();
const stops: Stops = [];
try {
  const loads = [loadAverage()];
  const [off, on] = await startNodes();
  const measured: Measured[] = [];
  for (const pods of options.pods) measured.push(await measure(off, on, pods));
  loads.push(loadAverage());
  print(measured, loads);
} catch (error) {
  console.error(messageOf(error));
  process.exitCode = 1;
} finally {
  await stopAll(stops, 'See what still runs with ps, and stop it.');
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      kubelet: { type: 'string', default: '1.37' },
      containerd: { type: 'string', default: '2.4' },
      pods: { type: 'string', default: '10,50,100' },
      windows: { type: 'string', default: '6' },
      seconds: { type: 'string', default: '60' },
      settle: { type: 'string', default: '60' },
      plot: { type: 'string', default: 'dist/experiment.svg' },
    },
  });
  const wrong = (message: string): never => {
    console.error(message);
    process.exit(2);
  };
  const whole = (name: string, text: string, min: number, max: number): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    return wrong(`--${name} must be a whole number from ${min} to ${max}, not ${text}`);
  };
  // The kubelet's own limit is 110.
  const pods = values.pods.split(',').map((each) => whole('pods', each, 1, 110));
  if (pods.some((each, i) => each <= (pods[i - 1] ?? 0))) wrong('--pods must rise from number to number');
  const oneOf = <V extends string>(name: 'kubelet' | 'containerd', known: readonly V[]): V =>
    known.find((each) => each === values[name]) ??
    wrong(`--${name} must be ${known.join(' or ')}, not ${values[name]}`);
  return {
    kubelet: oneOf('kubelet', KUBELETS),
    containerd: oneOf('containerd', CONTAINERDS),
    pods,
    windows: whole('windows', values.windows, 2, 1_000),
    seconds: whole('seconds', values.seconds, 1, 86_400),
    settle: whole('settle', values.settle, 0, 86_400),
    plot: resolve(values.plot),
  };
}

async function startNodes(): Promise<[ExperimentNode, ExperimentNode]> {
  say('starting an API server and two nodes, each with a containerd and a kubelet (about 20 seconds)…');
  const api = await startApiServer();
  stops.push(() => api.stop());
  // No controller creates one here, and the API server shows no pod without it.
  await run(where('kubectl'), ['--kubeconfig', api.kubeconfig, 'create', 'serviceaccount', 'default']);
  const start = async (eventedPleg: boolean) => {
    const { kubelet, containerd } = options;
    const minor = kubelet === KUBELETS[0] ? undefined : kubelet;
    const node = await startNode({
      api,
      minor,
      containerd,
      eventedPleg,
      name: eventedPleg ? 'gate-on' : 'gate-off',
    });
    stops.push(() => node.stop());
    return node;
  };
  return [await start(false), await start(true)];
}

async function measure(off: ExperimentNode, on: ExperimentNode, pods: number): Promise<Measured> {
  say(`${pods} pods: starting them on both nodes, then waiting ${options.settle} s…`);
  await Promise.all([off.runPods(pods), on.runPods(pods)]);
  await delay(options.settle * 1_000);
  const windows: [Use, Use][] = [];
  for (let i = 1; i <= options.windows; i += 1) {
    windows.push(await measureWindow(off, on));
    say(`${pods} pods: window ${i} of ${options.windows}, load ${loadAverage()}`);
  }
  return { pods, off: windows.map(([use]) => use), on: windows.map(([, use]) => use) };
}

async function measureWindow(off: ExperimentNode, on: ExperimentNode): Promise<[Use, Use]> {
  const nodes = [off, on] as const;
  // The cost of answering for the metrics is not in the window.
  const relistsBefore = await Promise.all(nodes.map((node) => node.relists()));
  const began = performance.now();
  const before = nodes.map(cpuOf);
  await delay(options.seconds * 1_000);
  const after = nodes.map(cpuOf);
  const seconds = (performance.now() - began) / 1_000;
  const relistsAfter = await Promise.all(nodes.map((node) => node.relists()));
  const useOf = (i: 0 | 1): Use => {
    const perSecond = (part: Part) => ((after[i]?.[part] ?? 0) - (before[i]?.[part] ?? 0)) / seconds;
    const relists = (((relistsAfter[i] ?? 0) - (relistsBefore[i] ?? 0)) * 60) / seconds;
    return { runtime: perSecond('runtime'), kubelet: perSecond('kubelet'), relists };
  };
  return [useOf(0), useOf(1)];
}

/** Processor time of the programs themselves: what a pod's shim uses does not depend on who asks for a list. */
function cpuOf({ containerd, kubelet }: ExperimentNode): Record<Part, number> {
  return { runtime: cpuMs(containerd.pid), kubelet: cpuMs(kubelet.pid) };
}

function print(measured: readonly Measured[], loads: readonly number[]): void {
  const lines = [
    '| pods | program | gate off, ms/s | gate on, ms/s | saved, ms/s | saved | the article |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...measured.flatMap((each) => PARTS.map((part) => rowOf(each, part))),
  ];
  console.log(`\n${lines.join('\n')}\n`);
  for (const { pods, off, on } of measured) {
    const relists = (uses: readonly Use[]) => printedEstimate(estimate(uses.map((use) => use.relists)));
    console.log(
      `${pods} pods: ${relists(off)} relists a minute with the gate off, ${relists(on)} with it on`,
    );
  }
  const [processor] = cpus();
  console.log(
    `\nkubelet ${options.kubelet}, containerd ${options.containerd}; ${options.windows} windows of ${options.seconds} s; mean ± half of its 95 % interval (Student's t); ${cpus().length} cores of ` +
      `${processor?.model ?? 'an unknown processor'}, load average ${loads.join(' to ')}`,
  );
  mkdirSync(dirname(options.plot), { recursive: true });
  const title = 'Processor time with the EventedPLEG gate off and on';
  writeFileSync(
    options.plot,
    barPlot({ title, unit: 'ms of processor time a second', groups: groupsOf(measured) }),
  );
  console.log(`plot: ${options.plot}`);
}

function rowOf({ pods, off, on }: Measured, part: Part): string {
  const of = (uses: readonly Use[]) => estimate(uses.map((use) => use[part]));
  const saved = estimate(off.map((use, i) => use[part] - (on[i]?.[part] ?? Number.NaN)));
  const share = (100 * saved.mean) / of(off).mean;
  const half = (100 * saved.half) / of(off).mean;
  const cells = [
    ...[pods, NAMES[part], printedEstimate(of(off)), printedEstimate(of(on)), printedEstimate(saved)],
    ...[`${printedEstimate({ mean: share, half })} %`, `${ARTICLE[part]} %`],
  ];
  return `| ${cells.join(' | ')} |`;
}

function groupsOf(measured: readonly Measured[]): { name: string; bars: Bar[] }[] {
  return PARTS.flatMap((part) =>
    measured.map(({ pods, off, on }) => ({
      name: `${NAMES[part]}, ${pods} pods`,
      bars: [
        { name: 'gate off', ...estimate(off.map((use) => use[part])) },
        { name: 'gate on', ...estimate(on.map((use) => use[part])) },
      ],
    })),
  );
}

function say(line: string): void {
  console.log(line);
}
