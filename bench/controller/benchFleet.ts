/*
 * The senders: a simulated fleet in processes of its own. Each node has an agent's own observer, spool and shipper
 * (devtools/fleet/fleetNode.ts), so records are batched, encoded and sent as agents do it. Their own use is counted separately.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FleetTotals } from '../../devtools/fleet/fleet.ts';
import { type RunningProcess, startProcess, waitFor } from '../../devtools/localServices/process.ts';
import { type Stops, stopAll } from '../../devtools/localServices/stopAll.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { CLUSTER } from '../../test/support/batches.ts';
import { cpuMs } from '../processes.ts';
import { ROOT } from '../system.ts';
import type { ControllerSystem } from './controllerSystem.ts';

const STARTS_WITHIN_MS = 120_000;
/** An agent that cannot deliver gives up after seconds. */
const STOP_WITHIN_MS = 60_000;

interface BenchFleetOptions {
  readonly nodes: number;
  readonly processes: number;
  /** Flags of `simulate fleet`. */
  readonly flags: Readonly<Record<string, string>>;
}

interface BenchFleet {
  /** As printed within the last two seconds. */
  totals(): FleetTotals;
  /** Processor time of all its processes since their start, in milliseconds. */
  processorMs(): number;
  /** Pods no longer come and go. */
  stopChurn(): void;
  stop(): Promise<void>;
}

/** Returns when all nodes run. */
export async function startFleet(system: ControllerSystem, options: BenchFleetOptions): Promise<BenchFleet> {
  const { nodes, processes, flags } = options;
  const stops: Stops = [];
  const stop = () => stopAll(stops, 'See what still runs with ps, and stop it.');
  try {
    const { dir, remove } = temporaryFolder('bench-fleet', undefined);
    stops.push(remove);
    const started: RunningProcess[] = [];
    stops.push(async () => void (await Promise.all(started.map((each) => each.stop()))));
    for (let n = 0; n < processes; n += 1) {
      const first = Math.floor((n * nodes) / processes);
      const all = {
        cluster: CLUSTER,
        'redis-url': system.redis.urlOf('agent', CLUSTER),
        'spool-dir': join(dir, `spools-${n}`),
        'first-node': `${first}`,
        nodes: `${Math.floor(((n + 1) * nodes) / processes) - first}`,
        'log-level': 'error',
        ...flags,
      };
      const args = Object.entries(all).flatMap(([flag, value]) => [`--${flag}`, value]);
      started.push(
        await startProcess({
          name: `fleet ${n}`,
          command: process.execPath,
          args: [join(ROOT, 'devtools', 'cli.ts'), 'simulate', 'fleet', ...args],
          logFile: join(dir, `fleet-${n}.log`),
          stopWithinMs: STOP_WITHIN_MS,
        }),
      );
    }
    const totals = () => sumOf(started.map(lastTotals));
    await waitFor(`${nodes} nodes run`, STARTS_WITHIN_MS, () => {
      const ended = started.find((each) => !each.running());
      if (ended !== undefined) throw new Error(`${ended.name} ended: ${readFileSync(ended.logFile, 'utf8')}`);
      return totals().nodes === nodes;
    });
    return {
      totals,
      processorMs: () => started.reduce((sum, { pid }) => sum + cpuMs(pid), 0),
      stopChurn() {
        for (const each of started) each.kill('SIGUSR2');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Its log may have errors too; the last line may be half written. */
function lastTotals({ logFile }: RunningProcess): FleetTotals {
  const line = readFileSync(logFile, 'utf8')
    .split('\n')
    .slice(0, -1)
    .findLast((each) => each.startsWith('{"nodes":'));
  return line === undefined
    ? { nodes: 0, transitions: 0, delivered: 0, dropped: 0, unacknowledged: 0, rssMiB: 0, isChurning: true }
    : JSON.parse(line);
}

const sumOf = (each: readonly FleetTotals[]): FleetTotals =>
  each.reduce((sum, one) => ({
    nodes: sum.nodes + one.nodes,
    transitions: sum.transitions + one.transitions,
    delivered: sum.delivered + one.delivered,
    dropped: sum.dropped + one.dropped,
    unacknowledged: sum.unacknowledged + one.unacknowledged,
    rssMiB: sum.rssMiB + one.rssMiB,
    isChurning: sum.isChurning || one.isChurning,
  }));
