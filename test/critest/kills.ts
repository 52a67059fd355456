/*
 * The kills in the middle of a run: containerd after a quarter of the random pods, and the agent after a third of them. critest stands still while
 * containerd is down: its other specs would fail at once without a call.
 */
import type { World } from '../soak/world.ts';
import type { RunningSpecs } from './specs.ts';

export class Kills {
  /** When containerd was killed, by the wall clock in milliseconds. */
  at = Number.NaN;
  readonly #due: { readonly share: number; readonly kill: () => Promise<void> }[];
  #running: Promise<void> = Promise.resolve();

  constructor({ agent, restartContainerd }: World, specs: RunningSpecs) {
    const killContainerd = async () => {
      specs.pause();
      this.at = Date.now();
      await restartContainerd(true);
      specs.resume();
    };
    const killAgent = async () => {
      await agent.kill();
      await agent.restart();
    };
    this.#due = [
      { share: 1 / 4, kill: killContainerd },
      { share: 1 / 3, kill: killAgent },
    ];
  }

  /** `share`: of the random pods that have ended. */
  after(share: number): void {
    for (let next = this.#due[0]; next !== undefined && share >= next.share; next = this.#due[0]) {
      this.#due.shift();
      const { kill } = next;
      this.#running = this.#running.then(kill);
      // done() reports it.
      this.#running.catch(() => undefined);
    }
  }

  done(): Promise<void> {
    return this.#running;
  }
}
