/*
 * The pods watch: follows the kubelet's own status of its pods through its PodsAPI, where the kubelet has one (from 1.37 on).
 *
 *   Absent ── the socket appears ──► Syncing ── INITIAL_SYNC_COMPLETE ──► Watching
 *     ▲                                ▲ │ the stream ends                  │ the stream ends
 *     └── a kubelet runs without it ── Broken ◄───────────────────────────┘
 *
 * It is driven by the observer's tick, so that a calm node is not woken up more often. While there is no stream, a tick looks at the socket:
 * another one than before belongs to a kubelet that started since, and is tried at once; otherwise attempts back off.
 *
 * A gap `kubelet_status` begins where a watch that worked in this epoch ends, and ends with the next INITIAL_SYNC_COMPLETE; or when the
 * kubelet answers scrapes and has no PodsAPI, because then nothing is promised any more. A kubelet that never had one leaves no gap.
 */
import { stat } from 'node:fs/promises';
import { Backoff } from '../../../platform/backoff.ts';
import { monoNow } from '../../../platform/clock.ts';
import type { Logger } from '../../../platform/log.ts';
import type { KubeletSight } from '../../../protocol/observation.ts';
import type { PodsApiState } from '../../../protocol/record.ts';
import { cleanText } from '../../../protocol/text.ts';
import { between, type Micros, type Mono, millis, mono, shift } from '../../../protocol/units.ts';
import type { Comparison } from '../../compare/comparison.ts';
import type { AgentMetrics } from '../../metrics.ts';
import type { Gaps } from '../gaps.ts';
import type { NodeState } from '../nodeState.ts';
import { PodQueries } from './podQueries.ts';
import { PodsStream, type PodsStreamEnd } from './podsStream.ts';

const RETRY = { firstMs: 1_000, maxMs: 60_000 };
const MIN_RETRY_MS = 1_000;
/** A stream that was synced for this long resets the backoff. */
const HEALTHY_AFTER: Micros = millis(60_000);
/** How often an absent socket is looked for. */
const ABSENT_LOOK: Micros = millis(5_000);
/** A kubelet that answers scrapes this long after its PodsAPI was last there does not have it. */
const KUBELET_WITHOUT_API: Micros = millis(60_000);
/** Another server at the socket may be replaced in place. */
const UNIMPLEMENTED_RETRY: Micros = millis(600_000);
const MAX_ERROR_LENGTH = 300;

export interface PodsWatchOptions {
  /** The path of the PodsAPI's socket. */
  readonly socket: string;
  /** Longer than this between two ticks, and this process was held up. */
  readonly maxSilence: Micros;
  readonly comparison: Pick<Comparison, 'kubeletShowed' | 'kubeletAnswered'>;
  readonly gaps: Pick<Gaps, 'open' | 'close' | 'isOpen'>;
  readonly metrics: Pick<
    AgentMetrics,
    'setPodsApiState' | 'podsApiMessages' | 'podsApiEnds' | 'podsApiMalformed' | 'podQueries'
  >;
  readonly nodeState: Pick<NodeState, 'setPodsApi'>;
  readonly log: Pick<Logger, 'info'>;
  /** When the last successful scrape of the kubelet began; null without one. */
  readonly kubeletAnswered: () => Mono | null;
}

/** A pods watch as the observer sees it. */
export type PodsWatching = Pick<PodsWatch, 'tick' | 'ask' | 'stop'>;
export type StartPodsWatch = (options: PodsWatchOptions, now: Mono) => PodsWatching;

export class PodsWatch {
  readonly #options: PodsWatchOptions;
  readonly #queries: PodQueries;
  readonly #backoff = new Backoff(RETRY);
  #stream: PodsStream | null = null;
  #syncedAt: Mono | null = null;
  /** The last two ticks. Every message that was sent before the first of them has been read, or the stream has ended. */
  #ticks: readonly [Mono, Mono];
  /** The socket that was tried last, as the file system identifies it. */
  #tried = '';
  #retryAt: Mono;
  #lookAt: Mono;
  #looking = false;
  /** Since when nobody could be reached at the socket; null while somebody answers. */
  #unreachableSince: Mono | null = null;
  #state: PodsApiState | null = null;
  #reason = '';
  #stopped = false;

  constructor(options: PodsWatchOptions, now: Mono) {
    this.#options = options;
    this.#ticks = [now, now];
    this.#retryAt = now;
    this.#lookAt = now;
    this.#queries = new PodQueries(
      () => (this.#stream?.isSynced === true ? this.#stream : null),
      (answer, result) => {
        options.metrics.podQueries.inc({ result });
        options.comparison.kubeletAnswered(answer);
      },
    );
    this.#setState('Absent', 'not_looked_for');
  }

  /** To be called every second or so. */
  tick(now: Mono): void {
    if (this.#stopped) return;
    if (this.#isStalled(now)) this.#stalled();
    this.#ticks = [this.#ticks[1], now];
    if (this.#stream === null && now >= this.#lookAt && !this.#looking) void this.#look(now);
  }

  /** Asks the kubelet for a pod; the comparison gets the answer, at once if the kubelet is not asked. */
  ask(podUid: string): void {
    if (!this.#stopped) this.#queries.ask(podUid);
  }

  stop(): void {
    this.#stopped = true;
    this.#queries.stop();
    this.#stream?.close();
    this.#stream = null;
    this.#options.metrics.setPodsApiState(null);
  }

  async #look(now: Mono): Promise<void> {
    this.#looking = true;
    const found = await socketIdentity(this.#options.socket);
    this.#looking = false;
    if (this.#stopped || this.#stream !== null) return;
    if (found === null) {
      this.#tried = '';
      this.#unreachable('no_socket', now);
    } else if (found !== this.#tried || now >= this.#retryAt) this.#connect(found);
    this.#declareAbsent(now);
    if (this.#stream === null) this.#lookAt = this.#state === 'Absent' ? shift(now, ABSENT_LOOK) : now;
  }

  #connect(socket: string): void {
    if (socket !== this.#tried) this.#backoff.reset();
    this.#tried = socket;
    const { comparison, metrics, socket: path } = this.#options;
    const stream = new PodsStream(path, {
      mayTake: (at) => {
        metrics.podsApiMessages.inc();
        if (!this.#isStalled(at)) return true;
        this.#stalled();
        return false;
      },
      sight: (sight) => {
        comparison.kubeletShowed(sight);
        this.#followed(sight);
      },
      malformed: () => metrics.podsApiMalformed.inc(),
      ended: (cause, error) => this.#ended(cause, error),
    });
    this.#stream = stream;
  }

  #followed(sight: KubeletSight): void {
    if (sight.is === 'opened') {
      this.#unreachableSince = null;
      this.#setState('Syncing', '');
    } else if (sight.is === 'synced') {
      this.#syncedAt = sight.at;
      this.#options.gaps.close('kubelet_status', sight.at, monoNow());
      this.#setState('Watching', '');
    }
  }

  /** Messages may have waited for this process for a time, so that nothing says when the kubelet sent them. */
  #stalled(): void {
    const stream = this.#stream;
    if (stream === null) return;
    stream.close();
    this.#ended('agent_stalled', 'this process did not run');
  }

  #isStalled(now: Mono): boolean {
    return between(this.#ticks[1], now) > this.#options.maxSilence;
  }

  #ended(cause: PodsStreamEnd, error: string): void {
    const { comparison, gaps, metrics } = this.#options;
    const now = monoNow();
    const hadMessage = this.#stream?.hasMessage === true;
    const syncedAt = this.#syncedAt;
    this.#stream = null;
    this.#syncedAt = null;
    metrics.podsApiEnds.inc({ cause });
    if (hadMessage) {
      const lastGood = mono(Math.max(this.#ticks[0], syncedAt ?? 0));
      comparison.kubeletShowed({ is: 'broken', at: lastGood });
      if (syncedAt !== null) gaps.open('kubelet_status', cause, lastGood, now);
    }
    if (syncedAt !== null && between(syncedAt, now) > HEALTHY_AFTER) this.#backoff.reset();
    this.#retryAt = shift(now, millis(this.#backoff.next(MIN_RETRY_MS)));
    this.#lookAt = now;
    if (cause === 'kubelet_unavailable' && !hadMessage) this.#unreachable(cause, now, error);
    else {
      this.#unreachableSince = null;
      if (cause === 'unimplemented') this.#offersNothing(cause, now, error);
      else this.#setState('Broken', cause, error);
    }
  }

  #unreachable(reason: string, now: Mono, error = ''): void {
    this.#unreachableSince ??= now;
    const wasPromised = this.#options.gaps.isOpen('kubelet_status');
    this.#setState(wasPromised ? 'Broken' : 'Absent', reason, error);
  }

  /** A kubelet that runs and has no PodsAPI promises nothing: the gap of one that had it ends. */
  #declareAbsent(now: Mono): void {
    const since = this.#unreachableSince;
    const answered = this.#options.kubeletAnswered();
    if (since === null || answered === null || between(since, answered) < KUBELET_WITHOUT_API) return;
    this.#options.gaps.close('kubelet_status', now, now);
    this.#setState('Absent', this.#reason);
  }

  #offersNothing(reason: string, now: Mono, error: string): void {
    this.#retryAt = shift(now, UNIMPLEMENTED_RETRY);
    this.#options.gaps.close('kubelet_status', now, now);
    this.#setState('Absent', reason, error);
  }

  #setState(state: PodsApiState, reason: string, error = ''): void {
    if (state === this.#state && reason === this.#reason) return;
    this.#state = state;
    this.#reason = reason;
    const { log, metrics, nodeState } = this.#options;
    metrics.setPodsApiState(state);
    nodeState.setPodsApi({ state, reason });
    log.info({ state, reason, error: cleanText(error, MAX_ERROR_LENGTH) }, 'state of the pods watch changed');
  }
}

/** Differs after a kubelet has made its socket anew; null if there is none, or it cannot be looked at. */
async function socketIdentity(path: string): Promise<string | null> {
  try {
    const { dev, ino, ctimeNs } = await stat(path, { bigint: true });
    return `${dev} ${ino} ${ctimeNs}`;
  } catch {
    return null;
  }
}
