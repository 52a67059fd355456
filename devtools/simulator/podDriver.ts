/*
 * Runs pods through a CRI socket as the kubelet does, on real runtimes and on the simulated one. Pods use the host's network,
 * so no network plugin is needed.
 */
import { NamespaceMode, type PodSandboxConfig } from '../../src/cri/runtime.ts';
import { type CriTestClient, connectCri } from './criClient.ts';
import { podLabels } from './podModel.ts';
import { uidFor } from './random.ts';

export interface PodDriverOptions {
  /** A path. */
  readonly socket: string;
  /** The available images. `pause` is for containers that only wait; the sandbox image is a setting of the runtime. */
  readonly images?: { readonly pause: string; readonly busybox: string };
  /** The control group of the pods. Default: the runtime's choice. */
  readonly cgroupParent?: string;
  /** The timeout of one call in milliseconds. Default 120,000. */
  readonly timeoutMs?: number;
}

interface DrivenPodSpec {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly containers?: readonly DrivenContainerSpec[];
  /** Which of the runtime's handlers runs it. Default: the runtime's choice. */
  readonly runtimeHandler?: string;
}

interface DrivenContainerSpec {
  readonly name: string;
  /** Default: a command that waits until it is stopped. */
  readonly command?: readonly string[];
  readonly attempt?: number;
  readonly image?: string;
  /** Its processes are killed if they need more. Default: no limit. */
  readonly memoryBytes?: number;
}

export interface DrivenPod {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly sandbox: string;
  /** The ids of its containers by name; a restart replaces the id. */
  readonly containers: Readonly<Record<string, string>>;
}

const DEFAULT_IMAGES = { pause: 'plegwatch.local/pause:1', busybox: 'plegwatch.local/busybox:1' };
const WAIT: readonly string[] = ['sleep', '86400'];

/** Opens its own connection; the runtime may start later. */
export const createPodDriver = (options: PodDriverOptions): PodDriver => new PodDriver(options);

export class PodDriver {
  readonly #client: CriTestClient;
  readonly #options: PodDriverOptions;
  readonly #made = new Map<string, DrivenPod>();
  #count = 0;

  constructor(options: PodDriverOptions) {
    this.#options = options;
    this.#client = connectCri(options.socket);
  }

  /** Creates a sandbox, and creates and starts its containers. */
  async runPod(spec: DrivenPodSpec): Promise<DrivenPod> {
    const { name, namespace = 'default', uid = this.#newUid(name), runtimeHandler } = spec;
    const request = { config: this.#sandboxConfig({ name, namespace, uid }), runtimeHandler };
    const { podSandboxId: sandbox } = await this.#client.call('runPodSandbox', request, this.#deadline());
    const empty: DrivenPod = { name, namespace, uid, sandbox, containers: {} };
    this.#made.set(sandbox, empty);
    const containers: Record<string, string> = {};
    for (const container of spec.containers ?? [{ name: 'app' }]) {
      containers[container.name] = await this.runContainer(empty, container);
    }
    const pod = { ...empty, containers };
    this.#made.set(sandbox, pod);
    return pod;
  }

  /** Creates and starts one more container; returns its id. */
  async runContainer(pod: DrivenPod, spec: DrivenContainerSpec): Promise<string> {
    const id = await this.createContainer(pod, spec);
    await this.startContainer(id);
    return id;
  }

  async createContainer(pod: DrivenPod, spec: DrivenContainerSpec): Promise<string> {
    const { name, attempt = 0, command = WAIT, image = this.#images.busybox, memoryBytes } = spec;
    const request = {
      podSandboxId: pod.sandbox,
      config: {
        metadata: { name, attempt },
        image: { image },
        command: [...command],
        args: [],
        labels: { ...podLabels(pod), 'io.kubernetes.container.name': name },
        annotations: {},
        logPath: '',
        linux:
          memoryBytes === undefined ? undefined : { resources: { memoryLimitInBytes: BigInt(memoryBytes) } },
      },
      sandboxConfig: this.#sandboxConfig(pod),
    };
    return (await this.#client.call('createContainer', request, this.#deadline())).containerId;
  }

  async startContainer(id: string): Promise<void> {
    await this.#client.call('startContainer', { containerId: id }, this.#deadline());
  }

  // No program in the images handles SIGTERM, so waiting is useless.
  async stopContainer(id: string): Promise<void> {
    await this.#client.call('stopContainer', { containerId: id, timeout: 0n }, this.#deadline());
  }

  async removeContainer(id: string): Promise<void> {
    await this.#client.call('removeContainer', { containerId: id }, this.#deadline());
  }

  async stopPod(pod: DrivenPod): Promise<void> {
    await this.#client.call('stopPodSandbox', { podSandboxId: pod.sandbox }, this.#deadline());
  }

  /** Stops and removes a pod: first its containers, then the sandbox. */
  async removePod(pod: DrivenPod): Promise<void> {
    await this.stopPod(pod);
    for (const id of await this.#containersOf(pod)) await this.removeContainer(id);
    await this.#client.call('removePodSandbox', { podSandboxId: pod.sandbox }, this.#deadline());
    this.#made.delete(pod.sandbox);
  }

  /** Runs, stops and removes a pod, container by container; returns its ids. */
  async runToEnd(spec: Partial<DrivenPodSpec> = {}): Promise<DrivenPod> {
    this.#count += 1;
    const pod = await this.runPod({ ...spec, name: spec.name ?? `pod-${this.#count}` });
    for (const id of Object.values(pod.containers)) {
      await this.stopContainer(id);
      await this.removeContainer(id);
    }
    await this.removePod(pod);
    return pod;
  }

  /** Removes every remaining pod of this driver. Tries all of them before it throws. */
  async cleanup(): Promise<void> {
    const results = await Promise.allSettled([...this.#made.values()].map((pod) => this.removePod(pod)));
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, 'some pods could not be removed');
  }

  /** Cleans up and closes the connection. */
  async close(): Promise<void> {
    try {
      await this.cleanup();
    } finally {
      this.#client.close();
    }
  }

  async #containersOf(pod: DrivenPod): Promise<string[]> {
    const filter = { id: '', state: undefined, podSandboxId: pod.sandbox, labelSelector: {} };
    const { containers } = await this.#client.call('listContainers', { filter }, this.#deadline());
    return containers.map(({ id }) => id);
  }

  #sandboxConfig(pod: Pick<DrivenPod, 'name' | 'namespace' | 'uid'>): PodSandboxConfig {
    const { name, namespace, uid } = pod;
    const namespaceOptions = {
      network: NamespaceMode.NODE,
      pid: NamespaceMode.CONTAINER,
      ipc: NamespaceMode.POD,
    };
    return {
      metadata: { name, uid, namespace, attempt: 0 },
      hostname: '',
      logDirectory: '',
      labels: podLabels(pod),
      annotations: {},
      linux: { cgroupParent: this.#options.cgroupParent ?? '', securityContext: { namespaceOptions } },
    };
  }

  get #images(): typeof DEFAULT_IMAGES {
    return this.#options.images ?? DEFAULT_IMAGES;
  }

  #deadline(): { readonly deadline: number } {
    return { deadline: Date.now() + (this.#options.timeoutMs ?? 120_000) };
  }

  #newUid(name: string): string {
    this.#count += 1;
    return uidFor(process.pid, performance.timeOrigin, this.#count, name);
  }
}
