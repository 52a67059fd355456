/*
 * Pods that start and end on a real node, so that the demo has events to show.
 */
import type { KubeClient } from '../../src/kube/client.ts';
import { podsOf } from '../../src/kube/object.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/sleep.ts';
import type { LocalContainerd } from '../localServices/containerd.ts';
import { waitingPod } from '../localServices/pods.ts';
import { createPodDriver } from '../simulator/podDriver.ts';

/** From pod to pod, or longer where the node takes longer to remove one. */
const EVERY_MS = 1_500;
const POLL_MS = 250;
/** How many pods run at a time; a new one replaces the oldest. */
const MAX_PODS = 4;
export const NAMESPACE = 'shop';

/** The runner of the pods. */
export interface PodRunner {
  /** Returns the removal of the pod, which waits for its end until the signal is aborted. */
  run(name: string): Promise<(signal: AbortSignal) => Promise<unknown>>;
  close(): Promise<void>;
}

/** No kubelet: calls of the CRI. */
export function runtimePods({ socket, cgroupParent }: LocalContainerd): PodRunner {
  const driver = createPodDriver({ socket, cgroupParent });
  return {
    async run(name) {
      const pod = await driver.runPod({ name, namespace: NAMESPACE, containers: [{ name: 'app' }] });
      return () => driver.removePod(pod);
    },
    close: () => driver.close(),
  };
}

/** The kubelet of a node. Those that are left are removed with its containerd. */
export const kubeletPods = (kube: KubeClient, node: string, image: string): PodRunner => ({
  async run(name) {
    const pods = podsOf(NAMESPACE);
    await kube.apply(pods, waitingPod({ name, namespace: NAMESPACE, node, image, graceSeconds: 1 }));
    return async (signal) => {
      await kube.delete(pods, name);
      while (!signal.aborted && (await kube.get(pods, name)) !== undefined) await sleep(POLL_MS, signal);
    };
  },
  close: async () => {},
});

export class PodChurn {
  readonly #pods: PodRunner;
  readonly #what: string;
  /** The removals of the pods. */
  readonly #running: ((signal: AbortSignal) => Promise<unknown>)[] = [];
  readonly #end = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #turn: Promise<void> | null = null;
  #count = 0;

  /** Pods are called `what-1`, `what-2` and so on. */
  constructor(pods: PodRunner, what: string) {
    this.#pods = pods;
    this.#what = what;
    this.#timer = setInterval(() => {
      this.#turn ??= this.#next().finally(() => {
        this.#turn = null;
      });
    }, EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#end.abort();
    await this.#turn;
    await this.#pods.close();
  }

  async #next(): Promise<void> {
    try {
      this.#count += 1;
      this.#running.push(await this.#pods.run(`${this.#what}-${this.#count}`));
      const removeOldest = this.#running.length > MAX_PODS ? this.#running.shift() : undefined;
      await removeOldest?.(this.#end.signal);
    } catch (error) {
      process.stderr.write(`a pod on a real node failed: ${messageOf(error)}\n`);
    }
  }
}
