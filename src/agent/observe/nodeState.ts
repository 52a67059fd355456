/*
 * The node's present state, as it is told to the store whenever something in it changes.
 */
import type { RecordOf, StreamState } from '../../protocol/record.ts';
import { type Mono, offset } from '../../protocol/units.ts';
import { oldest } from './kubelet/kubeletMode.ts';
import type { ModeState } from './kubelet/modeTracker.ts';

type Stream = RecordOf<'node_state'>['stream'];

const NO_KUBELET_MODE = {
  model: 'Unknown',
  mode: 'Unknown',
  reason: 'NoKubeletUrl',
  streamErrors: null,
} as const;

export class NodeState {
  readonly #epochStart: Mono;
  /** Null until the subscription has said its first word: nothing is told of a stream that nobody has asked for yet. */
  #stream: Omit<Stream, 'since'> | null = null;
  #since: Mono;
  #relist: RecordOf<'node_state'>['relist'] = { healthy: false, reason: 'no relist yet' };
  #mode: ModeState;
  /** Whether anything was said since it was looked at last. */
  #touched = false;
  #told = '';

  constructor(epochStart: Mono) {
    this.#epochStart = epochStart;
    this.#since = epochStart;
    this.#mode = { ...NO_KUBELET_MODE, since: epochStart };
  }

  get stream(): StreamState | null {
    return this.#stream?.state ?? null;
  }

  /** Null where relisting is healthy; otherwise why not. */
  get relistProblem(): string | null {
    return this.#relist.healthy ? null : this.#relist.reason;
  }

  /** An empty `error` keeps the last one, so that a reader sees what broke the stream before this one. */
  streamIs(state: StreamState, reason: string, error: string, at: Mono): void {
    this.#touched = true;
    if (state !== this.stream) this.#since = at;
    this.#stream = { state, reason, lastError: error === '' ? (this.#stream?.lastError ?? '') : error };
  }

  relistIs(healthy: boolean, reason: string): void {
    this.#touched = true;
    this.#relist = { healthy, reason };
  }

  /** The kubelet's mode; without a word of it there is no kubelet to ask. */
  modeIs(mode: ModeState): void {
    this.#touched = true;
    this.#mode = mode;
  }

  /** The record to send, where something differs from what was told last. */
  changed(now: Mono): RecordOf<'node_state'> | null {
    if (this.#stream === null || !this.#touched) return null;
    this.#touched = false;
    const since = offset(this.#since - this.#epochStart);
    const mode = this.#mode;
    const told = JSON.stringify([this.#stream, since, this.#relist, mode]);
    if (told === this.#told) return null;
    this.#told = told;
    return {
      type: 'node_state',
      t: offset(now - this.#epochStart),
      stream: { ...this.#stream, since },
      relist: this.#relist,
      model: mode.model,
      mode: mode.mode,
      modeSince: oldest(offset(mode.since - this.#epochStart)),
      modeReason: mode.reason,
      ...(mode.streamErrors === null ? {} : { kubeletStreamErrors: mode.streamErrors }),
    };
  }
}
