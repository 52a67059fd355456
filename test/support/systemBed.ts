/*
 * The whole system for a file of tests, and what runs on its nodes. Programs started by a test end after it, and those of `beforeAll` end
 * after the last test, always the latest first. Nothing may be left on the machine then.
 */
import { writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import {
  type ContainerdOptions,
  type LocalContainerd,
  startContainerd,
} from '../../devtools/localServices/containerd.ts';
import {
  type KubeletOptions,
  type LocalKubelet,
  startKubelet,
} from '../../devtools/localServices/kubelet.ts';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { type Stops, stopAll } from '../../devtools/localServices/stopAll.ts';
import {
  createPodDriver,
  type PodDriver,
  type PodDriverOptions,
} from '../../devtools/simulator/podDriver.ts';
import { type CriProxy, type EventFilter, startCriProxy } from '../../devtools/simulator/proxy.ts';
import { leftovers } from './leftovers.ts';
import { started } from './started.ts';
import { System } from './system.ts';
import { MAIN } from './testedVersions.ts';
import { WatchedNode } from './watchedNode.ts';

/** For nodes with a real runtime, beside the runtime itself, and with a real kubelet too. */
export const RUNTIME_NEEDS = ['root', 'runc', 'redis-server', 'postgres'] as const;
export const KUBELET_NEEDS = [...RUNTIME_NEEDS, 'kubelet', 'kube-apiserver', 'etcd', 'kubectl'] as const;

interface SystemBedOptions {
  readonly kube: boolean;
  readonly controller?: PlegwatchSettings;
}

const CURE = 'See what still runs with ps, and stop it.';

export class SystemBed {
  #system: System | null = null;
  #controller: LocalPlegwatch | null = null;
  /** Token of agents that may read the metrics of kubelets. */
  #tokenFile: Promise<string> | null = null;
  #made = 0;
  readonly #ofFile: Stops = [];
  readonly #ofTest: Stops = [];
  #stops = this.#ofFile;

  /** Registers hooks, so it must be called outside of tests. */
  constructor({ kube, controller }: SystemBedOptions) {
    beforeAll(async () => {
      this.#system = await System.start({ kube });
      this.#ofFile.push(() => this.system.stop());
      this.#controller = await this.#system.controller(controller);
    });
    beforeEach(() => {
      this.#stops = this.#ofTest;
    });
    afterEach(async () => {
      this.#stops = this.#ofFile;
      await stopAll(this.#ofTest, CURE);
    });
    afterAll(async () => {
      await stopAll(this.#ofFile, CURE);
      expect(leftovers()).toEqual([]);
    });
  }

  get system(): System {
    return started(this.#system);
  }
  /** The one that was started first. */
  get controller(): LocalPlegwatch {
    return started(this.#controller);
  }

  /** Runs after the test, or after the last test if none runs. */
  readonly atEnd = (stop: Stops[number]): void => {
    this.#stops.push(stop);
  };

  readonly stopAtEnd = <T extends { stop(): Promise<void> }>(service: T): T => {
    this.atEnd(() => service.stop());
    return service;
  };

  /** Default: that of the main pair. */
  readonly containerd = async (
    options: ContainerdOptions = { version: MAIN.containerd },
  ): Promise<LocalContainerd> => this.stopAtEnd(await startContainerd(options));

  /** Pods that it cannot remove at the end are removed with containerd. */
  readonly pods = (
    { socket, cgroupParent }: LocalContainerd,
    options: Pick<PodDriverOptions, 'timeoutMs'> = {},
  ): PodDriver => {
    const driver = createPodDriver({ socket, cgroupParent, ...options });
    this.atEnd(() => driver.close().catch(() => undefined));
    return driver;
  };

  /** A proxy in front of this containerd. Default: it delivers everything. */
  readonly proxy = async (
    { socket: upstream }: LocalContainerd,
    filter: EventFilter = () => 'deliver',
  ): Promise<CriProxy> => {
    const socket = this.#newFile('proxy');
    return this.stopAtEnd(await startCriProxy({ upstream, socket, filter }));
  };

  /** A kubelet on the API server of the system. */
  readonly kubelet = async (options: Omit<KubeletOptions, 'api'>): Promise<LocalKubelet> =>
    this.stopAtEnd(await startKubelet({ api: this.system.api, ...options }));

  /** Settings for reading the metrics of this kubelet, with a token that permits it or another one. */
  readonly metricsOf = async ({ url }: LocalKubelet, token?: string): Promise<PlegwatchSettings> => {
    if (token === undefined) {
      this.#tokenFile ??= this.system.agentToken();
      return { kubeletUrl: url, kubeletTokenFile: await this.#tokenFile };
    }
    const kubeletTokenFile = this.#newFile('token');
    writeFileSync(kubeletTokenFile, token, { mode: 0o600 });
    return { kubeletUrl: url, kubeletTokenFile };
  };

  /** Starts an agent at this socket. */
  readonly watch = async (
    node: string,
    socket: string,
    settings: PlegwatchSettings = {},
  ): Promise<WatchedNode> => {
    const agent = this.stopAtEnd(await this.system.agent(node, socket, settings));
    return new WatchedNode(this.system, node, agent);
  };

  #newFile(what: string): string {
    this.#made += 1;
    return this.system.folder(`${what}-${this.#made}`);
  }
}
