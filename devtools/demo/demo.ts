/*
 * `plegwatch-dev demo`: the point of plegwatch in a minute, on this machine, with everything it needs started and stopped
 * again: real Redis, real Postgres, the real API server, the real agents and controller, and nodes that misbehave.
 */
import { PlegwatchError } from '../../src/platform/errors.ts';
import { type ConfigOf, toggle } from '../../src/platform/settings.ts';
import { sleep } from '../../src/platform/sleep.ts';
import { type DemoCluster, startCluster } from './cluster.ts';
import { type DemoView, openView } from './view.ts';

export const DEMO_SETTINGS = {
  once: toggle('print once, when every node has reported, and end'),
  noKube: toggle('without an API server: the table comes straight from SQL'),
} as const;

const REFRESH_MS = 2_000;
const POLL_MS = 500;
/** On a busy machine with two cores it takes about half a minute. */
const COMPLETE_WITHIN_MS = 180_000;
const CLEAR = '\x1b[2J\x1b[H';

/** Runs until the signal is aborted, or, with `once`, until it has printed. Leaves nothing running. */
export async function runDemo(config: ConfigOf<typeof DEMO_SETTINGS>, signal: AbortSignal): Promise<void> {
  const started = performance.now();
  const end = AbortSignal.any([signal, nobodyLooks()]);
  const say = (line: string) => {
    end.throwIfAborted();
    process.stdout.write(`${seconds(started)}  ${line}\n`);
  };
  let cluster: DemoCluster | undefined;
  try {
    cluster = await startCluster({ noKube: config.noKube, say });
    say('waiting for the first findings');
    await look(cluster, config.once, end);
  } catch (error) {
    // Told to end, whatever was being done breaks off: that is no failure.
    if (!end.aborted) throw error;
  } finally {
    process.stdout.write('\nstopping everything that was started\n');
    await cluster?.stop();
  }
}

/** Aborted when the terminal is closed, or whoever read the output is gone. */
function nobodyLooks(): AbortSignal {
  const controller = new AbortController();
  process.on('SIGHUP', () => controller.abort());
  process.stdout.on('error', () => controller.abort());
  process.stderr.on('error', () => controller.abort());
  return controller.signal;
}

async function look(cluster: DemoCluster, once: boolean, signal: AbortSignal): Promise<void> {
  const view = await openView(cluster);
  try {
    await until(view, signal);
    await show(view, once, signal);
  } finally {
    await view.close();
  }
}

async function until(view: DemoView, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + COMPLETE_WITHIN_MS;
  while (!signal.aborted && !(await view.complete())) {
    if (performance.now() > deadline) {
      throw new PlegwatchError(
        'PROGRAM_FAILED',
        `Not every node has reported within ${COMPLETE_WITHIN_MS / 1000} s.`,
        'Is the machine very busy? Run make demo again.',
      );
    }
    await sleep(POLL_MS, signal);
  }
}

async function show(view: DemoView, once: boolean, signal: AbortSignal): Promise<void> {
  const isTerminal = process.stdout.isTTY === true;
  while (!signal.aborted) {
    const page = await view.page();
    process.stdout.write(`${isTerminal && !once ? CLEAR : '\n'}${page}\n`);
    if (once) return;
    process.stdout.write('\nCtrl-C ends it.\n');
    await sleep(isTerminal ? REFRESH_MS : 5 * REFRESH_MS, signal);
  }
}

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(0).padStart(3)} s`;
