/*
 * Pods that come and go without an end, some at the same time, for as long as the runtime is there.
 */
import { isCriReady } from '../../devtools/localServices/criReadiness.ts';
import type { DrivenPod, PodDriver } from '../../devtools/simulator/podDriver.ts';
import { waitFor } from './waitFor.ts';
import { WITHIN_MS } from './watchedNode.ts';

const AT_ONCE = 3;

export interface Churn {
  /** Those that lived from the first to the last call without a fault. */
  readonly lived: readonly DrivenPod[];
  /** Lets the last ones end. Pods whose life was cut short are left to the driver's `cleanup`. */
  stop(): Promise<void>;
}

let names = 0;

export function churn(pods: PodDriver, socket: string): Churn {
  const lived: DrivenPod[] = [];
  let going = true;
  const live = async () => {
    while (going) {
      names += 1;
      try {
        lived.push(await pods.liveOnePod({ name: `churn-${names}` }));
      } catch {
        // The runtime went away in the middle of it.
        await waitFor('the runtime answers', async () => (await isCriReady(socket)) || undefined, WITHIN_MS);
      }
    }
  };
  const workers = Promise.all(Array.from({ length: AT_ONCE }, live));
  // A test that fails before it stops the churn has its own error to tell.
  workers.catch(() => undefined);
  return {
    lived,
    stop: async () => {
      going = false;
      await workers;
    },
  };
}
