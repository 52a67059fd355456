/*
 * Pods that come and go: one before each ask of a test that waits, or a few at the same time, one after the other, until they are stopped.
 */
import { isCriReady } from '../../devtools/localServices/criReadiness.ts';
import type { DrivenPod, PodDriver } from '../../devtools/simulator/podDriver.ts';
import { waitFor } from './waitFor.ts';

const CONCURRENCY = 3;

/** Waits until the condition holds, and runs a pod to its end before each ask. */
export const churnUntil = (pods: PodDriver, what: string, ask: () => unknown): Promise<true> =>
  waitFor(what, async () => {
    await pods.runToEnd();
    return Boolean(await ask()) || undefined;
  });

interface Churn {
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
        await waitFor('the runtime answers', () => isCriReady(socket));
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
