/*
 * The measured agent: started by bin/plegwatch, on its own copy of Node, in its own memory control group. Pages of files
 * count for the group that read them first: with the Node that this program runs on, most of the agent's memory would not count.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import {
  freePort,
  type RunningProcess,
  run,
  startProcess,
  waitFor,
} from '../devtools/localServices/process.ts';
import { NODE_FLAGS } from '../src/agent/observe/stream/readerProcess.ts';
import { variableOf } from '../src/platform/settings.ts';
import { type MemoryGroup, memoryGroup } from './memoryGroup.ts';
import { childRunning, cpuMs, memory, type ProcessMemory } from './processes.ts';
import { type BenchSystem, CLUSTER, ROOT } from './system.ts';

interface AgentCpu {
  readonly main: number;
  readonly reader: number;
}

export interface BenchAgent {
  /** CPU time of both processes since their start, in milliseconds. */
  cpu(): AgentCpu;
  /** Since its start. The request itself costs the agent some CPU time. */
  relists(): Promise<number>;
  memory(): {
    readonly main: ProcessMemory;
    readonly reader: ProcessMemory;
    readonly workingSet: number | null;
  };
  /** Records that are not acknowledged yet. */
  unacknowledged(): Promise<number>;
  /** A request as a kubelet or Prometheus makes it. */
  probe(path: '/livez' | '/metrics'): Promise<string>;
  stop(): Promise<void>;
}

let count = 0;

/** Returns when the agent has relisted, has its stream and ships. */
export async function startAgent(
  system: Pick<BenchSystem, 'dir' | 'redisUrl' | 'containerd'>,
  own: { readonly relistPeriod: string; readonly podsApi?: string },
): Promise<BenchAgent> {
  count += 1;
  const name = `agent-${count}`;
  const dir = join(system.dir, name);
  const port = await freePort();
  const node = await ownNode(dir);
  const group = memoryGroup(`plegwatch-bench-${process.pid}-${count}`);
  const settings = {
    cluster: CLUSTER,
    node: name,
    redisUrl: system.redisUrl,
    criEndpoint: `unix://${system.containerd.socket}`,
    spoolDir: join(dir, 'spool'),
    ...own,
    httpAddress: `127.0.0.1:${port}`,
  };
  const env = Object.fromEntries(Object.entries(settings).map(([key, value]) => [variableOf(key), value]));
  const ask = (path: string) => fetched(port, path);
  const agent = await startProcess({
    name,
    command: '/bin/sh',
    args: [
      '-c',
      'echo $$ > "$0"; exec "$@"',
      group?.procs ?? '/dev/null',
      join(ROOT, 'bin/plegwatch'),
      'agent',
    ],
    env: { PATH: `${node}:${process.env['PATH'] ?? ''}`, NODE_OPTIONS: NODE_FLAGS.join(' '), ...env },
    logFile: join(system.dir, `${name}.log`),
    ready: async () => (await ask('/readyz').catch(() => null))?.status === 200,
  });
  try {
    await waitFor(
      'the agent has its stream',
      30_000,
      async () => (await figure(ask, 'stream_connected')) === 1,
    );
  } catch (error) {
    await end(agent, group);
    throw error;
  }
  const reader = childRunning(agent.pid, 'reader.js');
  return {
    cpu: () => ({ main: cpuMs(agent.pid), reader: cpuMs(reader) }),
    relists: () => figure(ask, 'relist_duration_seconds_count'),
    memory: () => ({
      main: memory(agent.pid),
      reader: memory(reader),
      workingSet: group?.workingSet() ?? null,
    }),
    unacknowledged: () => figure(ask, 'unacked_records'),
    probe: async (path) => (await ask(path)).body,
    stop: () => end(agent, group),
  };
}

async function end(agent: RunningProcess, group: MemoryGroup | null): Promise<void> {
  await agent.stop();
  // The reader ends shortly after its parent, and only an empty group can be removed.
  if (group !== null) await waitFor('the group is empty', 10_000, () => removed(group));
}

function removed(group: MemoryGroup): boolean {
  try {
    group.remove();
    return true;
  } catch {
    return false;
  }
}

/** A folder with a copy of Node that is in no page cache. */
async function ownNode(dir: string): Promise<string> {
  mkdirSync(dir);
  const file = join(dir, 'node');
  copyFileSync(process.execPath, file);
  // Writes the copy to the disk and drops it from the page cache.
  await run('dd', [`of=${file}`, 'conv=notrunc,fdatasync', 'oflag=nocache', 'count=0', 'status=none']);
  return dir;
}

interface ProbeAnswer {
  readonly status: number;
  readonly body: string;
}

type Ask = (path: string) => Promise<ProbeAnswer>;

/** The value of a metric without labels; 0 if there is none yet. */
async function figure(ask: Ask, metric: string): Promise<number> {
  const line = (await ask('/metrics')).body
    .split('\n')
    .find((each) => each.startsWith(`plegwatch_${metric} `));
  return Number(line?.split(' ')[1] ?? 0);
}

function fetched(port: number, path: string): Promise<ProbeAnswer> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, timeout: 5_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') });
      });
    });
    request.on('timeout', () => request.destroy(new Error(`no answer to ${path}`)));
    request.on('error', reject);
  });
}
