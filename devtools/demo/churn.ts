/*
 * Starts and removes pods on a real containerd, so that the demo has events to show.
 */
import { messageOf } from '../../src/platform/errors.ts';
import type { LocalContainerd } from '../localServices/containerd.ts';
import { createPodDriver, type DrivenPod, type PodDriver } from '../simulator/podDriver.ts';

const EVERY_MS = 1_500;
/** How many pods run at a time; a new one replaces the oldest. */
const MAX_PODS = 4;

export class PodChurn {
  readonly #pods: PodDriver;
  readonly #running: DrivenPod[] = [];
  readonly #timer: NodeJS.Timeout;
  #turn: Promise<void> | null = null;
  #count = 0;

  constructor(containerd: LocalContainerd) {
    this.#pods = createPodDriver({ socket: containerd.socket, cgroupParent: containerd.cgroupParent });
    this.#timer = setInterval(() => {
      this.#turn ??= this.#next().finally(() => {
        this.#turn = null;
      });
    }, EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#turn;
    await this.#pods.close();
  }

  async #next(): Promise<void> {
    try {
      this.#count += 1;
      const name = `cart-${this.#count}`;
      this.#running.push(await this.#pods.runPod({ name, namespace: 'shop', containers: [{ name: 'app' }] }));
      const oldest = this.#running.length > MAX_PODS ? this.#running.shift() : undefined;
      if (oldest !== undefined) await this.#pods.removePod(oldest);
    } catch (error) {
      process.stderr.write(`a pod on the real containerd failed: ${messageOf(error)}\n`);
    }
  }
}
