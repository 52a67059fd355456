/*
 * A simulated fleet: many nodes in one process. Its ground truth has one JSON line for each event that was not delivered, and for each container
 * that a kubelet overlooked:
 *
 *   { node, id, isSandbox, type, at }    `at` in microseconds since the Unix epoch
 *   { node, id, overlooked: true, at }
 */
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { AgentMetrics } from '../../src/agent/metrics.ts';
import type { Logger } from '../../src/platform/log.ts';
import { sleep } from '../../src/platform/sleep.ts';
import { drop } from '../simulator/eventFaults.ts';
import type { TruthEntry } from '../simulator/groundTruth.ts';
import { FleetNode } from './fleetNode.ts';
import type { SimulateFleetConfig } from './settings.ts';

export interface FleetTotals {
  readonly nodes: number;
  /** Transitions of containers and sandboxes. */
  readonly transitions: number;
  /** Events that agents received, and events that never reached one. */
  readonly delivered: number;
  readonly dropped: number;
  /** Records that the store has not acknowledged. */
  readonly unacknowledged: number;
  readonly rssMiB: number;
  /** Whether pods still come and go. */
  readonly isChurning: boolean;
}

export class SimulatedFleet {
  readonly #config: SimulateFleetConfig;
  readonly #log: Logger;
  readonly #metrics = new AgentMetrics();
  readonly #nodes: FleetNode[] = [];
  readonly #truth: WriteStream | null;
  #transitions = 0;
  #delivered = 0;
  #dropped = 0;
  #isChurning = true;

  constructor(config: SimulateFleetConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.#truth = config.truth === undefined ? null : createWriteStream(config.truth);
  }

  /** Starts the nodes, each at its time, until the signal is aborted. They do not wait for each other: on a busy machine each takes long. */
  async start(signal: AbortSignal): Promise<void> {
    const { firstNode, nodes, startWithin } = this.#config;
    const starting = Array.from({ length: nodes }, async (_, n) => {
      await sleep((n * startWithin) / 1000 / nodes, signal);
      if (!signal.aborted) this.#nodes.push(await this.#startNode(firstNode + n));
    });
    // All of them: what started although another one failed is stopped like the rest.
    const failed = (await Promise.allSettled(starting)).find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }

  get totals(): FleetTotals {
    return {
      nodes: this.#nodes.length,
      transitions: this.#transitions,
      delivered: this.#delivered,
      dropped: this.#dropped,
      unacknowledged: this.#nodes.reduce((sum, node) => sum + node.unacknowledged, 0),
      rssMiB: Math.round(process.memoryUsage().rss / 1024 ** 2),
      isChurning: this.#isChurning,
    };
  }

  /** Stops the churn; the pods that exist remain. */
  async stopChurn(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stopChurn()));
    this.#isChurning = false;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
    await new Promise<void>((resolve) => (this.#truth === null ? resolve() : this.#truth.end(resolve)));
  }

  async #startNode(number: number): Promise<FleetNode> {
    const config = this.#config;
    const node = `node-${String(number).padStart(5, '0')}`;
    const seed = (config.seed + number) % 2 ** 31;
    return FleetNode.start({
      config: { ...config, node, spoolDir: join(config.spoolDir, node) },
      seed,
      churn: { pods: config.pods, meanMs: config.podLifetime / 1000, restarts: config.restarts },
      faults: config.drop > 0 ? [drop({ seed, probability: config.drop })] : [],
      overlook: config.overlook,
      metrics: this.#metrics,
      log: this.#log.child({ node }),
      onTruth: (entry) => this.#count(node, entry),
    });
  }

  #count(node: string, entry: TruthEntry): void {
    if (entry.what === 'transition') this.#transitions += 1;
    if (entry.what === 'fault' && entry.fault === 'kubelet_overlooks')
      this.#truth?.write(`${JSON.stringify({ node, id: entry.id, overlooked: true, at: entry.at })}\n`);
    if (entry.what !== 'event' || entry.queued) return;
    if (entry.delivered) {
      this.#delivered += 1;
      return;
    }
    this.#dropped += 1;
    const { id, isSandbox, type, at } = entry;
    this.#truth?.write(`${JSON.stringify({ node, id, isSandbox, type, at })}\n`);
  }
}
