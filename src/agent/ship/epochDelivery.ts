/*
 * The delivery of one epoch.
 *
 *   sealed ── sent ──► waits for the ack reply ── acked seq reaches its last record ──► removed
 *
 * Only replies of the current ack generation are believed. Within a generation the acked seq only rises; the first reply of a
 * generation replaces it, and may be lower: then everything after it is sent again.
 */
import { doubled } from '../../platform/backoff.ts';
import type { AckReply } from '../../protocol/redisKeys.ts';
import { between, type Micros, type Mono, seq } from '../../protocol/units.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { SealedBatch } from './sealedBatch.ts';

/** The highest ack generation that an envelope can carry. */
const MAX_ACK_GENERATION = 2_147_483_646;

/** What a reply changed. `regressed`: the store knows less than it acknowledged before. */
export type ReplyEffect = 'ignored' | 'applied' | 'regressed';

export class EpochDelivery {
  readonly epoch: Epoch;
  readonly #resendInterval: Micros;
  #ackGeneration = 1;
  #nextSeq = 1;
  #sealed: SealedBatch[] = [];
  #isAnswered = false;
  #probedAt: Mono | null = null;
  #probes = 0;

  /** `resendInterval`: how long an answer is waited for before the first re-send. */
  constructor(epoch: Epoch, resendInterval: Micros) {
    this.epoch = epoch;
    this.#resendInterval = resendInterval;
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
    return !this.#isAnswered || this.epoch.ackedSeq < this.#nextSeq - 1;
  }

  /** Whether something is not sent or not answered. */
  get isBusy(): boolean {
    return this.awaitsReply || this.#nextSeq <= this.epoch.lastSeq;
  }

  /** How long to wait for an answer after a number of sends: doubling, up to six times the first wait. */
  readonly waitAfter = (sends: number): Micros =>
    doubled(this.#resendInterval, 6 * this.#resendInterval, sends - 1) as Micros;

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

  apply({ ackGeneration, ackedSeq }: AckReply): ReplyEffect {
    // An earlier process of this spool got further: continue after its generation.
    if (ackGeneration > this.#ackGeneration) this.startGeneration(ackGeneration + 1);
    if (ackGeneration !== this.#ackGeneration) return 'ignored';
    const before = this.epoch.ackedSeq;
    if (this.#isAnswered && ackedSeq <= before) return 'ignored';
    if (!this.#isAnswered) this.#resendOvertaken();
    this.#isAnswered = true;
    this.epoch.acknowledge(seq(Math.min(ackedSeq, this.epoch.lastSeq)));
    this.#sealed = this.#sealed.filter((batch) => batch.last > ackedSeq);
    const hasRegressed = ackedSeq < before;
    if (hasRegressed || this.#nextSeq <= ackedSeq) {
      this.#sealed = [];
      this.#nextSeq = ackedSeq + 1;
    }
    return hasRegressed ? 'regressed' : 'applied';
  }

  /** The probe was answered: batches that were queued before it and are still not acknowledged were lost on the way. */
  #resendOvertaken(): void {
    if (this.#probedAt === null) return;
    for (const batch of this.#sealed) batch.makeDueIfSentBefore(this.#probedAt);
  }
}
