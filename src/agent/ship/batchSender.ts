/*
 * Decides what is sent now, and sends it: re-sends, probes, then new batches. The window limits unacknowledged bytes. Epochs
 * take turns, so that a backlog never delays the current one. A batch waits a little for more records (the linger), and
 * longer when over half of the window is used.
 */
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { MAX_BATCH_RECORDS } from '../../protocol/batch.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import type { Spool } from '../spool/spool.ts';
import type { AckReader } from './ackReader.ts';
import { BatchBuilder } from './batchBuilder.ts';
import type { BatchQueue } from './batchQueue.ts';
import type { Deliveries } from './deliveries.ts';
import type { EpochDelivery } from './epochDelivery.ts';
import { NextRecords } from './nextRecords.ts';
import type { SealedBatch } from './sealedBatch.ts';

const LINGER = millis(250);
const SLOW_LINGER = millis(5_000);

export interface BatchSenderParts {
  readonly spool: Spool;
  readonly deliveries: Deliveries;
  readonly queue: BatchQueue;
  readonly ackReader: AckReader;
  readonly log: Logger;
}

export class BatchSender {
  readonly #parts: BatchSenderParts;
  readonly #builder: BatchBuilder;
  readonly #records: NextRecords;
  /** When the last batch of the current epoch was built. */
  #lastBatchAt: Mono = monoNow();
  #turn = 0;

  constructor(parts: BatchSenderParts) {
    this.#parts = parts;
    this.#builder = new BatchBuilder(parts.spool, parts.deliveries);
    this.#records = new NextRecords(parts.log);
  }

  /** Sends again what was not answered in time. */
  async resend(): Promise<void> {
    const now = monoNow();
    for (const { sealed, waitAfter } of this.#parts.deliveries.all) {
      for (const batch of sealed) {
        if (batch.isDue(now, waitAfter)) await this.#add(batch);
      }
    }
  }

  /** Sends probes and at most one new batch of each epoch; `hurry`: without linger. */
  async sendNew(hurry: boolean): Promise<void> {
    const { deliveries, ackReader } = this.#parts;
    const { all } = deliveries;
    const window = ackReader.flowSettings?.window ?? 0;
    this.#turn += 1;
    for (const i of all.keys()) {
      const delivery = all[(i + this.#turn) % all.length];
      if (delivery === undefined) continue;
      await this.#probe(delivery);
      const used = deliveries.unackedBytes;
      const linger = hurry ? 0 : used > window / 2 ? SLOW_LINGER : LINGER;
      if (delivery.isAnswered && used < window && this.#isDue(delivery, linger))
        await this.#sendNext(delivery);
    }
  }

  async #probe(delivery: EpochDelivery): Promise<void> {
    if (!delivery.isProbeDue(monoNow())) return;
    await this.#add(await this.#builder.build(delivery, []));
    delivery.probed(monoNow());
  }

  /** Whether the next batch is full, of an earlier epoch, or has lingered. */
  #isDue(delivery: EpochDelivery, linger: number): boolean {
    if (!hasMore(delivery)) return false;
    const { epoch, nextSeq } = delivery;
    if (epoch.lastSeq - nextSeq + 1 >= MAX_BATCH_RECORDS || epoch !== this.#parts.spool.current) return true;
    return between(this.#lastBatchAt, monoNow()) >= linger;
  }

  async #sendNext(delivery: EpochDelivery): Promise<void> {
    const { epoch } = delivery;
    const next = await this.#records.take(delivery);
    if (next === null) return;
    const batch = await this.#builder.build(delivery, next.entries, next.first);
    if (next.entries.length === 0) {
      // Everything up to here is lost: the probe declares it.
      await this.#add(batch);
      delivery.skipTo(next.first);
      return;
    }
    delivery.seal(batch);
    if (epoch === this.#parts.spool.current) this.#lastBatchAt = monoNow();
    else if (!hasMore(delivery)) epoch.forgetCache();
    await this.#add(batch);
  }

  async #add(batch: SealedBatch): Promise<void> {
    // A failed add may have arrived: the batch is sent again, and the store counts it once.
    batch.makeDue();
    await this.#parts.queue.add(batch);
    batch.sent(monoNow());
    this.#parts.ackReader.expectReply();
  }
}

const hasMore = ({ epoch, nextSeq }: EpochDelivery): boolean => nextSeq <= epoch.lastSeq;
