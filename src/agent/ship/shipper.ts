/*
 * Shipping: batches of the spool go into the node's queue until the store has acknowledged them.
 *
 *   spool ── at most 500 records of one context, after 250 ms ──► sealed batch ── add ──► queue
 *     ▲                                                             │ again when no reply comes, same id
 *     └── acked seq ◄── ack reply of the current generation ◄── Redis hash
 *
 * The Shipper decides when to work: every 250 ms while something is under way, seldom while idle, and after a failure with a
 * pause that grows to half a minute. Deliveries, BatchSender and AckReader do the work.
 */
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { connectRedis, type RedisClient } from '../../platform/redis.ts';
import { BATCH_VERSION } from '../../protocol/batch.ts';
import type { AgentInternals } from '../config.ts';
import type { Spool } from '../spool/spool.ts';
import { AckReader } from './ackReader.ts';
import { BatchQueue } from './batchQueue.ts';
import { BatchSender } from './batchSender.ts';
import { Deliveries } from './deliveries.ts';
import { ShippingStatus } from './shippingStatus.ts';

/** The wait between two passes while something is under way, in milliseconds. */
const BUSY_MS = 250;
/** The wait between two passes of the hand-over at the end. */
const HAND_OVER_MS = 50;

export interface ShipperOptions {
  readonly redisUrl: string;
  readonly cluster: string;
  readonly node: string;
  readonly spool: Spool;
  readonly intervals: Omit<
    AgentInternals,
    'intervalSpoolSweep' | 'intervalScrape' | 'intervalModeConfirmed' | 'auditFile'
  >;
  readonly log: Logger;
}

export class Shipper {
  readonly #options: ShipperOptions;
  readonly #status: ShippingStatus;
  readonly #redis: RedisClient;
  readonly #ackReader: AckReader;
  readonly #deliveries: Deliveries;
  readonly #queue: BatchQueue;
  readonly #sender: BatchSender;
  #timer: NodeJS.Timeout | undefined;
  /** Whether there is nothing to do until a record is written. */
  #isIdle = false;
  #pass: Promise<void> | null = null;
  /** running ── stop() ──► handing over ── done or deadline ──► ended */
  #state: 'running' | 'handing over' | 'ended' = 'running';

  constructor(options: ShipperOptions) {
    const { spool, log, cluster, node, intervals } = options;
    this.#options = options;
    this.#status = new ShippingStatus(log);
    this.#redis = connectRedis({
      url: options.redisUrl,
      maxRetry: intervals.intervalRedisRetry,
      onError: (error) => this.#onError(error),
      onReady: () => this.#onReady(),
    });
    this.#ackReader = new AckReader(options, this.#redis);
    this.#deliveries = new Deliveries(spool, intervals);
    this.#queue = new BatchQueue({ cluster, node, onError: (error) => this.#onError(error) }, this.#redis);
    this.#sender = new BatchSender({
      spool,
      deliveries: this.#deliveries,
      queue: this.#queue,
      ackReader: this.#ackReader,
      log,
    });
    spool.onWritten(() => this.#wake());
    this.#schedule();
  }

  /** Why nothing can be shipped; null while all is well. */
  get error(): string | null {
    return this.#status.error;
  }

  /** How many records the store has not acknowledged. */
  get unacknowledged(): number {
    return this.#options.spool.epochs.reduce(
      (sum, { lastSeq, ackedSeq }) => sum + Math.max(0, lastSeq - ackedSeq),
      0,
    );
  }

  /** Ends shipping. Before that it tries to hand over what is in the spool, for at most `deadlineMs`. */
  async stop(deadlineMs: number): Promise<void> {
    this.#state = 'handing over';
    clearTimeout(this.#timer);
    const deadline = setTimeout(() => this.#end(), deadlineMs);
    await this.#pass;
    while (!this.#hasEnded && this.error === null && this.unacknowledged > 0) {
      await this.#work(true);
      await new Promise((resolve) => setTimeout(resolve, HAND_OVER_MS));
    }
    clearTimeout(deadline);
    this.#end();
    await this.#queue.close();
  }

  get #hasEnded(): boolean {
    return this.#state === 'ended';
  }

  /** Makes what is under way fail at once. */
  #end(): void {
    if (this.#hasEnded) return;
    this.#state = 'ended';
    this.#redis.disconnect();
  }

  #onError(error: string): void {
    if (!this.#hasEnded) this.#status.unreachable(error);
  }

  /** The Redis behind a new connection may have lost everything: everything is asked for again. */
  #onReady(): void {
    this.#status.connected();
    this.#ackReader.connected();
    this.#deliveries.startGeneration();
    this.#wake();
  }

  #schedule(): void {
    if (this.#state !== 'running') return;
    this.#isIdle = this.error === null && !this.#deliveries.isBusy;
    this.#runAfter(this.#isIdle ? this.#options.intervals.intervalIdle / 1000 : BUSY_MS);
  }

  /** Ends an idle wait: there are records, which still wait a little for more. */
  #wake(): void {
    if (!this.#isIdle || this.#state !== 'running') return;
    this.#isIdle = false;
    this.#runAfter(BUSY_MS);
  }

  #runAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#startPass(), ms);
  }

  #startPass(): void {
    if (this.#redis.status !== 'ready' || this.#status.isPaused) {
      this.#schedule();
      return;
    }
    this.#pass ??= this.#work(false).finally(() => {
      this.#pass = null;
      this.#schedule();
    });
  }

  /** One pass: flow settings, replies, re-sends, new batches. Never throws. */
  async #work(hurry: boolean): Promise<void> {
    try {
      await this.#ackReader.pollFlowSettings();
      const { flowSettings } = this.#ackReader;
      if (flowSettings === null) return this.#status.blocked('no controller has published flow settings yet');
      await this.#queue.select(flowSettings.queues);
      if (!flowSettings.accepts.includes(BATCH_VERSION))
        return this.#status.blocked(`no controller reads version ${BATCH_VERSION} of the envelope yet`);
      this.#deliveries.startGenerationIfDue();
      this.#deliveries.followSpool();
      await this.#applyReplies(hurry);
      await this.#sender.resend();
      await this.#sender.sendNew(hurry);
      this.#status.succeeded();
    } catch (error) {
      this.#onFailure(messageOf(error));
    }
  }

  async #applyReplies(hurry: boolean): Promise<void> {
    for (const { delivery, reply } of await this.#ackReader.pollReplies(this.#deliveries.all, hurry)) {
      if (this.#deliveries.apply(delivery, reply) !== 'ignored') this.#ackReader.expectReply();
    }
  }

  #onFailure(error: string): void {
    if (!this.#hasEnded) this.#status.failed(error);
  }
}
