/*
 * Shipping: batches of the spool go into the node's inbox until the store has acknowledged them.
 *
 *   spool ── at most 500 records of one context, after a moment ──► sealed batch ── add ──► inbox
 *     ▲                                                             │ again when no reply comes, same id
 *     └── acked seq ◄── ack reply of the current generation ◄── Redis hash
 *
 * The Shipper decides when to work: every 250 ms while there is something to send, when a reply is due, seldom while idle, and after a failure
 * with a pause that grows to half a minute. Deliveries, BatchSender and AckReader do the work.
 */
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { BATCH_VERSION } from '../../protocol/batch.ts';
import type { AckReply } from '../../protocol/redisKeys.ts';
import type { RedisSettings } from '../../redis/access.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { ReplyGuard } from '../../redis/replyGuard.ts';
import type { AgentInternals } from '../config.ts';
import type { Spool } from '../spool/spool.ts';
import { AckReader } from './ackReader.ts';
import { BatchSender } from './batchSender.ts';
import type { ControllerKeyFile } from './controllerKeyFile.ts';
import { Deliveries, type DeliveryIntervals } from './deliveries.ts';
import type { EpochDelivery } from './epochDelivery.ts';
import { Inbox } from './inbox.ts';
import type { NodeEnrolment } from './nodeEnrolment.ts';
import { reasonOf, ShippingStatus } from './shippingStatus.ts';
import { UnackedAge } from './unackedAge.ts';

/** The wait between two passes while there is something to send, and the shortest for a reply, in milliseconds. */
const BUSY_MS = 250;
/** The wait between two passes of the hand-over at the end. */
const HAND_OVER_MS = 50;

export interface ShipperOptions {
  readonly redis: RedisSettings;
  readonly cluster: string;
  readonly node: string;
  readonly spool: Spool;
  /** With it, every batch is signed with the key that is enrolled. */
  readonly enrolment?: NodeEnrolment | undefined;
  /** With it, only replies are believed that the controller has signed. */
  readonly controllerKeys?: ControllerKeyFile | undefined;
  readonly intervals: DeliveryIntervals & Pick<AgentInternals, 'intervalIdle' | 'intervalRedisRetry'>;
  readonly log: Logger;
}

export class Shipper {
  readonly #options: ShipperOptions;
  readonly #status: ShippingStatus;
  readonly #redis: RedisClient;
  readonly #ackReader: AckReader;
  readonly #deliveries: Deliveries;
  readonly #inbox: Inbox;
  readonly #sender: BatchSender;
  readonly #unackedAge: UnackedAge;
  #refusedAcks = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Whether there is nothing to send until a record is written. */
  #isWaiting = false;
  #pass: Promise<void> | null = null;
  /** running ── stop() ──► handing over ── done or deadline ──► ended */
  #state: 'running' | 'handing over' | 'ended' = 'running';

  constructor(options: ShipperOptions) {
    const { spool, log, cluster, node, intervals } = options;
    this.#options = options;
    this.#status = new ShippingStatus(log);
    this.#redis = connectRedis(options.redis, {
      maxRetry: intervals.intervalRedisRetry,
      onError: (error) => this.#onError(error),
      onReady: () => this.#onReady(),
      guard: new ReplyGuard({
        maxPause: intervals.intervalRedisRetry,
        onFault: (fault) => this.#onUnreadable(fault),
      }),
    });
    const { enrolment, controllerKeys } = options;
    const onEnrolment = (json: string) => enrolment?.confirm(json) ?? Promise.resolve();
    this.#ackReader = new AckReader({ cluster, node, log, controllerKeys, onEnrolment }, this.#redis);
    this.#deliveries = new Deliveries(spool, intervals);
    this.#inbox = new Inbox(this.#redis, cluster, node);
    this.#sender = new BatchSender({
      spool,
      deliveries: this.#deliveries,
      inbox: this.#inbox,
      ackReader: this.#ackReader,
      key: enrolment?.key,
      log,
    });
    this.#unackedAge = new UnackedAge(spool.start);
    spool.onWritten(() => {
      this.#unackedAge.written(spool.current.lastSeq, monoNow());
      if (this.#sender.maySend) this.#wake();
    });
    this.#schedule();
  }

  /** Why nothing can be shipped; null while all is well. */
  get error(): string | null {
    return this.#status.error;
  }

  /** Why the store does not know the key of this node; null if it does, or need not. */
  get enrolmentError(): string | null {
    return this.#options.enrolment?.error() ?? null;
  }

  /** For how many seconds the key of this node is still valid; NaN if it is not enrolled at all. */
  get keyValidSeconds(): number {
    return this.#options.enrolment?.validSeconds() ?? Number.NaN;
  }

  get refusedAcks(): number {
    return this.#refusedAcks + this.#ackReader.refused;
  }

  /** Which acknowledgement is not believed; null while all are. */
  get ackError(): string | null {
    const delivery = this.#deliveries.all.find(({ refusedSeq }) => refusedSeq !== null);
    if (delivery === undefined) return this.#ackReader.error;
    const { epoch, refusedSeq } = delivery;
    return `an acknowledgement up to seq ${refusedSeq} of epoch ${epoch.meta.epoch} is not believed: ${epoch.lastSeq} are written`;
  }

  get unacknowledged(): number {
    return this.#options.spool.unackedRecords;
  }

  /** For how long the oldest record has waited for its acknowledgement, in seconds; 0 if none waits. */
  get oldestUnackedSeconds(): number {
    const { epochs, current } = this.#options.spool;
    const earlier = epochs.some((epoch) => epoch !== current && !epoch.isAcknowledged);
    return this.#unackedAge.seconds({ ackedSeq: current.ackedSeq, earlier }, monoNow());
  }

  /** Ends shipping. Before that it tries to hand over what is in the spool, for at most `deadlineMs`: Redis may be back by then. */
  async stop(deadlineMs: number): Promise<void> {
    this.#state = 'handing over';
    clearTimeout(this.#timer);
    const deadline = setTimeout(() => this.#end(), deadlineMs);
    await this.#pass;
    while (!this.#hasEnded && this.unacknowledged > 0) {
      if (this.#mayWork) await this.#work(true);
      await new Promise((resolve) => setTimeout(resolve, HAND_OVER_MS));
    }
    clearTimeout(deadline);
    this.#end();
  }

  get #hasEnded(): boolean {
    return this.#state === 'ended';
  }

  get #mayWork(): boolean {
    return this.#redis.status === 'ready' && !this.#status.isPaused;
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

  #onUnreadable(fault: string): void {
    if (!this.#hasEnded) this.#status.unreadable(fault);
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
    const { intervalIdle } = this.#options.intervals;
    this.#isWaiting = this.error === null && !this.#sender.maySend;
    const waits = this.#deliveries.isBusy
      ? this.#ackReader.replyDueIn
      : Math.min(intervalIdle, this.#sender.lifeDueIn);
    // A timer may fire up to a millisecond early, when nothing is due yet.
    this.#runAfter(this.#isWaiting ? Math.max(BUSY_MS, Math.ceil(waits / 1000) + 1) : BUSY_MS);
  }

  /** Ends a wait: there is something to send, which still waits a little for more. */
  #wake(): void {
    if (!this.#isWaiting || this.#state !== 'running') return;
    this.#isWaiting = false;
    this.#runAfter(BUSY_MS);
  }

  #runAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#startPass(), ms);
  }

  #startPass(): void {
    if (!this.#mayWork) {
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
      const { enrolment } = this.#options;
      if (flowSettings === null) return this.#status.blocked('no controller has published flow settings yet');
      this.#inbox.select(flowSettings.queues);
      if (!flowSettings.accepts.includes(BATCH_VERSION))
        return this.#status.blocked(`no controller reads version ${BATCH_VERSION} of the envelope yet`);
      this.#deliveries.startGenerationIfDue();
      this.#deliveries.followSpool();
      await this.#enrol();
      await this.#applyReplies(hurry);
      if (enrolment?.mayShip(monoNow()) === false) return this.#status.blocked(String(enrolment.error()));
      await this.#sender.resend();
      await this.#sender.sendNew(hurry);
      this.#status.succeeded();
    } catch (error) {
      this.#onFailure(await reasonOf(error, this.#redis, this.#options.cluster));
    }
  }

  async #enrol(): Promise<void> {
    const { enrolment } = this.#options;
    if (enrolment === undefined) return;
    if (this.#deliveries.all.some(({ isUnanswered }) => isUnanswered)) enrolment.doubt(monoNow());
    const sealed = await enrolment.next(monoNow());
    if (sealed === null) return;
    await this.#inbox.addEnrolment(sealed);
    this.#ackReader.expectReply();
  }

  async #applyReplies(hurry: boolean): Promise<void> {
    const enrolment = this.#options.enrolment?.awaitsConfirmation ?? false;
    const replies = await this.#ackReader.pollReplies(this.#deliveries.all, { hurry, enrolment });
    for (const { delivery, reply, isChecked } of replies) {
      const effect = this.#deliveries.apply(delivery, reply, isChecked);
      if (effect === 'refused') this.#refused(delivery, reply);
      if (effect !== 'ignored') this.#ackReader.expectReply();
    }
  }

  #refused({ epoch }: EpochDelivery, { ackedSeq }: AckReply): void {
    this.#refusedAcks += 1;
    this.#options.log.error(
      { epoch: epoch.meta.epoch, ackedSeq, lastSeq: epoch.lastSeq },
      'acknowledgement of records that were never written refused',
    );
  }

  #onFailure(error: string): void {
    if (!this.#hasEnded) this.#status.failed(error);
  }
}
