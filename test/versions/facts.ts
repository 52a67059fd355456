/*
 * The expected behaviour of each version in the scenario, as its source says it and not as our code does. "k/k" is kubernetes/kubernetes.
 *
 *   cache   1.26 to 1.36: events fill the pod cache, relists come every 300 s (k/k pkg/kubelet/kubelet.go, eventedPlegRelistPeriod); the fifth
 *           error of a run stops that for good (k/k pkg/kubelet/pleg/evented.go, watchEventsChannel)
 *   hint    1.37: relists stay at one a second; a STOPPED asks for an earlier one, until the fifth error (kubernetes#139262)
 */
import type { TriedContainerd, TriedKubelet } from '../../devtools/versions/pairs.ts';

export interface KubeletFacts {
  readonly design: 'cache' | 'hint';
  /**
   * The fate of a pod that was started before the fallback. Up to 1.31 events wrote pods into the cache with a time far in the future, because
   * nanoseconds were taken as seconds, so that relists are refused (kubernetes#124297, #127195): a container that ends is not restarted.
   */
  readonly restartsAfterGivingUp: boolean;
  /**
   * Whether it may start a static pod twice: the pod cache shows a container between its creation and its start, which a sync takes for one to
   * replace (kubernetes#121349, #123087). Seen on 1.28.15 and 1.30.14, never later.
   */
  readonly mayStartStaticPodsTwice: boolean;
  /** It has the gate CRIListStreaming (KEP-5825). */
  readonly hasStreamingLists: boolean;
}

const CACHE = { design: 'cache', hasStreamingLists: false } as const;

export const KUBELETS: Readonly<Record<TriedKubelet, KubeletFacts>> = {
  '1.28': { ...CACHE, restartsAfterGivingUp: false, mayStartStaticPodsTwice: true },
  '1.30': { ...CACHE, restartsAfterGivingUp: false, mayStartStaticPodsTwice: true },
  '1.33': { ...CACHE, restartsAfterGivingUp: true, mayStartStaticPodsTwice: false },
  '1.36': {
    ...CACHE,
    restartsAfterGivingUp: true,
    mayStartStaticPodsTwice: false,
    hasStreamingLists: true,
  },
  '1.37': {
    design: 'hint',
    restartsAfterGivingUp: true,
    mayStartStaticPodsTwice: false,
    hasStreamingLists: true,
  },
};

/** The modes of each design: while the stream is used, and after it was given up. */
export const MODES = {
  cache: { on: 'Evented', givenUp: 'Fallback' },
  hint: { on: 'EventedHint', givenUp: 'HintDisabled' },
} as const;

/** The consequence for the pods of a node when its kubelet gives up a stream that had worked. */
export const consequenceOf = ({ design, restartsAfterGivingUp }: KubeletFacts) => {
  if (design === 'hint') return 'hint_lost';
  return restartsAfterGivingUp ? 'slower' : 'wrong_until_restart';
};

/** The words that a kubelet of this design logs when it gives up its stream, which it does once for each run. */
export const GIVES_UP_WITH: Readonly<Record<KubeletFacts['design'], string>> = {
  cache: 'Fall back to Generic PLEG relisting since Evented PLEG is not working',
  hint: 'Evented PLEG: disabling container-termination fast path after exhausting event stream retries',
};

export interface RuntimeFacts {
  /** containerd 2 sends every subscriber every event; of 1.7 each event goes to one (containerd#7318, #9661). */
  readonly everySubscriberReceivesAll: boolean;
  /** StreamContainers and StreamPodSandboxes of CRI 1.36. */
  readonly hasStreamingLists: boolean;
}

const BROADCAST = { everySubscriberReceivesAll: true, hasStreamingLists: false };

export const RUNTIMES: Readonly<Record<TriedContainerd, RuntimeFacts>> = {
  '1.7': { ...BROADCAST, everySubscriberReceivesAll: false },
  '2.1': BROADCAST,
  '2.2': BROADCAST,
  '2.3': BROADCAST,
  '2.4': { ...BROADCAST, hasStreamingLists: true },
};
