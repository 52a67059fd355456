/*
 * The PodsAPI of a simulated kubelet without a socket: the comparison is shown the same statuses in this process.
 */
import type { PodsWatching, PodsWatchOptions } from '../../src/agent/observe/pods/podsWatch.ts';
import { monoNow } from '../../src/platform/clock.ts';
import { kubeletPodOf } from '../simulator/kubeletPods.ts';
import type { SimulatedKubelet } from '../simulator/simulatedKubelet.ts';

export class DirectPods implements PodsWatching {
  readonly #comparison: PodsWatchOptions['comparison'];
  readonly #kubelet: SimulatedKubelet;
  readonly #leave: () => void;

  constructor(
    kubelet: SimulatedKubelet,
    { comparison, nodeState }: Pick<PodsWatchOptions, 'comparison' | 'nodeState'>,
  ) {
    this.#comparison = comparison;
    this.#kubelet = kubelet;
    comparison.kubeletShowed({ is: 'opened', at: monoNow() });
    this.#leave = kubelet.watch({
      show: (change, pod) => {
        const at = monoNow();
        if (change === 'deleted') comparison.kubeletShowed({ is: 'removed', at, podUid: pod.pod.uid });
        else comparison.kubeletShowed({ is: 'pod', at, pod: kubeletPodOf(pod) });
      },
      synced: () => comparison.kubeletShowed({ is: 'synced', at: monoNow() }),
      end: () => comparison.kubeletShowed({ is: 'broken', at: monoNow() }),
    });
    nodeState.setPodsApi({ state: 'Watching', reason: '' });
  }

  /** Nothing has to be looked for. */
  tick(): void {}

  ask(podUid: string): void {
    const asked = monoNow();
    setImmediate(() => {
      const pod = this.#kubelet.pod(podUid);
      const call = { podUid, asked, at: monoNow() };
      this.#comparison.kubeletAnswered(
        pod === undefined
          ? { ...call, found: false, reason: 'NOT_FOUND' }
          : { ...call, found: true, pod: kubeletPodOf(pod) },
      );
    });
  }

  stop(): void {
    this.#leave();
  }
}
