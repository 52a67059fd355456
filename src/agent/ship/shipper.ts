/*
 * Shipping: batches of the spool into the node's lane, until the store says that it has them.
 *
 *   spool ── cut, at most 500 records of one context, after 250 ms ──► sealed ── add ──► lane
 *     ▲                                                                  │ again when replies stall, same id
 *     └── mark ◄── reply of the present round ◄── Redis hash ◄───────────┘
 *
 * A batch is cut once; every re-send is the same bytes under the same id. A failed add is unknown, not failed. Only a reply
 * of the present round is believed, and within a round marks only rise; a new round (at the start, after a reconnect, every
 * five minutes) replaces what was believed before, also by less: then it is sent again from there.
 *
 * What may be unacknowledged is bounded by the controllers' window. Older epochs and the present one take turns, so that a
 * backlog never hides the present.
 *
 * Whatever fails is tried again after a pause that grows to half a minute; it is logged when it begins and when it is over.
 */
import { type JobsOptions, Queue } from 'bullmq';
import { Backoff } from '../../platform/backoff.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { connectRedis, type RedisClient } from '../../platform/redis.ts';
import { BATCH_VERSION, MAX_BATCH_BYTES, MAX_BATCH_RECORDS } from '../../protocol/batch.ts';
import { QUEUE_NAME, queueOf, queuePrefix } from '../../protocol/keys.ts';
import { between, type Mono, millis, mono, seq, shift } from '../../protocol/units.ts';
import type { AgentInternals } from '../internalSettings.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { Spool } from '../spool/spool.ts';
import { Word } from './ackReader.ts';
import { Sealer } from './batchBuilder.ts';
import { isBusy, type Sealed, Track } from './epochDelivery.ts';

const LINGER = millis(250);
const SLOW_LINGER = millis(5_000);
/** How often it looks for work while something is under way or waits. */
const BUSY_MS = 250;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** So often what should be in the spool is read again before it counts as lost. */
const UNREADABLE_TRIES = 20;

const JOB_OPTIONS: JobsOptions = {
  attempts: 1,
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
};

export interface ShipOptions {
  readonly redisUrl: string;
  readonly cluster: string;
  readonly node: string;
  readonly spool: Spool;
  readonly intervals: Omit<AgentInternals, 'intervalSpoolSweep' | 'auditFile'>;
  readonly log: Logger;
}

export class Shipper {
  readonly #options: ShipOptions;
  readonly #redis: RedisClient;
  readonly #word: Word;
  readonly #tracks = new Map<Epoch, Track>();
  readonly #sealer: Sealer;
  #queue: Queue | null = null;
  #lane = -1;
  #roundTurned: Mono = monoNow();
  #pastAsked: Mono = monoNow();
  #lastCut: Mono = monoNow();
  #problem: string | null = 'not connected yet';
  readonly #backoff = new Backoff(BACKOFF);
  #pausedUntil = mono(0);
  #timer: NodeJS.Timeout | undefined;
  /** Nothing is to be done until a record comes. */
  #idle = false;
  #running: Promise<void> | null = null;
  #stopped = false;
  /** Whether it looks by itself; not any more once it hands over what is left. */
  #resting = true;
  #turn = 0;

  constructor(options: ShipOptions) {
    this.#options = options;
    this.#redis = connectRedis({
      url: options.redisUrl,
      maxRetry: options.intervals.intervalRedisRetry,
      onError: (message) => this.#away(message),
      onReady: () => this.#back(),
    });
    this.#word = new Word(options, this.#redis);
    this.#sealer = new Sealer(options.spool, this.#tracks);
    options.spool.onWritten(() => this.#stir());
    this.#rest();
  }

  /** Why nothing can be shipped at the moment; null when all is well. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Records that the store has not acknowledged. */
  get unacknowledged(): number {
    return this.#options.spool.epochs.reduce(
      (sum, { lastSeq, ackedSeq }) => sum + Math.max(0, lastSeq - ackedSeq),
      0,
    );
  }

  /** Ends shipping, after a last try to hand over what is in the spool; `deadlineMs` bounds it. */
  async stop(deadlineMs: number): Promise<void> {
    this.#resting = false;
    clearTimeout(this.#timer);
    const late = setTimeout(() => this.#end(), deadlineMs);
    await this.#running;
    while (!this.#stopped && this.#problem === null && this.unacknowledged > 0) {
      await this.#round(true);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    clearTimeout(late);
    this.#end();
    await this.#queue?.close();
  }

  /** What is under way fails at once, and nothing is begun any more. */
  #end(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#redis.disconnect();
  }

  #wake(): void {
    if (this.#redis.status !== 'ready' || monoNow() < this.#pausedUntil) {
      this.#rest();
      return;
    }
    this.#running ??= this.#round(false).finally(() => {
      this.#running = null;
      this.#rest();
    });
  }

  /** Sleeps until the next look: an idle node has a record a minute, and is not woken up in between. */
  #rest(): void {
    if (!this.#resting) return;
    this.#idle = this.#problem === null && ![...this.#tracks.values()].some(isBusy);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#wake(),
      this.#idle ? this.#options.intervals.intervalIdle / 1000 : BUSY_MS,
    );
  }

  /** Records came: they go after they have waited for company. */
  #stir(): void {
    if (!this.#idle || !this.#resting) return;
    this.#idle = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#wake(), BUSY_MS);
  }

  /** A connection is there, perhaps to a Redis that knows nothing any more: everything is asked for again, now. */
  #back(): void {
    this.#backoff.reset();
    this.#pausedUntil = mono(0);
    this.#word.connected();
    this.#turnRounds();
    this.#stir();
  }

  #away(message: string): void {
    if (this.#stopped) return;
    if (this.#problem === null)
      this.#options.log.warn({ error: message }, 'Redis is away, records stay in the spool');
    this.#problem = message;
  }

  #failed(message: string): void {
    this.#away(message);
    this.#pausedUntil = shift(monoNow(), millis(this.#backoff.next()));
  }

  #held(reason: string): void {
    if (this.#problem !== reason) this.#options.log.info({ reason }, 'records stay in the spool');
    this.#problem = reason;
  }

  /** Everything that was to be done was done. */
  #well(): void {
    if (this.#problem !== null) this.#options.log.info('Redis is there');
    this.#problem = null;
    this.#backoff.reset();
  }

  /** One round of everything: flow, replies, re-sends, new batches. Never throws. */
  async #round(hurry: boolean): Promise<void> {
    try {
      await this.#readFlow();
      const held = this.#obstacle();
      if (held !== null) {
        this.#held(held);
        return;
      }
      if (between(this.#roundTurned, monoNow()) >= this.#options.intervals.intervalAckGeneration)
        this.#turnRounds();
      this.#follow();
      await this.#readReplies(hurry);
      await this.#resend();
      await this.#send(hurry);
      this.#well();
    } catch (error) {
      this.#failed(messageOf(error));
    }
  }

  /** What the controllers' settings forbid; null where it may send. */
  #obstacle(): string | null {
    const { flow } = this.#word;
    if (flow === null) return 'no controller has published flow settings yet';
    if (flow.accepts.includes(BATCH_VERSION)) return null;
    return `no controller reads version ${BATCH_VERSION} of the envelope yet`;
  }

  #follow(): void {
    for (const epoch of this.#options.spool.epochs) {
      if (!this.#tracks.has(epoch))
        this.#tracks.set(epoch, new Track(epoch, this.#options.intervals.intervalResend));
    }
    for (const epoch of this.#tracks.keys()) {
      if (!this.#options.spool.epochs.includes(epoch)) this.#tracks.delete(epoch);
    }
  }

  #turnRounds(): void {
    this.#roundTurned = monoNow();
    for (const track of this.#tracks.values()) {
      if (track.epoch.retirement === null || !track.answered) track.turn(track.round + 1);
    }
    if (between(this.#pastAsked, this.#roundTurned) >= this.#options.intervals.intervalRetiredEpochs)
      this.#askOfThePast();
  }

  /** What is past is asked about seldom, and at once where the store turns out to know less than before. */
  #askOfThePast(): void {
    this.#pastAsked = monoNow();
    for (const track of this.#tracks.values()) {
      if (track.epoch.retirement !== null) track.turn(track.round + 1);
    }
  }

  // What the controllers say.

  async #readFlow(): Promise<void> {
    const flow = await this.#word.readFlow();
    if (flow !== null) await this.#useLane(queueOf(this.#options.node, flow.queues));
  }

  async #useLane(lane: number): Promise<void> {
    if (lane === this.#lane) return;
    await this.#queue?.close();
    this.#lane = lane;
    this.#queue = new Queue(QUEUE_NAME, {
      connection: this.#redis,
      prefix: queuePrefix(this.#options.cluster, lane),
      skipMetasUpdate: true,
      skipVersionCheck: true,
    });
    this.#queue.on('error', (error) => this.#away(messageOf(error)));
  }

  async #readReplies(hurry: boolean): Promise<void> {
    const tracks = [...this.#tracks.values()].filter((track) => track.waits);
    for (const { track, reply } of await this.#word.readReplies(tracks, hurry))
      this.#believe(track, reply.ackGeneration, reply.ackedSeq);
  }

  #believe(track: Track, round: number, mark: number): void {
    // An earlier process of this spool got further: begin behind it.
    if (round > track.round) track.turn(round + 1);
    if (round !== track.round) return;
    const known = track.epoch.ackedSeq;
    if (track.answered && mark <= known) return;
    if (!track.answered) this.#resendWhatWasPassed(track);
    track.answered = true;
    this.#word.expectReply();
    track.epoch.acknowledge(seq(Math.min(mark, track.epoch.lastSeq)));
    track.sealed = track.sealed.filter((each) => each.last > mark);
    if (mark < known) this.#askOfThePast();
    if (mark < known || track.next <= mark) {
      track.sealed = [];
      track.next = mark + 1;
    }
  }

  /** A hello was answered: what went into the lane before it and is not acknowledged was lost on the way. */
  #resendWhatWasPassed(track: Track): void {
    for (const sealed of track.sealed) {
      if (sealed.added !== null && track.hello !== null && sealed.added < track.hello) sealed.added = null;
    }
  }

  // What is sent.

  async #resend(): Promise<void> {
    const now = monoNow();
    for (const track of this.#tracks.values()) {
      for (const sealed of track.sealed) {
        if (sealed.added === null || between(sealed.added, now) > track.resendAfter(sealed.tries))
          await this.#add(sealed);
      }
    }
  }

  async #send(hurry: boolean): Promise<void> {
    const tracks = [...this.#tracks.values()];
    const window = this.#word.flow?.window ?? 0;
    this.#turn += 1;
    for (const [i] of tracks.entries()) {
      const track = tracks[(i + this.#turn) % tracks.length];
      if (track === undefined) continue;
      await this.#greet(track);
      const used = tracks.reduce((sum, each) => sum + each.unacknowledged, 0);
      if (track.answered && used < window && this.#due(track, used > window / 2, hurry))
        await this.#cut(track);
    }
  }

  /** Asks for a reply of the present round where nothing else would bring one. */
  async #greet(track: Track): Promise<void> {
    if (!track.mayGreet(monoNow())) return;
    await this.#add(await this.#sealer.seal(track, []));
    track.hello = monoNow();
    track.hellos += 1;
  }

  /** A batch is worth cutting when it is full, or when the oldest record has waited long enough. */
  #due(track: Track, slow: boolean, hurry: boolean): boolean {
    const waiting = track.epoch.lastSeq - track.next + 1;
    if (waiting <= 0) return false;
    if (hurry || waiting >= MAX_BATCH_RECORDS || track.epoch !== this.#options.spool.current) return true;
    return between(this.#lastCut, monoNow()) >= (slow ? SLOW_LINGER : LINGER);
  }

  async #cut(track: Track): Promise<void> {
    const entries = await track.epoch.read(track.next, MAX_BATCH_RECORDS, MAX_BATCH_BYTES);
    const last = entries.at(-1);
    const passed = (entries[0]?.seq ?? track.epoch.lastSeq + 1) - 1;
    if (!this.#mayPass(track, passed)) return;
    if (last === undefined) {
      // What was there is lost and declared: a hello tells the store.
      await this.#add(await this.#sealer.seal(track, [], passed + 1));
      track.next = passed + 1;
      return;
    }
    const sealed = await this.#sealer.seal(track, entries);
    track.next = last.seq + 1;
    track.sealed.push(sealed);
    if (track.epoch === this.#options.spool.current) this.#lastCut = monoNow();
    else if (track.next > track.epoch.lastSeq) track.epoch.forgetCache();
    await this.#add(sealed);
  }

  /**
   * Whether everything from the next seq to this one is declared lost, so that it may be stepped over. What cannot be read
   * although it should be there is tried again, and then declared: nothing is ever skipped without a word.
   */
  #mayPass(track: Track, to: number): boolean {
    // Below the floor it was deleted when it was acknowledged: a store that does not have it any more declares it itself.
    const from = Math.max(track.next, track.epoch.oldestSeq);
    if (track.epoch.isDeclaredLost(from, to)) {
      track.unreadable = 0;
      return true;
    }
    track.unreadable += 1;
    if (track.unreadable < UNREADABLE_TRIES) return false;
    this.#options.log.error({ from, to }, 'records in the spool cannot be read and are declared lost');
    track.epoch.declareLost({ from, to, cause: 'spool_unreadable' });
    return true;
  }

  async #add(sealed: Sealed): Promise<void> {
    // Whether a failed add arrived is not known: it is sent again, and the store counts it once.
    sealed.added = null;
    await this.#queue?.add('batch', sealed.data, { ...JOB_OPTIONS, jobId: sealed.id });
    sealed.added = monoNow();
    sealed.tries += 1;
    this.#word.expectReply();
  }
}
