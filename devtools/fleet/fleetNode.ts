/*
 * One node of a simulated fleet: a simulated runtime with pod churn, and the agent's own observer, spool and shipper in front of it. Only
 * what costs a process or a socket is left out: gRPC, the reader process, the HTTP server and the kubelet's metrics.
 */

import type { AgentConfig } from '../../src/agent/config.ts';
import type { AgentMetrics } from '../../src/agent/metrics.ts';
import { Observer } from '../../src/agent/observe/observer.ts';
import { NO_PACE_STORE } from '../../src/agent/observe/stream/subscribePolicy.ts';
import { Shipper } from '../../src/agent/ship/shipper.ts';
import { openSpool } from '../../src/agent/spool/openSpool.ts';
import type { Spool } from '../../src/agent/spool/spool.ts';
import type { Logger } from '../../src/platform/log.ts';
import { VERSION } from '../../src/platform/version.ts';
import { type ChurnOptions, runChurn, startPods } from '../simulator/churn.ts';
import { machineClock } from '../simulator/clock.ts';
import type { EventFault } from '../simulator/eventFaults.ts';
import type { TruthEntry } from '../simulator/groundTruth.ts';
import { randomFor } from '../simulator/random.ts';
import { RuntimeCore } from '../simulator/runtimeCore.ts';
import { SimulatedKubelet } from '../simulator/simulatedKubelet.ts';
import { DirectCalls, directReaderOf } from './directCalls.ts';
import { DirectPods } from './directPods.ts';

const HAND_OVER_MS = 3_000;
/** How long the kubelet overlooks a container. */
const OVERLOOKED_MS = 60_000;
const NO_PRESSURE = { cpuSome: 0, ioSome: 0, ioFull: 0, memorySome: 0, memoryFull: 0 };

/** The settings of an agent that has neither a socket, a kubelet nor an HTTP server. */
type FleetNodeConfig = Omit<
  AgentConfig,
  | 'criEndpoint'
  | 'subscribe'
  | 'spoolFallback'
  | 'httpAddress'
  | 'logLevel'
  | Exclude<Extract<keyof AgentConfig, `kubelet${string}` | 'podsApi' | 'hostIp'>, 'kubeletLateAfter'>
>;

export interface FleetNodeOptions {
  readonly config: FleetNodeConfig;
  readonly seed: number;
  readonly churn: Omit<ChurnOptions, 'seed' | 'areStarted'>;
  readonly faults: readonly EventFault[];
  /** The probability that the kubelet overlooks a container for a while. */
  readonly overlook: number;
  /** Shared by all nodes of a process: nobody asks for the metrics of one. */
  readonly metrics: AgentMetrics;
  readonly log: Logger;
  /** Called with each entry of the runtime's ground truth. */
  readonly onTruth: (entry: TruthEntry) => void;
}

export class FleetNode {
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #stopping = new AbortController();
  readonly #spool: Spool;
  readonly #shipper: Shipper;
  readonly #observer: Observer;
  readonly #churning: Promise<void>;

  static async start(options: FleetNodeOptions): Promise<FleetNode> {
    const { config, log } = options;
    const spool = await openSpool(
      {
        dir: config.spoolDir,
        cluster: config.cluster,
        node: config.node,
        maxBytes: config.spoolMaxBytes,
        fsyncInterval: config.spoolFsync,
        retention: config.spoolRetention,
        sweepInterval: config.intervalSpoolSweep,
        log,
      },
      new AbortController().signal,
    );
    const node = new FleetNode(options, spool);
    await spool.startHeartbeat(() => node.#observer.observedUntil);
    return node;
  }

  private constructor(options: FleetNodeOptions, spool: Spool) {
    const { config, seed, churn, faults, overlook, metrics, log, onTruth } = options;
    this.#spool = spool;
    const core = new RuntimeCore({
      seed,
      faults,
      clock: machineClock(),
      later: (ms, run) => this.#later(ms, run),
      keepTruth: false,
      onCrash: () => undefined,
    });
    // The pods run already, as on a node where an agent is installed.
    startPods(core.pods, { ...churn, seed });
    core.truth.listen(onTruth);
    core.comeUp();
    const kubelet = new SimulatedKubelet(core, (ms, run) => this.#later(ms, run));
    kubelet.comeUp();
    core.truth.listen((entry) => {
      if (entry.what !== 'transition' || entry.isSandbox || entry.transition !== 'created') return;
      if (!randomFor(seed, 'overlook', entry.id).chance(overlook)) return;
      kubelet.overlook(entry.id);
      this.#later(OVERLOOKED_MS, () => kubelet.notice(entry.id));
    });
    const { cluster, node } = config;
    this.#shipper = new Shipper({ redis: config, cluster, node, spool, intervals: config, log });
    const { runtimeName: name, runtimeVersion: version } = core.profile;
    this.#observer = new Observer({
      config: { ...config, criEndpoint: '', subscribe: 'auto', podsApi: '' },
      client: new DirectCalls(core),
      runtime: { name, version },
      agentVersion: VERSION,
      sink: spool,
      metrics,
      log,
      kubelet: null,
      paceStore: NO_PACE_STORE,
      startReader: directReaderOf(core),
      startPodsWatch: (watch) => new DirectPods(kubelet, watch),
      // That of this machine is not its own.
      readPressure: () => NO_PRESSURE,
    });
    this.#churning = runChurn(core.pods, { ...churn, seed, areStarted: true }, this.#stopping.signal);
  }

  get unacknowledged(): number {
    return this.#shipper.unacknowledged;
  }

  /** Stops the churn; the pods that exist remain. */
  async stopChurn(): Promise<void> {
    this.#stopping.abort();
    await this.#churning;
  }

  async stop(): Promise<void> {
    await this.stopChurn();
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#observer.stop();
    await this.#spool.stopHeartbeat(this.#observer.observedUntil);
    await this.#shipper.stop(HAND_OVER_MS);
    await this.#spool.close();
  }

  #later(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }
}
