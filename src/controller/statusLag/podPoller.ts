/*
 * The pod poller reads the published status of each watched pod until it shows the transition. Only the leader runs it.
 *
 *   due ──► read ──► published ──► store.finding_update, or for an announced transition store.status_lag
 *            │  └──► ended ──► no lag, with the reason
 *            └─────► stale ──► due again, after a wait that grows
 *
 * The waits grow by a quarter, from one to ten seconds, so that the bounds stay narrow compared with the lag. All reads share one budget;
 * samples come last. While the API server fails, nothing is read and the watches stay.
 */

import type { KubeClient } from '../../kube/client.ts';
import { KubeStatusError, retryAfterMs } from '../../kube/kubeErrors.ts';
import { podsOf } from '../../kube/object.ts';
import { rightsOn } from '../../kube/rights.ts';
import { Backoff, type BackoffOptions } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { errorFields } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import { between, type Mono, millis, mono } from '../../protocol/units.ts';
import type { Store } from '../../store/store.ts';
import { publishedPod } from './podStatus.ts';
import { expiredResult, type ReadOutcome, type ReadResult, readOutcome } from './readOutcome.ts';
import type { ClaimedWatch } from './statements.ts';
import { MAX_SAMPLE_DELAY_MS, type WatchKind, waitAfter } from './watchLimits.ts';
import { type StoreClock, WatchStore } from './watchStore.ts';

/** Rights in every namespace. */
export const POD_RIGHTS = rightsOn(podsOf(''), ['get']);

interface PodPollerMetrics {
  readonly read: (result: ReadResult) => void;
  readonly watches: (counts: Readonly<Record<WatchKind, number>>) => void;
  readonly shed: (kind: WatchKind, count: number) => void;
}

export interface PodPollerOptions {
  readonly store: Store;
  readonly kube: Pick<KubeClient, 'get'>;
  readonly cluster: string;
  readonly readsPerSecond: number;
  readonly log: Logger;
  readonly metrics: PodPollerMetrics;
  /** Default: {@link monoNow}. */
  readonly clock?: () => Mono;
  /** For tests. */
  readonly pace?: Partial<PodPollerPace>;
}

interface PodPollerPace {
  /** Time between two claims while nothing is due. */
  readonly pollMs: number;
  readonly expiryMs: number;
  readonly backoff: BackoffOptions;
}

const DEFAULT_PACE: PodPollerPace = {
  pollMs: 250,
  expiryMs: 5_000,
  backoff: { firstMs: 500, maxMs: 30_000 },
};
/** Few, so that a new watch does not wait long behind watches that were claimed before. */
const MAX_CONCURRENT_READS = 4;
const MAX_EXPIRED = 100;

/** Runs until it is stopped, and survives every failure. */
export class PodPoller {
  readonly #options: PodPollerOptions;
  readonly #pace: PodPollerPace;
  readonly #clock: () => Mono;
  readonly #readLimit: TokenBucket;
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #watches: WatchStore | undefined;
  #expiryCheckedAt = mono(Number.NEGATIVE_INFINITY);

  constructor(options: PodPollerOptions) {
    this.#options = options;
    this.#pace = { ...DEFAULT_PACE, ...options.pace };
    this.#clock = options.clock ?? monoNow;
    const { readsPerSecond } = options;
    this.#readLimit = new TokenBucket({ capacity: readsPerSecond, interval: perSecond(readsPerSecond) });
    this.#backoff = new Backoff(this.#pace.backoff);
    this.#ended = this.#run();
  }

  /** Resolves after the reads under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (!(await this.#poll())) await sleep(this.#pace.pollMs, signal);
      } catch (error) {
        if (!signal.aborted) await this.#backOff(error);
      }
    }
  }

  async #backOff(error: unknown): Promise<void> {
    const waitMs = Math.round(this.#backoff.next(retryAfterMs(error)));
    this.#options.log.warn({ ...errorFields(error), waitMs }, 'reading pods failed, retrying');
    await sleep(waitMs, this.#stop.signal);
  }

  /** Reads the pods of some due watches. False if none was due. */
  async #poll(): Promise<boolean> {
    const { store, cluster } = this.#options;
    this.#watches ??= new WatchStore(store, await store.ensureCluster(cluster), this.#clock);
    const watches = this.#watches;
    const isChecked = between(this.#expiryCheckedAt, this.#clock()) < millis(this.#pace.expiryMs);
    if (!isChecked) await this.#endExpired(watches);
    const { claimed, clock } = await watches.claim(MAX_CONCURRENT_READS);
    const results = await Promise.allSettled(claimed.map((watch) => this.#read(watches, watch, clock)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    return claimed.length > 0;
  }

  async #endExpired(watches: WatchStore): Promise<void> {
    const { metrics } = this.#options;
    for (const watch of await watches.expired(MAX_EXPIRED)) await watches.end(watch, expiredResult(watch));
    const dropped = await watches.dropOverdueSamples(MAX_SAMPLE_DELAY_MS);
    if (dropped > 0) metrics.shed('sample', dropped);
    metrics.watches(await watches.counts());
    this.#expiryCheckedAt = this.#clock();
  }

  async #read(watches: WatchStore, watch: ClaimedWatch, clock: StoreClock): Promise<void> {
    const { kube, metrics } = this.#options;
    const { signal } = this.#stop;
    await sleep(this.#readLimit.reserve(this.#clock()) / 1000, signal);
    if (signal.aborted) return;
    const began = this.#clock();
    let object: Awaited<ReturnType<KubeClient['get']>>;
    try {
      object = await kube.get(podsOf(watch.pod_namespace), watch.pod_name, signal);
    } catch (error) {
      await watches.postpone(watch, waitAfter(watch.reads));
      metrics.read(isThrottled(error) ? 'throttled' : 'failed');
      if (concernsOnePod(error)) return;
      throw error;
    }
    const ended = this.#clock();
    this.#backoff.reset();
    const pod = object === undefined ? undefined : publishedPod(object);
    if (pod === null) {
      metrics.read('failed');
      await watches.postpone(watch, waitAfter(watch.reads));
      return;
    }
    const outcome = readOutcome(watch, pod, clock.atMost(ended));
    metrics.read(outcome.is);
    await this.#store(watches, watch, outcome, clock.atLeast(began));
  }

  async #store(watches: WatchStore, watch: ClaimedWatch, outcome: ReadOutcome, began: number): Promise<void> {
    if (outcome.is === 'published') await watches.end(watch, outcome.lag);
    else if (outcome.is === 'ended') await watches.end(watch, outcome.reason);
    else await watches.recordStaleRead(watch, { began, nextMs: waitAfter(watch.reads), ...outcome });
  }
}

const isThrottled = (error: unknown): boolean => error instanceof KubeStatusError && error.code === 429;

/** Whether other pods can still be read after this error. */
const concernsOnePod = (error: unknown): boolean =>
  error instanceof KubeStatusError && error.code !== 429 && error.code < 500;
