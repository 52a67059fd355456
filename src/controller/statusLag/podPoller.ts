/*
 * The reader of pods: looks at the published status of each pod on the work list until it shows what happened. Run by the leader
 * only.
 *
 *   due ──► read ──► shown: the lag is known ──► store.finding_update, or a sample in store.status_lag
 *            │  └──► deleted, superseded, another pod, not in time: no lag, and the reason
 *            └─────► not shown: again, after a pause that grows with the age
 *
 * The pauses grow by a quarter, from one second to ten, so that the bounds stay narrow against the lag. All reads share one budget;
 * overdue transitions come before samples. While the API server is ill nobody is asked, and what was to be read stays on the list.
 *
 * Rights it needs: pods get.
 */

import { Backoff, type BackoffOptions } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { errorFields } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeStatusError, retryAfterMs } from '../kube/kubeErrors.ts';
import { podsOf } from '../kube/object.ts';
import type { Store } from '../store/store.ts';
import { type Lag, lagOf } from './bounds.ts';
import type { ReadResult, WatchKind } from './metrics.ts';
import { isPod, look, type PublishedPod, publishedPod } from './podStatus.ts';
import {
  type Claimed,
  type Expired,
  monotonic,
  type NoLag,
  type StoreClock,
  WatchList,
} from './watchList.ts';

interface ReaderMetrics {
  readonly read: (result: ReadResult) => void;
  readonly watched: (counts: { readonly overdue: number; readonly samples: number }) => void;
  readonly shed: (kind: WatchKind, count: number) => void;
}

export interface ReaderOptions {
  readonly store: Store;
  readonly kube: Pick<KubeClient, 'get'>;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly readsPerSecond: number;
  readonly log: Logger;
  readonly metrics: ReaderMetrics;
  /** The times it goes by, for tests. */
  readonly pace?: Partial<ReaderPace>;
}

interface ReaderPace {
  /** How often the work list is looked at while nothing is due. */
  readonly pollMs: number;
  readonly tendMs: number;
  readonly backoff: BackoffOptions;
}

export interface PodReader {
  /** Ends after the reads under way. */
  stop(): Promise<void>;
}

const PACE: ReaderPace = { pollMs: 250, tendMs: 5_000, backoff: { firstMs: 500, maxMs: 30_000 } };
/** Few at once, so that what is announced last does not wait long behind what was claimed before. */
const AT_ONCE = 4;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 10_000;
const GROWTH = 1.25;
/** A sample that waited longer for its read is let go. */
const STARVED_MS = 5_000;
/** The API server makes uids of this form; what has another is a static pod, or nothing that the API server ever had. */
const API_UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** For so long a kubelet may not have made the mirror of a static pod. */
const MIRROR_WITHIN_US = 60_000_000;
const MOST_EXPIRED = 100;
/** A sample that was read for so long is slow; one that was read less may have been read too little. */
const SLOW_MS = 30_000;

/** The pause after so many reads that did not show it. */
export const pauseAfter = (reads: number): number =>
  Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * GROWTH ** reads);

/** Starts at once and goes on through every failure until it is stopped. */
export function startPodReader(options: ReaderOptions): PodReader {
  const reader = new Reader(options);
  const ended = reader.run();
  return {
    async stop() {
      reader.stop();
      await ended;
    },
  };
}

class Reader {
  readonly #options: ReaderOptions;
  readonly #pace: ReaderPace;
  readonly #readLimit: TokenBucket;
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  #list: WatchList | undefined;
  #tendedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#pace = { ...PACE, ...options.pace };
    const { readsPerSecond } = options;
    this.#readLimit = new TokenBucket({ capacity: readsPerSecond, interval: perSecond(readsPerSecond) });
    this.#backoff = new Backoff(this.#pace.backoff);
  }

  stop(): void {
    this.#stop.abort();
  }

  async run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (!(await this.#round())) await sleep(this.#pace.pollMs, signal);
      } catch (error) {
        if (!signal.aborted) await this.#failed(error);
      }
    }
  }

  async #failed(error: unknown): Promise<void> {
    const waitMs = Math.round(this.#backoff.next(retryAfterMs(error)));
    this.#options.log.warn(
      { ...errorFields(error), waitMs },
      'the status of pods cannot be read, trying again',
    );
    await sleep(waitMs, this.#stop.signal);
  }

  /** True when there may be more to do at once. */
  async #round(): Promise<boolean> {
    const { store, cluster } = this.#options;
    this.#list ??= new WatchList(store, await store.ensureCluster(cluster));
    const list = this.#list;
    if (performance.now() - this.#tendedAt >= this.#pace.tendMs) await this.#tend(list);
    const { claimed, clock } = await list.claim(AT_ONCE);
    const ends = await Promise.allSettled(claimed.map((one) => this.#read(list, one, clock)));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    return claimed.length > 0;
  }

  async #tend(list: WatchList): Promise<void> {
    const { metrics } = this.#options;
    for (const late of await list.expired(MOST_EXPIRED)) {
      await list.end(late, inVain(late));
    }
    const starved = await list.starve(STARVED_MS);
    if (starved > 0) metrics.shed('sample', starved);
    metrics.watched(await list.counts());
    this.#tendedAt = performance.now();
  }

  async #read(list: WatchList, one: Claimed, clock: StoreClock): Promise<void> {
    const { kube, metrics } = this.#options;
    const { signal } = this.#stop;
    await sleep(this.#readLimit.reserve(monoNow()) / 1000, signal);
    if (signal.aborted) return;
    const began = monotonic();
    let object: Awaited<ReturnType<KubeClient['get']>>;
    try {
      object = await kube.get(podsOf(one.pod_namespace), one.pod_name, signal);
    } catch (error) {
      await list.later(one, pauseAfter(one.reads));
      metrics.read(isThrottled(error) ? 'throttled' : 'failed');
      if (isOfThisPod(error)) return;
      throw error;
    }
    const ended = monotonic();
    this.#backoff.reset();
    const pod = object === undefined ? undefined : publishedPod(object);
    if (pod === null) {
      metrics.read('failed');
      await list.later(one, pauseAfter(one.reads));
      return;
    }
    await this.#conclude(list, one, pod, {
      began: clock.atLeast(began),
      ended: clock.atMost(ended),
    });
  }

  async #conclude(
    list: WatchList,
    one: Claimed,
    pod: PublishedPod | undefined,
    { began, ended }: { readonly began: number; readonly ended: number },
  ): Promise<void> {
    const { metrics } = this.#options;
    const why = absence(one, pod, ended);
    if (why !== null) {
      metrics.read('ended');
      await list.end(one, why);
      return;
    }
    const ofPod = pod !== undefined && isPod(pod, one.pod_uid);
    const seen = ofPod ? look(pod, wantedOf(one)) : { is: 'unshown' as const, present: false };
    if (seen.is === 'unshown') {
      metrics.read('stale');
      await list.unshown(one, { began, ofPod, present: seen.present, nextMs: pauseAfter(one.reads) });
      return;
    }
    metrics.read(seen.is === 'shown' ? 'published' : 'ended');
    await list.end(
      one,
      seen.is === 'shown' ? lagOf(one, { unshown: one.stale_read, shown: ended }) : 'superseded',
    );
  }
}

const wantedOf = (one: Claimed) => ({
  type: one.event_type,
  containerId: one.container_id,
  containerName: one.container_name,
  attempt: one.attempt,
  seen: one.container_matched,
});

/** Why a pod that is not there, or is another one, will never show it; null where it may. */
function absence(one: Claimed, pod: PublishedPod | undefined, now: number): NoLag | null {
  if (pod !== undefined && isPod(pod, one.pod_uid)) return null;
  if (one.pod_matched) return 'pod_deleted';
  const ofApi = API_UID.test(one.pod_uid);
  if (!ofApi && now - one.arrived < MIRROR_WITHIN_US) return null;
  if (pod !== undefined) return 'uid_differs';
  return ofApi ? 'pod_deleted' : 'no_api_object';
}

/** What is to be said of one that was waited for long enough. Of a sample that was slow the least lag is known, and no most. */
function inVain({ sample, reads, behind_ms }: Expired): Lag | NoLag {
  if (sample && behind_ms !== null && behind_ms >= SLOW_MS) return { min: behind_ms, max: null };
  return reads > 0 ? 'timed_out' : 'not_read';
}

const isThrottled = (error: unknown): boolean => error instanceof KubeStatusError && error.code === 429;

/** Whether an error is about this pod alone, and not about all. */
const isOfThisPod = (error: unknown): boolean =>
  error instanceof KubeStatusError && error.code !== 429 && error.code < 500;
