/*
 * The deliveries of all epochs in the spool, and their ack generations.
 *
 * A new generation starts at every connection and at an interval, or with a batch of records that is sent in the second half of the interval: that
 * asks as a probe would. Retired epochs join it only at a longer interval, and at once when the store turns out to know less than before.
 */
import { monoNow } from '../../platform/clock.ts';
import type { AckReply } from '../../protocol/redisKeys.ts';
import { between, type Micros, type Mono } from '../../protocol/units.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { Spool } from '../spool/spool.ts';
import { EpochDelivery, type ReplyEffect } from './epochDelivery.ts';

/**
 * An earlier agent may have shipped records that a power cut took from the disk before they were synced: those of a minute at most, which
 * is the longest time between two syncs.
 */
const MAX_FORGOTTEN = 200_000;

export interface DeliveryIntervals {
  readonly intervalAckGeneration: Micros;
  readonly intervalRetiredEpochs: Micros;
  readonly intervalResend: Micros;
}

export class Deliveries {
  readonly #spool: Spool;
  readonly #intervals: DeliveryIntervals;
  readonly #byEpoch = new Map<Epoch, EpochDelivery>();
  #generationStarted: Mono = monoNow();
  #retiredAsked: Mono = monoNow();

  constructor(spool: Spool, intervals: DeliveryIntervals) {
    this.#spool = spool;
    this.#intervals = intervals;
  }

  get all(): readonly EpochDelivery[] {
    return [...this.#byEpoch.values()];
  }

  get isBusy(): boolean {
    return this.all.some((delivery) => delivery.isBusy);
  }

  get unackedBytes(): number {
    return this.all.reduce((sum, delivery) => sum + delivery.unackedBytes, 0);
  }

  isAnswered(epoch: Epoch): boolean {
    return this.#byEpoch.get(epoch)?.isAnswered ?? false;
  }

  /** Adds the epochs that are new in the spool, and removes those that it forgot. */
  followSpool(): void {
    const { epochs, current } = this.#spool;
    for (const epoch of epochs) {
      if (this.#byEpoch.has(epoch)) continue;
      const maxForgotten = epoch === current ? 0 : MAX_FORGOTTEN;
      const options = { resendInterval: this.#intervals.intervalResend, maxForgotten };
      this.#byEpoch.set(epoch, new EpochDelivery(epoch, options));
    }
    for (const epoch of this.#byEpoch.keys()) {
      if (!epochs.includes(epoch)) this.#byEpoch.delete(epoch);
    }
  }

  startGenerationIfDue(): void {
    if (this.#generationAge >= this.#intervals.intervalAckGeneration) this.startGeneration();
  }

  /** To be called before a batch of the current epoch is built. */
  startGenerationWithBatch(): void {
    if (2 * this.#generationAge >= this.#intervals.intervalAckGeneration) this.startGeneration();
  }

  get #generationAge(): Micros {
    return between(this.#generationStarted, monoNow());
  }

  startGeneration(): void {
    this.#generationStarted = monoNow();
    for (const delivery of this.all) {
      if (delivery.epoch.retirement === null || !delivery.isAnswered) delivery.startGeneration();
    }
    if (between(this.#retiredAsked, this.#generationStarted) >= this.#intervals.intervalRetiredEpochs)
      this.#startRetiredGeneration();
  }

  apply(delivery: EpochDelivery, reply: AckReply, isChecked: boolean): ReplyEffect {
    const effect = delivery.apply(reply, monoNow(), isChecked);
    if (effect === 'regressed') this.#startRetiredGeneration();
    return effect;
  }

  #startRetiredGeneration(): void {
    this.#retiredAsked = monoNow();
    for (const delivery of this.all) {
      if (delivery.epoch.retirement !== null) delivery.startGeneration();
    }
  }
}
