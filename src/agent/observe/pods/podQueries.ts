/*
 * Pod queries: asks the kubelet's PodsAPI for a pod whose status should show a start or stop by now. The kubelet limits such calls for all
 * of its clients together and writes a line in its log for each, so they are few.
 */
import { monoNow } from '../../../platform/clock.ts';
import type { KubeletPodAnswer } from '../../../protocol/observation.ts';
import { PacedCalls } from '../pacedCalls.ts';
import type { PodsStream } from './podsStream.ts';

export const POD_QUERY_RESULTS = ['found', 'not_found', 'failed', 'not_asked'] as const;
export type PodQueryResult = (typeof POD_QUERY_RESULTS)[number];

export class PodQueries {
  readonly #synced: () => Pick<PodsStream, 'getPod'> | null;
  readonly #answered: (answer: KubeletPodAnswer, result: PodQueryResult) => void;
  readonly #calls: PacedCalls<string>;

  /** `synced`: the stream whose connection is used, null while the kubelet is not watched. */
  constructor(
    synced: () => Pick<PodsStream, 'getPod'> | null,
    answered: (answer: KubeletPodAnswer, result: PodQueryResult) => void,
  ) {
    this.#synced = synced;
    this.#answered = answered;
    this.#calls = new PacedCalls((podUid) => this.#ask(podUid));
  }

  /** Queues a query; it is answered at once if too many wait. */
  ask(podUid: string): void {
    if (!this.#calls.add(podUid, podUid)) this.#notAsked(podUid, 'TOO_MANY');
  }

  stop(): void {
    this.#calls.stop();
  }

  async #ask(podUid: string): Promise<void> {
    const stream = this.#synced();
    if (stream === null) {
      this.#notAsked(podUid, 'NOT_WATCHING');
      return;
    }
    const answer = await stream.getPod(podUid);
    this.#answered(answer, resultOf(answer));
  }

  #notAsked(podUid: string, reason: 'TOO_MANY' | 'NOT_WATCHING'): void {
    const now = monoNow();
    this.#answered({ podUid, asked: now, at: now, found: false, reason }, 'not_asked');
  }
}

function resultOf(answer: KubeletPodAnswer): PodQueryResult {
  if (answer.found) return 'found';
  return answer.reason === 'NOT_FOUND' ? 'not_found' : 'failed';
}
