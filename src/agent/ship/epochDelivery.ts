/*
 * The delivery of one epoch. SPEC.md has the table of its transitions.
 *
 *   sealed ── sent ──► waits for the ack reply ── acked seq reaches its last record ──► removed
 *
 * Only replies of the current ack generation are believed. Within a generation the acked seq only rises; the first reply of a
 * generation replaces it, and may be lower: then everything after it is sent again. A reply that acknowledges what was never written is
 * refused: nothing is deleted for it, and the next generation asks again.
 *
 * While an agent lacks the keys of the controller it cannot check a reply. Such a reply lets it go on, and no more: what it acknowledges is not
 * sent again for now and counts no longer to the window, but stays in the spool until a checked reply says so.
 */
import { doubled } from '../../platform/backoff.ts';
import type { AckReply } from '../../protocol/redisKeys.ts';
import { between, type Micros, type Mono, seq } from '../../protocol/units.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { SealedBatch } from './sealedBatch.ts';

/** The highest ack generation that an envelope can carry. */
const MAX_ACK_GENERATION = 2_147_483_646;

/** After this many without an answer something is wrong. */
const MAX_PROBES = 2;

/** The effect of a reply. `regressed`: the store knows less than it acknowledged before. */
export type ReplyEffect = 'ignored' | 'applied' | 'regressed' | 'refused';

export interface EpochDeliveryOptions {
  /** How long an answer is waited for before the first re-send. */
  readonly resendInterval: Micros;
  /** How many records beyond the last one that is known may have been written: a power cut takes what was not synced. */
  readonly maxForgotten: number;
}

export class EpochDelivery {
  readonly epoch: Epoch;
  readonly #options: EpochDeliveryOptions;
  #ackGeneration = 1;
  #nextSeq = 1;
  #sealed: SealedBatch[] = [];
  #isAnswered = false;
  /** The acked seq of the last reply, if that could not be checked; else 0. */
  #uncheckedSeq = 0;
  #probedAt: Mono | null = null;
  #probes = 0;
  #refusedReply: AckReply | null = null;
  #refusedAt: Mono | null = null;
  #refusals = 0;

  constructor(epoch: Epoch, options: EpochDeliveryOptions) {
    this.epoch = epoch;
    this.#options = options;
    // A retired epoch has no records to send: only probes ask about it.
    if (epoch.retirement !== null) this.#nextSeq = epoch.lastSeq + 1;
  }

  get ackGeneration(): number {
    return this.#ackGeneration;
  }

  /** The first seq that is in no batch yet. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  get sealed(): readonly SealedBatch[] {
    return this.#sealed;
  }

  get unackedBytes(): number {
    return this.#sealed.reduce((sum, batch) => sum + batch.bytes, 0);
  }

  /** Whether a reply of the current ack generation was received. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  get awaitsReply(): boolean {
    // A store may have more than the spool still knows of: that is no reason to ask for ever.
    return !this.#isAnswered || this.epoch.ackedSeq < Math.min(this.#nextSeq - 1, this.epoch.lastSeq);
  }

  /** Whether there are records that are in no batch yet. */
  get hasMore(): boolean {
    return this.#nextSeq <= this.epoch.lastSeq;
  }

  /** Whether something is not sent or not answered. */
  get isBusy(): boolean {
    return this.awaitsReply || this.hasMore;
  }

  /** How long to wait for an answer after a number of sends: doubling, up to six times the first wait. */
  readonly waitAfter = (sends: number): Micros =>
    doubled(this.#options.resendInterval, 6 * this.#options.resendInterval, sends - 1) as Micros;

  /** Starts the next ack generation: the acked seq is asked for again. */
  startGeneration(generation = this.#ackGeneration + 1): void {
    this.#ackGeneration = Math.min(generation, MAX_ACK_GENERATION);
    this.#isAnswered = false;
    this.#probedAt = null;
    this.#probes = 0;
  }

  /** Whether to send a probe: this generation has no reply, and the last probe, if any, was long enough ago. */
  isProbeDue(now: Mono): boolean {
    if (this.#isAnswered) return false;
    return this.#probedAt === null || between(this.#probedAt, now) > this.waitAfter(this.#probes);
  }

  get isUnanswered(): boolean {
    return !this.#isAnswered && this.#probes > MAX_PROBES;
  }

  probed(now: Mono): void {
    this.#probedAt = now;
    this.#probes += 1;
  }

  seal(batch: SealedBatch): void {
    this.#nextSeq = batch.last + 1;
    this.#sealed.push(batch);
  }

  skipTo(nextSeq: number): void {
    this.#nextSeq = nextSeq;
  }

  /** The acked seq of the last reply that was refused; null once a later one was believed. */
  get refusedSeq(): number | null {
    return this.#refusedReply?.ackedSeq ?? null;
  }

  /** `isChecked`: that it is the controller's, as far as this agent checks that. */
  apply(reply: AckReply, now: Mono, isChecked = true): ReplyEffect {
    const { ackGeneration, ackedSeq } = reply;
    // An earlier process of this spool got further: continue after its generation.
    if (ackGeneration > this.#ackGeneration) this.startGeneration(ackGeneration + 1);
    if (ackGeneration !== this.#ackGeneration) return 'ignored';
    if (ackedSeq > this.epoch.lastSeq + this.#options.maxForgotten) return this.#refuse(reply, now);
    const before = Math.max(this.epoch.ackedSeq, this.#uncheckedSeq);
    if (this.#isAnswered && ackedSeq <= before && !(isChecked && this.#uncheckedSeq > 0)) return 'ignored';
    if (!this.#isAnswered) this.#resendOvertaken();
    this.#isAnswered = true;
    this.#refusedReply = null;
    this.#refusals = 0;
    this.#uncheckedSeq = isChecked ? 0 : ackedSeq;
    if (isChecked) this.epoch.acknowledge(seq(Math.min(ackedSeq, this.epoch.lastSeq)));
    this.#sealed = this.#sealed.filter((batch) => batch.last > ackedSeq);
    const hasRegressed = ackedSeq < before;
    if (hasRegressed || this.#nextSeq <= ackedSeq) {
      this.#sealed = [];
      this.#nextSeq = ackedSeq + 1;
    }
    return hasRegressed ? 'regressed' : 'applied';
  }

  /** Asks again, at once after the first refusal and then less and less often. */
  #refuse(reply: AckReply, now: Mono): ReplyEffect {
    const wait = this.waitAfter(this.#refusals);
    if (this.#refusals === 0 || this.#refusedAt === null || between(this.#refusedAt, now) > wait) {
      this.#refusals += 1;
      this.#refusedAt = now;
      this.startGeneration();
    }
    const { ackGeneration, ackedSeq } = this.#refusedReply ?? { ackGeneration: 0, ackedSeq: 0 };
    this.#refusedReply = reply;
    return reply.ackGeneration === ackGeneration && reply.ackedSeq === ackedSeq ? 'ignored' : 'refused';
  }

  /** The probe was answered: batches that were queued before it and are still not acknowledged were lost on the way. */
  #resendOvertaken(): void {
    if (this.#probedAt === null) return;
    for (const batch of this.#sealed) batch.makeDueIfSentBefore(this.#probedAt);
  }
}
