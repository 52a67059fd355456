/*
 * The node's current state, which is reported whenever something in it changes.
 */
import { MAX_OFFSET, type RecordOf, type StreamState } from '../../protocol/record.ts';
import { type Mono, type Offset, offset } from '../../protocol/units.ts';
import type { KubeletIdentity } from './kubelet/identity.ts';
import type { ModeState } from './kubelet/modeTracker.ts';

type NodeStateRecord = RecordOf<'node_state'>;

const NO_KUBELET_MODE = {
  model: 'Unknown',
  mode: 'Unknown',
  reason: 'NoKubeletUrl',
  streamErrors: null,
  scrapeError: null,
} as const;

export class NodeState {
  readonly #epochStart: Mono;
  /** Null until the subscription has reported a state; nothing is reported before. */
  #stream: Omit<NodeStateRecord['stream'], 'since'> | null = null;
  #streamSince: Mono;
  #relist: NodeStateRecord['relist'] = { healthy: false, reason: 'no relist yet' };
  #mode: ModeState;
  #kubeletIdentity: KubeletIdentity | null = null;
  #podsApi: NodeStateRecord['podsApi'];
  /** Whether a setter was called since the last {@link takeChange}; saves comparing on every tick. */
  #touched = false;
  #reported = '';

  constructor(epochStart: Mono) {
    this.#epochStart = epochStart;
    this.#streamSince = epochStart;
    this.#mode = { ...NO_KUBELET_MODE, since: epochStart };
  }

  get stream(): StreamState | null {
    return this.#stream?.state ?? null;
  }

  /** Null while relists succeed; otherwise why they do not. */
  get relistError(): string | null {
    return this.#relist.healthy ? null : this.#relist.reason;
  }

  /** An empty `error` keeps the last one, so that the report shows what broke the stream before the current one. */
  setStream(state: StreamState, reason: string, error: string, at: Mono): void {
    this.#touched = true;
    if (state !== this.stream) this.#streamSince = at;
    this.#stream = { state, reason, lastError: error === '' ? (this.#stream?.lastError ?? '') : error };
  }

  setRelist(healthy: boolean, reason: string): void {
    this.#touched = true;
    this.#relist = { healthy, reason };
  }

  setMode(mode: ModeState): void {
    this.#touched = true;
    this.#mode = mode;
  }

  /** Identity of the kubelet that was last scraped. */
  setKubeletIdentity(identity: KubeletIdentity): void {
    if (identity === this.#kubeletIdentity) return;
    this.#touched = true;
    this.#kubeletIdentity = identity;
  }

  setPodsApi(podsApi: NonNullable<NodeStateRecord['podsApi']>): void {
    this.#touched = true;
    this.#podsApi = podsApi;
  }

  /** The record to send; null if nothing differs from the last one. */
  takeChange(now: Mono): NodeStateRecord | null {
    if (this.#stream === null || !this.#touched) return null;
    this.#touched = false;
    const since = offset(this.#streamSince - this.#epochStart);
    const mode = this.#mode;
    const state = JSON.stringify([
      this.#stream,
      since,
      this.#relist,
      mode,
      this.#kubeletIdentity,
      this.#podsApi,
    ]);
    if (state === this.#reported) return null;
    this.#reported = state;
    return {
      type: 'node_state',
      t: offset(now - this.#epochStart),
      stream: { ...this.#stream, since },
      relist: this.#relist,
      model: mode.model,
      mode: mode.mode,
      modeSince: clampOffset(offset(mode.since - this.#epochStart)),
      modeReason: mode.reason,
      ...(mode.streamErrors === null ? {} : { kubeletStreamErrors: mode.streamErrors }),
      ...(mode.scrapeError === null ? {} : { kubeletError: mode.scrapeError }),
      ...this.#identity(),
      ...(this.#podsApi === undefined ? {} : { podsApi: this.#podsApi }),
    };
  }

  #identity(): Pick<NodeStateRecord, 'kubeletIdentity'> {
    const { scrapeError, reason } = this.#mode;
    if (this.#kubeletIdentity === null || scrapeError !== null || reason === 'NotObserved') return {};
    return { kubeletIdentity: this.#kubeletIdentity };
  }
}

/** No record may reach back further than {@link MAX_OFFSET}; a kubelet may run for longer. */
export const clampOffset = (at: Offset): Offset => offset(Math.max(at, -MAX_OFFSET));
