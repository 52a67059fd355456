/*
 * Runs pods one after the other, a few at the same time, until it is stopped.
 */
import { isCriReady } from '../../devtools/localServices/criReadiness.ts';
import type { DrivenPod, PodDriver } from '../../devtools/simulator/podDriver.ts';
import { waitFor } from './waitFor.ts';
import { WITHIN_MS } from './watchedNode.ts';

const CONCURRENCY = 3;

export interface Churn {
  /** The pods that were created, run and removed without an error. */
  readonly completed: readonly DrivenPod[];
  /** Waits for the last pods. Pods that an error interrupted are left to the driver's `cleanup`. */
  stop(): Promise<void>;
}

let count = 0;

export function churn(pods: PodDriver, socket: string): Churn {
  const completed: DrivenPod[] = [];
  let running = true;
  const runPods = async () => {
    while (running) {
      count += 1;
      try {
        completed.push(await pods.runToEnd({ name: `churn-${count}` }));
      } catch {
        // The runtime stopped answering meanwhile.
        await waitFor('the runtime answers', () => isCriReady(socket), WITHIN_MS);
      }
    }
  };
  const workers = Promise.all(Array.from({ length: CONCURRENCY }, runPods));
  // A test that fails before it stops the churn reports its own error.
  workers.catch(() => undefined);
  return {
    completed,
    stop: async () => {
      running = false;
      await workers;
    },
  };
}
