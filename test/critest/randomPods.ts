/*
 * Pods beside those of critest, many at once: containers that end by themselves, are stopped, killed, removed while they run, or left to the
 * removal of their pod. Drawn from a seed.
 */

import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { isCriReady } from '../../devtools/localServices/criReadiness.ts';
import { createPodDriver, type DrivenPod, type PodDriver } from '../../devtools/simulator/podDriver.ts';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { waitFor } from '../support/waitFor.ts';

export interface RandomPodsOptions {
  readonly seed: number;
  readonly count: number;
  readonly concurrency: number;
  /** Called after each pod with how many there were. */
  readonly onPod: (count: number) => void;
}

/** Returns what went wrong with the pods that were interrupted. Their removal is tried again at the end. */
export async function runRandomPods(
  containerd: LocalContainerd,
  { seed, count, concurrency, onPod }: RandomPodsOptions,
): Promise<string[]> {
  const { socket, cgroupParent } = containerd;
  const pods = createPodDriver({ socket, cgroupParent });
  const interrupted: string[] = [];
  let begun = 0;
  let done = 0;
  const runPods = async () => {
    while (begun < count) {
      begun += 1;
      const name = `random-${begun}`;
      try {
        await runPod(pods, containerd, name, randomFor(seed, name));
      } catch (error) {
        interrupted.push(messageOf(error));
        await waitFor('the runtime answers', () => isCriReady(socket));
      }
      done += 1;
      onPod(done);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runPods));
  await pods.close();
  return interrupted;
}

/** A command that waits until it is stopped, one that ends at once, and ones that end after a while. */
const COMMANDS = [['sleep', '86400'], ['true'], ['sh', '-c', 'sleep 1; exit 3'], ['sleep', '2']] as const;

type Ending = (pods: PodDriver, containerd: LocalContainerd, id: string) => Promise<void>;

const ENDINGS: readonly Ending[] = [
  async () => undefined,
  (pods, _, id) => pods.stopContainer(id),
  (pods, _, id) => pods.removeContainer(id),
  async (pods, _, id) => {
    await pods.stopContainer(id);
    await pods.removeContainer(id);
  },
  // As the kernel kills it. One that ended by itself meanwhile has no process.
  async (_, { ctr }, id) => void (await ctr(['tasks', 'kill', '--signal', 'SIGKILL', id]).catch(() => '')),
];

async function runPod(
  pods: PodDriver,
  containerd: LocalContainerd,
  name: string,
  random: Random,
): Promise<DrivenPod> {
  const some = <T>(all: readonly T[]): T | undefined => random.shuffle(all)[0];
  const containers = Array.from({ length: random.chance(0.3) ? 2 : 1 }, (_, i) => ({
    name: `app-${i}`,
    command: some(COMMANDS) ?? [],
  }));
  const pod = await pods.runPod({ name, containers });
  for (const id of Object.values(pod.containers)) await some(ENDINGS)?.(pods, containerd, id);
  await pods.removePod(pod);
  return pod;
}
