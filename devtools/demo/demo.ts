/*
 * `plegwatch-dev demo`: starts Redis, Postgres, an API server, the controller and nodes with an agent each on this machine, breaks the stream of
 * one kubelet, shows the reports, and stops everything again.
 */
import { messageOf } from '../../src/platform/errors.ts';
import { type ConfigOf, toggle } from '../../src/platform/settings.ts';
import { sleep } from '../../src/platform/sleep.ts';
import { programFailed } from '../localServices/process.ts';
import { type Stops, stopAll } from '../localServices/stopAll.ts';
import { type DemoCluster, startCluster } from './cluster.ts';
import { type DemoView, openView } from './view.ts';

export const DEMO_SETTINGS = {
  once: toggle('print once when every node has reported, and exit'),
  noKube: toggle('no API server: the reports come straight from Postgres'),
} as const;

const REFRESH_MS = 2_000;
const POLL_MS = 500;
/** It takes about half a minute on a busy machine with two cores: only a hang exceeds this. */
const COMPLETE_WITHIN_MS = 600_000;
const CLEAR = '\x1b[2J\x1b[H';

/** Runs until the signal is aborted or, with `once`, until it has printed. Leaves nothing running. */
export async function runDemo(config: ConfigOf<typeof DEMO_SETTINGS>, signal: AbortSignal): Promise<void> {
  const started = performance.now();
  const end = AbortSignal.any([signal, outputClosed()]);
  const report = (line: string) => {
    end.throwIfAborted();
    process.stdout.write(`${seconds(started)}  ${line}\n`);
  };
  const announceEnd = () =>
    process.stdout.write(
      '\nstopping everything (another Ctrl-C would leave parts until the next make demo)\n',
    );
  end.addEventListener('abort', announceEnd);
  const stops: Stops = [];
  try {
    const cluster = await startCluster({ noKube: config.noKube, report, stops });
    await showReports(cluster, config.once, report, end);
  } catch (error) {
    // An interrupted start is no failure.
    if (!end.aborted) throw error;
  } finally {
    if (!end.aborted) announceEnd();
    await stopAll(stops, 'The next make demo cleans up.');
  }
}

/** Aborted when the terminal or the reader of the output is closed. */
function outputClosed(): AbortSignal {
  const controller = new AbortController();
  process.on('SIGHUP', () => controller.abort());
  process.stdout.on('error', () => controller.abort());
  process.stderr.on('error', () => controller.abort());
  return controller.signal;
}

async function showReports(
  cluster: DemoCluster,
  once: boolean,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const view = await openView(cluster);
  try {
    if (cluster.break !== null) {
      report('waiting until MODE is Evented (usually 7 s)');
      await untilShown(view, [cluster.break.row], signal);
      report('restarting the containerd of worker-restarted: the stream of its kubelet breaks');
      await cluster.break.run();
    }
    report('waiting for the first findings (usually 10 s)');
    const rows = cluster.nodes.map(({ row }) => row);
    await untilShown(view, rows, signal);
    await show(view, once, signal);
  } finally {
    await view.close();
  }
}

async function untilShown(view: DemoView, rows: readonly RegExp[], signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + COMPLETE_WITHIN_MS;
  let last = '';
  const areShown = async () => {
    // On a busy machine an answer may come too late, and is asked for again.
    last = await view.reports().catch(messageOf);
    return rows.every((row) => row.test(last));
  };
  while (!signal.aborted && !(await areShown())) {
    if (performance.now() > deadline) {
      const message = `After ${COMPLETE_WITHIN_MS / 1000} s, not every node shows what it is for:\n${last}`;
      throw programFailed(message, 'Is the machine very busy? Run make demo again.');
    }
    await sleep(POLL_MS, signal);
  }
}

async function show(view: DemoView, once: boolean, signal: AbortSignal): Promise<void> {
  const isTerminal = process.stdout.isTTY === true;
  while (!signal.aborted) {
    const page = await view.page(once);
    process.stdout.write(`${isTerminal && !once ? CLEAR : '\n'}${page}\n`);
    if (once) return;
    process.stdout.write('\nPress Ctrl-C to end.\n');
    await sleep(isTerminal ? REFRESH_MS : 5 * REFRESH_MS, signal);
  }
}

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(0).padStart(3)} s`;
