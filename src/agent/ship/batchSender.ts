/*
 * Decides what is sent now, and sends it: re-sends, probes, then new batches. The window limits unacknowledged bytes. Epochs
 * take turns, so that a backlog never delays the current one. A batch waits a little for more records (the linger), longer while
 * the store has not acknowledged the batch before it, and longest when over half of the window is used: the busier the
 * controller is, the fewer and larger batches it gets.
 */
import type { KeyObject } from 'node:crypto';
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_RECORDS } from '../../protocol/batch.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { SpoolEntry } from '../spool/segmentFormat.ts';
import type { Spool } from '../spool/spool.ts';
import type { AckReader } from './ackReader.ts';
import { BatchBuilder } from './batchBuilder.ts';
import type { Deliveries } from './deliveries.ts';
import type { EpochDelivery } from './epochDelivery.ts';
import type { Inbox } from './inbox.ts';
import type { SealedBatch } from './sealedBatch.ts';

const LINGER = millis(250);
const UNACKED_LINGER = millis(500);
const SLOW_LINGER = millis(5_000);
/**
 * After a time between these, drawn each time, an agent that has nothing to send says that it runs: the store calls it silent after three minutes.
 * Drawn, so that the agents of a fleet do not say it at the same time.
 */
const MIN_SIGN_MS = 45_000;
const MAX_SIGN_MS = 60_000;
/** Records that cannot be read this often in a row are lost. */
const MAX_READS = 20;

export interface BatchSenderParts {
  readonly spool: Spool;
  readonly deliveries: Deliveries;
  readonly inbox: Pick<Inbox, 'add' | 'showLife'>;
  readonly ackReader: Pick<AckReader, 'flowSettings' | 'expectReply'>;
  /** Signs every batch. */
  readonly key?: KeyObject | undefined;
  readonly log: Logger;
  readonly random?: () => number;
}

export class BatchSender {
  readonly #parts: BatchSenderParts;
  readonly #builder: BatchBuilder;
  readonly #failedReads = new WeakMap<Epoch, number>();
  /** When the last batch of the current epoch was built, or the last sign of life. */
  #lastBatchAt: Mono = monoNow();
  #signAfter: Micros;
  #turn = 0;

  constructor(parts: BatchSenderParts) {
    this.#parts = parts;
    this.#signAfter = this.#drawSign();
    this.#builder = new BatchBuilder(parts.spool, parts.deliveries, parts.key);
  }

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
    const { deliveries } = this.#parts;
    const { all } = deliveries;
    const window = this.#window;
    this.#turn += 1;
    for (const i of all.keys()) {
      const delivery = all[(i + this.#turn) % all.length];
      if (delivery === undefined) continue;
      await this.#probe(delivery);
      const used = deliveries.unackedBytes;
      const linger = used > window / 2 ? SLOW_LINGER : delivery.sealed.length > 0 ? UNACKED_LINGER : LINGER;
      if (delivery.isAnswered && used < window && this.#isDue(delivery, hurry ? 0 : linger))
        await this.#sendNext(delivery);
    }
    await this.#showLife();
  }

  /** Whether there are records that {@link sendNew} may send once they have waited for more. */
  get maySend(): boolean {
    const { deliveries } = this.#parts;
    const isFull = deliveries.unackedBytes >= this.#window;
    return !isFull && deliveries.all.some(({ hasMore, isAnswered }) => hasMore && isAnswered);
  }

  /** How long it is until {@link sendNew} shows that this agent runs, if there is nothing else to send. */
  get lifeDueIn(): Micros {
    return millis(Math.max(0, this.#signAfter - between(this.#lastBatchAt, monoNow())) / 1000);
  }

  /** No answer is given: the next sign is soon enough. */
  async #showLife(): Promise<void> {
    const { deliveries, inbox, spool } = this.#parts;
    const now = monoNow();
    if (between(this.#lastBatchAt, now) < this.#signAfter) return;
    const delivery = deliveries.all.find(({ epoch }) => epoch === spool.current);
    if (delivery === undefined || !delivery.isAnswered || delivery.hasMore) return;
    await inbox.showLife(await this.#builder.build(delivery, []));
    this.#lastBatchAt = now;
    this.#signAfter = this.#drawSign();
  }

  get #window(): number {
    return this.#parts.ackReader.flowSettings?.window ?? 0;
  }

  #drawSign(): Micros {
    const { random = Math.random } = this.#parts;
    return millis(MIN_SIGN_MS + random() * (MAX_SIGN_MS - MIN_SIGN_MS));
  }

  async #probe(delivery: EpochDelivery): Promise<void> {
    if (!delivery.isProbeDue(monoNow())) return;
    await this.#ask(delivery, await this.#builder.build(delivery, []));
  }

  /** Whether the next batch is full, of an earlier epoch, or has lingered. */
  #isDue(delivery: EpochDelivery, linger: number): boolean {
    if (!delivery.hasMore) return false;
    const { epoch, nextSeq } = delivery;
    if (epoch.lastSeq - nextSeq + 1 >= MAX_BATCH_RECORDS || epoch !== this.#parts.spool.current) return true;
    return between(this.#lastBatchAt, monoNow()) >= linger;
  }

  async #sendNext(delivery: EpochDelivery): Promise<void> {
    const { epoch } = delivery;
    const next = await this.#read(delivery);
    if (next === null) return;
    const isCurrent = epoch === this.#parts.spool.current;
    // Nothing else waits for a reply, so that the reply to this batch is the one to a probe.
    if (isCurrent && delivery.sealed.length === 0) this.#parts.deliveries.startGenerationWithBatch();
    const batch = await this.#builder.build(delivery, next.entries, next.first);
    if (next.entries.length === 0) {
      // Everything up to here is lost: the probe declares it.
      await this.#ask(delivery, batch);
      delivery.skipTo(next.first);
      return;
    }
    delivery.seal(batch);
    if (isCurrent) this.#lastBatchAt = monoNow();
    else if (!delivery.hasMore) epoch.forgetCache();
    await this.#ask(delivery, batch);
  }

  /** Sends what the first reply of a generation may answer. */
  async #ask(delivery: EpochDelivery, batch: SealedBatch): Promise<void> {
    const { ackGeneration } = delivery;
    await this.#add(batch);
    // Meanwhile a new connection may have begun another generation, about which it did not ask.
    if (delivery.ackGeneration === ackGeneration && !delivery.isAnswered) delivery.probed(monoNow());
  }

  /**
   * The next records that can be read, and the seq to continue from. Lost records are skipped only once they are declared: null while what
   * should be readable is not, which is tried again and then declared lost.
   */
  async #read({
    epoch,
    nextSeq,
  }: EpochDelivery): Promise<{ readonly first: number; readonly entries: readonly SpoolEntry[] } | null> {
    // Records that are written during the read are no part of it.
    const { unreadable: before, lastSeq } = epoch;
    const entries = await epoch.read(nextSeq, MAX_BATCH_RECORDS, MAX_BATCH_BYTES);
    const first = entries[0]?.seq ?? lastSeq + 1;
    const maySkip = this.#maySkip(epoch, nextSeq, first - 1);
    const records = epoch.unreadable - before;
    if (records > 0)
      this.#parts.log.error(
        { epoch: epoch.meta.epoch, records },
        'unreadable records in the spool are declared lost',
      );
    return maySkip ? { first, entries } : null;
  }

  #maySkip(epoch: Epoch, next: number, to: number): boolean {
    // Records before the oldest one were deleted after their acknowledgement: a store without them declares them lost itself.
    const from = Math.max(next, epoch.oldestSeq);
    if (epoch.isDeclaredLost(from, to)) {
      this.#failedReads.delete(epoch);
      return true;
    }
    const failed = (this.#failedReads.get(epoch) ?? 0) + 1;
    this.#failedReads.set(epoch, failed);
    if (failed < MAX_READS) return false;
    epoch.declareUnreadable(from, to);
    return true;
  }

  async #add(batch: SealedBatch): Promise<void> {
    // A failed add may have arrived: the batch is sent again, and the store counts it once.
    batch.makeDue();
    await this.#parts.inbox.add(batch);
    batch.sent(monoNow());
    this.#parts.ackReader.expectReply();
  }
}
