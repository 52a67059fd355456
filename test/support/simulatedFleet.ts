/*
 * A simulated fleet in processes of their own, and the account of it: what its agents delivered and dropped, by its ground truth, against what
 * is stored.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { FleetTotals } from '../../devtools/fleet/fleet.ts';
import { type RunningProcess, startProcess } from '../../devtools/localServices/process.ts';
import { CLUSTER, type System } from './system.ts';
import { passes, waitFor } from './waitFor.ts';

const CLI = fileURLToPath(new URL('../../devtools/cli.ts', import.meta.url));
const STOPS_WITHIN_MS = 240_000;
/**
 * Hundreds of nodes in one heap: what lives shortly dies young, and the heap is not marked again before it has doubled. On a busy machine threads
 * that mark would take the processor from the one that runs the nodes.
 */
const NODE_FLAGS = [
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
  '--single-threaded-gc',
  '--no-memory-reducer',
  '--heap-growing-percent=100',
];
/** The node names of a fleet. */
const NODES = '^node-\\d{5}$';

export interface FleetSize {
  readonly processes: number;
  /** In all processes together. */
  readonly nodes: number;
  readonly pods: number;
  /** Flags of `simulate fleet`, for how pods and agents behave. */
  readonly flags: Readonly<Record<string, string>>;
}

/** Short lives, many drops, and findings within seconds: for a test of minutes. */
export const smallFleet = (nodes: number): FleetSize => ({
  processes: 1,
  nodes,
  pods: 3,
  flags: {
    'start-within': '1s',
    'pod-lifetime': '8s',
    drop: '0.05',
    overlook: '0.1',
    'kubelet-late-after': '2s',
    'relist-period': '1s',
    'overdue-after': '3s',
    'missed-after': '6s',
  },
});

const LARGE_PODS = 30;
const NODES_A_PROCESS = 500;
const NODES_STARTED_A_MINUTE = 600;

/** Pods of hours on each of very many nodes, of which this many start each second on all of them together. */
export const largeFleet = (nodes: number, startsASecond: number): FleetSize => ({
  processes: Math.ceil(nodes / NODES_A_PROCESS),
  nodes,
  pods: LARGE_PODS,
  flags: {
    'start-within': `${Math.ceil((60 * nodes) / NODES_STARTED_A_MINUTE)}s`,
    'pod-lifetime': `${Math.round((nodes * LARGE_PODS) / startsASecond)}s`,
    drop: '0.001',
    overlook: '0.001',
    'relist-period': '30s',
    // One process stands for 500 machines: that it is held up for seconds is a stall of none of them.
    'overdue-after': '60s',
    'missed-after': '2m',
  },
});

/** A line of the ground truth. */
type FleetTruth = DroppedEvent | { readonly node: string; readonly id: string; readonly overlooked: true };

interface DroppedEvent {
  readonly node: string;
  readonly id: string;
  readonly type: string;
  /** In microseconds since 1970. */
  readonly at: number;
}

interface FleetProcess {
  readonly process: RunningProcess;
  readonly truth: string;
}

export class FleetProcesses {
  readonly #system: System;
  readonly #size: FleetSize;
  readonly #processes: FleetProcess[] = [];

  private constructor(system: System, size: FleetSize) {
    this.#system = system;
    this.#size = size;
  }

  /** Returns once every process has printed its totals. */
  static async start(system: System, size: FleetSize): Promise<FleetProcesses> {
    const fleet = new FleetProcesses(system, size);
    const { processes, nodes } = size;
    for (let n = 0; n < processes; n += 1) {
      const first = Math.floor((n * nodes) / processes);
      await fleet.#launch(n, first, Math.floor(((n + 1) * nodes) / processes) - first);
    }
    await waitFor('the fleet runs', () => fleet.totals !== null);
    return fleet;
  }

  static nameOf(number: number): string {
    return `node-${String(number).padStart(5, '0')}`;
  }

  /** The totals of all processes, as last printed; null until each has printed its own. */
  get totals(): FleetTotals | null {
    const each = this.#processes.map(({ process }) => lastTotals(process));
    const known = each.filter((totals) => totals !== null);
    if (known.length < each.length) return null;
    const sum = (key: Exclude<keyof FleetTotals, 'isChurning'>) =>
      known.reduce((total, totals) => total + totals[key], 0);
    return {
      nodes: sum('nodes'),
      transitions: sum('transitions'),
      delivered: sum('delivered'),
      dropped: sum('dropped'),
      unacknowledged: sum('unacknowledged'),
      rssMiB: sum('rssMiB'),
      isChurning: known.some(({ isChurning }) => isChurning),
    };
  }

  /** The dropped events, as far as they are written to the files. */
  drops(): DroppedEvent[] {
    return this.#truth().flatMap((line) => ('type' in line ? [line] : []));
  }

  #truth(): FleetTruth[] {
    const files = this.#processes.map(({ truth }) => truth).filter((file) => existsSync(file));
    return files
      .flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(0, -1))
      .map((line) => JSON.parse(line));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map(({ process }) => process.stop()));
  }

  /** Stops the churn. Returns what was dropped, once all of it is decided and everything is stored. */
  async settle(withinMs: number): Promise<DroppedEvent[]> {
    for (const { process } of this.#processes) process.kill('SIGUSR2');
    await waitFor('the churn has ended', () => this.totals?.isChurning === false, withinMs);
    const written = () => {
      const all = this.drops();
      return all.length === this.totals?.dropped ? all : undefined;
    };
    const drops = await waitFor('the ground truth is written', written, withinMs);
    const last = drops.reduce((latest, { at }) => Math.max(latest, at), 0);
    const isDecided = async () => {
      const [row] = await this.#system.sql<{ n: number }>(
        `SELECT count(*)::int4 AS n FROM plegwatch.epochs
          WHERE node ~ $2 AND decided_through > to_timestamp($1 / 1e6)`,
        last,
        NODES,
      );
      return row?.n === this.#size.nodes;
    };
    await waitFor('everything that was dropped is decided', isDecided, withinMs);
    // Records of each minute go on: of thousands of nodes one always waits for its acknowledgement.
    const isStored = async () => (await this.#stored()) >= (this.totals?.delivered ?? 0);
    await waitFor('every event is stored', isStored, withinMs);
    return drops;
  }

  /** Fails unless every event that was delivered is stored once, each that was dropped is found or in a gap, and no other is missed. */
  async expectAccount(drops: readonly DroppedEvent[]): Promise<void> {
    expect(await this.#stored()).toBe(this.totals?.delivered);
    const found = await this.#system.sql<{ kind: string; key: string }>(
      `SELECT kind, concat_ws(' ', node, container_id, event_type) AS key FROM plegwatch.findings
        WHERE node ~ $1 AND kind IN ('missed', 'unobservable') AND resolved_at IS NULL`,
      NODES,
    );
    const missed = found.filter(({ kind }) => kind === 'missed').map(({ key }) => key);
    const dropped = new Set(drops.map(keyOf));
    expect(missed.length).toBeGreaterThan(0);
    expect(missed.filter((key) => !dropped.has(key))).toEqual([]);
    const decided = new Set(found.map(({ key }) => key));
    const isDeclared = await this.#declared();
    expect(drops.filter((drop) => !decided.has(keyOf(drop)) && !isDeclared(drop))).toEqual([]);
    await this.#expectStatus();
    // Batches on their way are waited for: one may end between the end of a session and the gap after it.
    await passes(async () => {
      const gaps = await this.#system.sql('SELECT * FROM plegwatch.undeclared_gaps() WHERE node ~ $1', NODES);
      expect(gaps).toEqual([]);
    });
  }

  /** Fails unless kubelet lag is stored, and no kubelet accused of a container that it did not overlook. */
  async #expectStatus(): Promise<void> {
    const keyOfContainer = ({ node, id }: { readonly node: string; readonly id: string }) => `${node} ${id}`;
    const overlooked = new Set(
      this.#truth().flatMap((line) => ('overlooked' in line ? [keyOfContainer(line)] : [])),
    );
    const late = await this.#system.sql<{ node: string; id: string }>(
      `SELECT node, container_id AS id FROM plegwatch.findings WHERE node ~ $1 AND kind = 'kubelet_late'`,
      NODES,
    );
    expect(late.filter((each) => !overlooked.has(keyOfContainer(each)))).toEqual([]);
    await passes(async () => {
      const [lag] = await this.#system.sql<{ n: number }>(
        'SELECT count(*)::int4 AS n FROM plegwatch.kubelet_lag_minutes WHERE node ~ $1',
        NODES,
      );
      expect(lag?.n).toBeGreaterThan(0);
    });
  }

  async #stored(): Promise<number> {
    const [stored] = await this.#system.sql<{ n: number }>(
      'SELECT count(*)::int4 AS n FROM plegwatch.container_events WHERE node ~ $1',
      NODES,
    );
    return stored?.n ?? 0;
  }

  /** Whether a gap says that nobody could see it, or that a container ran or ended where only the stream could show it. */
  async #declared(): Promise<(drop: DroppedEvent) => boolean> {
    const gaps = await this.#system.sql<Period>(
      `SELECT node AS of, (extract(epoch FROM from_at) * 1e6)::float8 AS from_us,
              (extract(epoch FROM coalesce(to_at, now())) * 1e6)::float8 AS to_us
         FROM plegwatch.gaps WHERE scope IN ('stream', 'findings')`,
    );
    const lives = await this.#system.sql<Period>(
      `SELECT container_id AS of, (extract(epoch FROM window_from) * 1e6)::float8 AS from_us,
              (extract(epoch FROM window_to) * 1e6)::float8 AS to_us
         FROM plegwatch.findings WHERE kind = 'short_life'`,
    );
    const periods = Map.groupBy([...gaps, ...lives], (period) => period.of);
    return ({ node, id, at }) =>
      [...(periods.get(node) ?? []), ...(periods.get(id) ?? [])].some(
        ({ from_us, to_us }) => at >= from_us && at <= to_us,
      );
  }

  async #launch(n: number, firstNode: number, nodes: number): Promise<void> {
    const { redis } = this.#system;
    const truth = this.#system.folder(`truth-${n}.jsonl`);
    const flags = {
      cluster: CLUSTER,
      'redis-url': redis.urlOf('agent'),
      'spool-dir': this.#system.folder(`spools-${n}`),
      truth,
      'first-node': `${firstNode}`,
      nodes: `${nodes}`,
      pods: `${this.#size.pods}`,
      'log-level': 'warn',
      ...this.#size.flags,
    };
    const process = await startProcess({
      name: `fleet ${n}`,
      command: globalThis.process.execPath,
      args: [
        ...NODE_FLAGS,
        CLI,
        'simulate',
        'fleet',
        ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]),
      ],
      logFile: this.#system.folder(`fleet-${n}.log`),
      stopWithinMs: STOPS_WITHIN_MS,
    });
    this.#processes.push({ process, truth });
  }
}

interface Period {
  readonly [column: string]: unknown;
  readonly of: string;
  readonly from_us: number;
  readonly to_us: number;
}

const keyOf = ({ node, id, type }: DroppedEvent): string => `${node} ${id} ${type}`;

/** The log has warnings too; a line may be half written. */
function lastTotals({ logFile }: RunningProcess): FleetTotals | null {
  const line = readFileSync(logFile, 'utf8')
    .split('\n')
    .slice(0, -1)
    .findLast((each) => each.startsWith('{"nodes":'));
  return line === undefined ? null : JSON.parse(line);
}
