/*
 * Reads from Redis what controllers write: the flow settings, and the ack replies of this node. It asks for replies soon after
 * something was sent, and less and less often while nothing changes.
 *
 * It reads no value that is longer than any of a controller: whoever may write the keys could otherwise fill the memory of every node.
 */
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { ENROLMENT_FIELD } from '../../protocol/enrolment.ts';
import {
  type AckReply,
  ackReplyKey,
  type FlowSettings,
  flowSettingsKey,
  MAX_VALUE_BYTES,
  parseAckReply,
  parseFlowSettings,
} from '../../protocol/redisKeys.ts';
import { ackStatement, isSignedBy } from '../../protocol/signature.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { ControllerKeyFile } from './controllerKeyFile.ts';
import type { EpochDelivery } from './epochDelivery.ts';

const FLOW_SETTINGS_INTERVAL = millis(5_000);
/** The first wait for a reply after something was sent. It doubles up to the second. */
const MIN_REPLY_WAIT = millis(200);
const MAX_REPLY_WAIT = millis(5_000);

const TOO_LONG = `a value is longer than ${MAX_VALUE_BYTES} bytes`;

export interface AckReaderOptions {
  readonly cluster: string;
  readonly node: string;
  /** With it, only replies are believed that the controller has signed. */
  readonly controllerKeys?: ControllerKeyFile | undefined;
  /** Takes what the controller says of this node's enrolment. */
  readonly onEnrolment?: ((json: string) => Promise<void>) | undefined;
  readonly log: Logger;
}

export interface DeliveryReply {
  readonly delivery: EpochDelivery;
  readonly reply: AckReply;
  /** False while the keys to check its signature with are not there: it may be a stranger's. */
  readonly isChecked: boolean;
}

export class AckReader {
  readonly #options: AckReaderOptions;
  readonly #redis: RedisClient;
  #flowSettings: FlowSettings | null = null;
  #flowSettingsAskedAt: Mono | null = null;
  #repliesAskedAt: Mono | null = null;
  #replyWait = MIN_REPLY_WAIT;
  #loggedError = '';
  #refused = 0;
  #refusedReply: string | null = null;

  constructor(options: AckReaderOptions, redis: RedisClient) {
    this.#options = options;
    this.#redis = redis;
  }

  get flowSettings(): FlowSettings | null {
    return this.#flowSettings;
  }

  /** How many replies were refused because the controller has not signed them. */
  get refused(): number {
    return this.#refused;
  }

  /** Why the last reply was refused; null if it was believed. */
  get error(): string | null {
    return this.#refusedReply === null
      ? null
      : 'an acknowledgement is not believed: the controller has not signed it';
  }

  /** After a new connection: makes the next poll of the flow settings due. */
  connected(): void {
    this.#flowSettingsAskedAt = null;
  }

  /** Asks for the flow settings if that is due. Missing or unreadable ones leave the last ones valid. */
  async pollFlowSettings(): Promise<void> {
    const now = monoNow();
    const askedAt = this.#flowSettingsAskedAt;
    if (askedAt !== null && between(askedAt, now) < FLOW_SETTINGS_INTERVAL) return;
    const key = flowSettingsKey(this.#options.cluster);
    const json = await this.#unlessWrongType(key, () => this.#redis.getrange(key, 0, MAX_VALUE_BYTES));
    this.#flowSettingsAskedAt = now;
    if (json === null || json === '') return;
    if (Buffer.byteLength(json) > MAX_VALUE_BYTES) return this.#logOnce(key, TOO_LONG);
    const settings = parseFlowSettings(json);
    if (settings.ok) this.#flowSettings = settings.value;
    else this.#logOnce(key, settings.error);
  }

  /** Asks for the replies to deliveries that await one, and for that to an enrolment, if that is due; `hurry`: at once. */
  async pollReplies(
    deliveries: readonly EpochDelivery[],
    { hurry, enrolment }: { readonly hurry: boolean; readonly enrolment: boolean },
  ): Promise<DeliveryReply[]> {
    const now = monoNow();
    const awaiting = deliveries.filter(({ awaitsReply }) => awaitsReply);
    const askedAt = this.#repliesAskedAt;
    const isDue = hurry || askedAt === null || between(askedAt, now) >= this.#replyWait;
    if ((awaiting.length === 0 && !enrolment) || !isDue) return [];
    const key = ackReplyKey(this.#options.cluster, this.#options.node);
    const fields = awaiting.map(({ epoch }) => epoch.meta.epoch);
    if (enrolment) fields.push(ENROLMENT_FIELD);
    const replies = (await this.#unlessWrongType(key, () => this.#readFields(key, fields))) ?? new Map();
    this.#repliesAskedAt = now;
    this.#replyWait = millis(Math.min(MAX_REPLY_WAIT, 2 * this.#replyWait) / 1000);
    const confirmation = replies.get(ENROLMENT_FIELD);
    if (confirmation !== undefined) await this.#options.onEnrolment?.(confirmation);
    const believed: DeliveryReply[] = [];
    for (const delivery of awaiting) {
      const json = replies.get(delivery.epoch.meta.epoch);
      if (json === undefined) continue;
      const reply = parseAckReply(json);
      if (reply.ok) believed.push(...(await this.#believed(delivery, reply.value, json)));
      else this.#logOnce(key, reply.error);
    }
    return believed;
  }

  /** Those of the fields that are there. */
  async #readFields(key: string, fields: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const lengths = await Promise.all(fields.map((field) => this.#redis.hstrlen(key, field)));
    const isTooLong = (length: number) => length > MAX_VALUE_BYTES;
    if (lengths.some(isTooLong)) this.#logOnce(key, TOO_LONG);
    const readable = fields.filter((_, i) => {
      const length = lengths[i] ?? 0;
      return length > 0 && !isTooLong(length);
    });
    if (readable.length === 0) return new Map();
    const values = await this.#redis.hmget(key, ...readable);
    return new Map(readable.flatMap((field, i) => (values[i] == null ? [] : [[field, values[i]]])));
  }

  async #believed(delivery: EpochDelivery, reply: AckReply, json: string): Promise<DeliveryReply[]> {
    const { controllerKeys } = this.#options;
    if (controllerKeys === undefined) return [{ delivery, reply, isChecked: true }];
    const keys = await controllerKeys.current();
    if (keys === null) return [{ delivery, reply, isChecked: false }];
    const statement = ackStatement(this.#options, delivery.epoch.meta.epoch, reply);
    if (isSignedBy(keys.sign, statement, reply.sig ?? '')) {
      this.#refusedReply = null;
      return [{ delivery, reply, isChecked: true }];
    }
    this.#refuse(delivery, json);
    return [];
  }

  #refuse({ epoch }: EpochDelivery, json: string): void {
    if (this.#refusedReply === json) return;
    this.#refusedReply = json;
    this.#refused += 1;
    this.#options.log.error(
      { epoch: epoch.meta.epoch },
      'acknowledgement without the signature of the controller refused',
    );
  }

  /** How long it is until {@link pollReplies} asks for those that are awaited. */
  get replyDueIn(): Micros {
    const askedAt = this.#repliesAskedAt;
    return millis(askedAt === null ? 0 : Math.max(0, this.#replyWait - between(askedAt, monoNow())) / 1000);
  }

  /** Asks for replies soon: something was sent, or the acked seq changed. */
  expectReply(): void {
    this.#replyWait = MIN_REPLY_WAIT;
    this.#repliesAskedAt ??= monoNow();
  }

  /** Null if the key holds another type of value, which no program of ours writes: a controller replaces it. */
  async #unlessWrongType<T>(key: string, ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask();
    } catch (error) {
      const message = messageOf(error);
      if (!message.startsWith('WRONGTYPE')) throw error;
      this.#logOnce(key, message);
      return null;
    }
  }

  #logOnce(key: string, error: string): void {
    if (this.#loggedError === error) return;
    this.#loggedError = error;
    this.#options.log.warn({ key, error }, 'unreadable value in Redis');
  }
}
