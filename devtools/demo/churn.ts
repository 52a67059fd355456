/*
 * Real pods that come and go on a real containerd, so that there is something to watch.
 */
import { messageOf } from '../../src/platform/errors.ts';
import type { LocalContainerd } from '../localServices/containerd.ts';
import { createPodDriver, type DrivenPod, type PodDriver } from '../simulator/podDriver.ts';

const EVERY_MS = 1_500;
/** How many live at a time; the oldest goes when the next comes. */
const MOST = 4;

export class PodChurn {
  readonly #pods: PodDriver;
  readonly #living: DrivenPod[] = [];
  readonly #timer: NodeJS.Timeout;
  #turn: Promise<void> | null = null;
  #count = 0;
  /** What went wrong last; null when all is well. */
  problem: string | null = null;

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
      this.#living.push(await this.#pods.runPod({ name, namespace: 'shop', containers: [{ name: 'app' }] }));
      const oldest = this.#living.length > MOST ? this.#living.shift() : undefined;
      if (oldest !== undefined) await this.#pods.removePod(oldest);
      this.problem = null;
    } catch (error) {
      this.problem = messageOf(error);
    }
  }
}
