/*
 * The word of the controllers, as it is read from Redis: how agents may send (flow), and how far the store has each epoch
 * (replies). Replies are asked for often after something was sent, and ever more seldom while nothing moves.
 */
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { RedisClient } from '../../platform/redis.ts';
import {
  type AckReply,
  ackReplyKey,
  type FlowSettings,
  flowSettingsKey,
  parseAckReply,
  parseFlowSettings,
} from '../../protocol/keys.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import type { Track } from './epochDelivery.ts';

const ASK_FLOW = millis(5_000);
/** Replies are looked for this long after something was sent, then after twice that, up to the second. */
const ASK_REPLY = millis(200);
const LONGEST_ASK_REPLY = millis(5_000);

export interface WordOptions {
  readonly cluster: string;
  readonly node: string;
  readonly log: Logger;
}

export interface TrackReply {
  readonly track: Track;
  readonly reply: AckReply;
}

export class Word {
  readonly #options: WordOptions;
  readonly #redis: RedisClient;
  #flow: FlowSettings | null = null;
  #flowAsked: Mono | null = null;
  #repliesAsked: Mono | null = null;
  #repliesPause = ASK_REPLY;
  #unreadable = '';

  constructor(options: WordOptions, redis: RedisClient) {
    this.#options = options;
    this.#redis = redis;
  }

  /** The flow settings; null before the first ones. */
  get flow(): FlowSettings | null {
    return this.#flow;
  }

  /** The connection is a new one: the flow settings are read again at once. */
  connected(): void {
    this.#flowAsked = null;
  }

  /** The settings that were read just now; null where those before them stand. */
  async readFlow(): Promise<FlowSettings | null> {
    const now = monoNow();
    if (this.#flowAsked !== null && between(this.#flowAsked, now) < ASK_FLOW) return null;
    const json = await this.#unlessOfWrongType('flow', () =>
      this.#redis.get(flowSettingsKey(this.#options.cluster)),
    );
    this.#flowAsked = now;
    // Without a word from any controller the last one stands; without a first one nothing can be sent.
    if (json === null) return null;
    const flow = parseFlowSettings(json);
    if (!flow.ok) {
      this.#complain('flow', flow.error);
      return null;
    }
    this.#flow = flow.value;
    return flow.value;
  }

  /** What the store says of tracks that wait for a reply; nothing where it is too early to ask. */
  async readReplies(tracks: readonly Track[], hurry: boolean): Promise<TrackReply[]> {
    const now = monoNow();
    const asked = this.#repliesAsked;
    if (tracks.length === 0 || !(hurry || asked === null || between(asked, now) >= this.#repliesPause))
      return [];
    const replies =
      (await this.#unlessOfWrongType('reply', () =>
        this.#redis.hgetall(ackReplyKey(this.#options.cluster, this.#options.node)),
      )) ?? {};
    this.#repliesAsked = now;
    this.#repliesPause = millis(Math.min(LONGEST_ASK_REPLY, 2 * this.#repliesPause) / 1000);
    const read: TrackReply[] = [];
    for (const track of tracks) {
      const json = replies[track.epoch.meta.epoch];
      if (json === undefined) continue;
      const reply = parseAckReply(json);
      if (reply.ok) read.push({ track, reply: reply.value });
      else this.#complain('reply', reply.error);
    }
    return read;
  }

  /** Looks for replies soon: something was sent, or something moved. */
  expectReply(): void {
    this.#repliesPause = ASK_REPLY;
    this.#repliesAsked ??= monoNow();
  }

  /** Something else under a key, which only a stranger can have put there, is as good as nothing: a controller replaces it. */
  async #unlessOfWrongType<T>(what: 'flow' | 'reply', ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask();
    } catch (error) {
      const message = messageOf(error);
      if (!message.startsWith('WRONGTYPE')) throw error;
      this.#complain(what, message);
      return null;
    }
  }

  /** What stays unreadable is said once. */
  #complain(what: 'flow' | 'reply', error: string): void {
    if (this.#unreadable === error) return;
    this.#unreadable = error;
    this.#options.log.warn({ what, error }, 'what a controller says in Redis cannot be read');
  }
}
