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
 */
import { type JobsOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { monoNow, wallNow } from '../clock.ts';
import { messageOf } from '../errors.ts';
import {
  BATCH_VERSION,
  type Batch,
  batchId,
  encodeBatch,
  type JobData,
  MAX_BATCH_BYTES,
  MAX_BATCH_RECORDS,
} from '../evidence/batch.ts';
import {
  type Flow,
  flowKey,
  laneOf,
  lanePrefix,
  parseFlow,
  parseReply,
  QUEUE_NAME,
  replyKey,
} from '../evidence/exchange.ts';
import type { EvidenceObject } from '../evidence/record.ts';
import { between, type Mono, millis, seq } from '../evidence/units.ts';
import type { Logger } from '../log.ts';
import { connectRedis } from '../redis.ts';
import type { Epoch } from './spool/epoch.ts';
import type { Entry } from './spool/segment.ts';
import type { Spool } from './spool/spool.ts';

const LINGER = millis(250);
const SLOW_LINGER = millis(5_000);
/** A round without an answer is asked for again after this, then after twice that, up to a minute. */
const STALL = millis(10_000);
const LONGEST_STALL = millis(60_000);
const ROUND = millis(300_000);
const POLL_MS = 250;
const ASK_FLOW = millis(5_000);

const JOB_OPTIONS: JobsOptions = {
  attempts: 1,
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
};

interface Sealed {
  readonly id: string;
  readonly data: JobData;
  readonly last: number;
  readonly bytes: number;
  added: Mono | null;
  tries: number;
}

/** How far one epoch has been sent. */
class Track {
  readonly epoch: Epoch;
  round = 1;
  /** The next seq to cut. */
  next = 1;
  sealed: Sealed[] = [];
  /** Whether a reply of the present round has come. */
  answered = false;
  hello: Mono | null = null;

  constructor(epoch: Epoch) {
    this.epoch = epoch;
  }

  get unacknowledged(): number {
    return this.sealed.reduce((sum, each) => sum + each.bytes, 0);
  }

  /** A new round: what is believed is asked for again. */
  turn(round: number): void {
    this.round = round;
    this.answered = false;
    this.hello = null;
  }
}

export interface ShipOptions {
  readonly redisUrl: string;
  readonly cluster: string;
  readonly node: string;
  readonly spool: Spool;
  readonly log: Logger;
}

export class Shipper {
  readonly #options: ShipOptions;
  readonly #redis: Redis;
  readonly #tracks = new Map<Epoch, Track>();
  #queue: Queue | null = null;
  #lane = -1;
  #flow: Flow | null = null;
  #flowAsked: Mono | null = null;
  #roundTurned: Mono = monoNow();
  #lastCut: Mono = monoNow();
  #problem: string | null = 'not connected yet';
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | null = null;
  #stopped = false;
  #turn = 0;

  constructor(options: ShipOptions) {
    this.#options = options;
    this.#redis = connectRedis({
      url: options.redisUrl,
      onError: (message) => this.#away(message),
    });
    this.#redis.on('ready', () => this.#back());
    this.#timer = setInterval(() => this.#wake(), POLL_MS);
  }

  /** Why nothing can be shipped at the moment; null when all is well. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Records that the store has not acknowledged. */
  get unacknowledged(): number {
    return this.#options.spool.epochs.reduce(
      (sum, { written, mark }) => sum + Math.max(0, written - mark),
      0,
    );
  }

  /** Ends shipping, after a last try to hand over what is in the spool; `deadlineMs` bounds it. */
  async stop(deadlineMs: number): Promise<void> {
    clearInterval(this.#timer);
    const until = monoNow() + deadlineMs * 1000;
    while (this.#problem === null && this.unacknowledged > 0 && monoNow() < until) {
      this.#lastCut = monoNow();
      await this.#round(true);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    this.#stopped = true;
    await this.#running;
    await this.#queue?.close();
    this.#redis.disconnect();
  }

  #wake(): void {
    if (this.#stopped || this.#redis.status !== 'ready') return;
    this.#running ??= this.#round(false).finally(() => {
      this.#running = null;
    });
  }

  #away(message: string): void {
    if (this.#problem === null)
      this.#options.log.warn({ error: message }, 'Redis is away, records stay in the spool');
    this.#problem = message;
  }

  #back(): void {
    if (this.#problem !== null) this.#options.log.info('Redis is there');
    this.#problem = null;
    for (const track of this.#tracks.values()) track.turn(track.round + 1);
    this.#flowAsked = null;
  }

  /** One round of everything: flow, replies, re-sends, new batches. Never throws. */
  async #round(hurry: boolean): Promise<void> {
    try {
      await this.#readFlow();
      const held = this.#obstacle();
      if (held !== null) {
        this.#problem = held;
        return;
      }
      this.#turnRounds();
      this.#follow();
      await this.#readReplies();
      await this.#resend();
      await this.#send(hurry);
      this.#problem = null;
    } catch (error) {
      this.#away(messageOf(error));
    }
  }

  /** What the controllers' settings forbid; null where it may send. */
  #obstacle(): string | null {
    if (this.#flow === null) return 'no controller has published flow settings yet';
    if (this.#flow.accepts.includes(BATCH_VERSION)) return null;
    return `no controller reads version ${BATCH_VERSION} of the envelope yet`;
  }

  #follow(): void {
    for (const epoch of this.#options.spool.epochs) {
      if (!this.#tracks.has(epoch)) this.#tracks.set(epoch, new Track(epoch));
    }
    for (const epoch of this.#tracks.keys()) {
      if (!this.#options.spool.epochs.includes(epoch)) this.#tracks.delete(epoch);
    }
  }

  #turnRounds(): void {
    if (between(this.#roundTurned, monoNow()) < ROUND) return;
    this.#roundTurned = monoNow();
    for (const track of this.#tracks.values()) track.turn(track.round + 1);
  }

  // What the controllers say.

  async #readFlow(): Promise<void> {
    const now = monoNow();
    if (this.#flowAsked !== null && between(this.#flowAsked, now) < ASK_FLOW) return;
    const json = await this.#redis.get(flowKey(this.#options.cluster));
    this.#flowAsked = now;
    // Without a word from any controller the last one stands; without a first one nothing can be sent.
    if (json === null) return;
    const flow = parseFlow(json);
    if (!flow.ok) {
      this.#options.log.warn({ problem: flow.problem }, 'the flow settings in Redis cannot be read');
      return;
    }
    this.#flow = flow.value;
    await this.#useLane(laneOf(this.#options.node, flow.value.lanes));
  }

  async #useLane(lane: number): Promise<void> {
    if (lane === this.#lane) return;
    await this.#queue?.close();
    this.#lane = lane;
    this.#queue = new Queue(QUEUE_NAME, {
      connection: this.#redis,
      prefix: lanePrefix(this.#options.cluster, lane),
      skipMetasUpdate: true,
      skipVersionCheck: true,
    });
    this.#queue.on('error', (error) => this.#away(messageOf(error)));
  }

  async #readReplies(): Promise<void> {
    const replies = await this.#redis.hgetall(replyKey(this.#options.cluster, this.#options.node));
    for (const track of this.#tracks.values()) {
      const json = replies[track.epoch.meta.epoch];
      if (json === undefined) continue;
      const reply = parseReply(json);
      if (reply.ok) this.#believe(track, reply.value.round, reply.value.mark);
      else this.#options.log.warn({ problem: reply.problem }, 'a reply in Redis cannot be read');
    }
  }

  #believe(track: Track, round: number, mark: number): void {
    // An earlier process of this spool got further: begin behind it.
    if (round > track.round) track.turn(round + 1);
    if (round !== track.round) return;
    const known = track.epoch.mark;
    if (track.answered && mark <= known) return;
    track.answered = true;
    this.#options.spool.acknowledge(track.epoch, seq(Math.min(mark, track.epoch.written)));
    track.sealed = track.sealed.filter((each) => each.last > mark);
    if (mark < known || track.next <= mark) {
      track.sealed = [];
      track.next = mark + 1;
    }
  }

  // What is sent.

  async #resend(): Promise<void> {
    const now = monoNow();
    for (const track of this.#tracks.values()) {
      for (const sealed of track.sealed) {
        const patience = Math.min(LONGEST_STALL, STALL * 2 ** Math.min(sealed.tries, 4));
        if (sealed.added === null || now - sealed.added > patience) await this.#add(sealed);
      }
    }
  }

  async #send(hurry: boolean): Promise<void> {
    const tracks = [...this.#tracks.values()];
    const window = this.#flow?.window ?? 0;
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
    const now = monoNow();
    if (track.answered) return;
    if (track.hello !== null && between(track.hello, now) < STALL) return;
    track.hello = now;
    await this.#add(await this.#seal(track, []));
  }

  /** A batch is worth cutting when it is full, or when the oldest record has waited long enough. */
  #due(track: Track, slow: boolean, hurry: boolean): boolean {
    const waiting = track.epoch.written - track.next + 1;
    if (waiting <= 0) return false;
    if (hurry || waiting >= MAX_BATCH_RECORDS || track.epoch !== this.#options.spool.present) return true;
    return between(this.#lastCut, monoNow()) >= (slow ? SLOW_LINGER : LINGER);
  }

  async #cut(track: Track): Promise<void> {
    const entries = await track.epoch.read(track.next, MAX_BATCH_RECORDS, MAX_BATCH_BYTES);
    const last = entries.at(-1);
    if (last === undefined) {
      // What was there is lost and declared: a hello tells the store.
      track.next = track.epoch.written + 1;
      await this.#add(await this.#seal(track, []));
      return;
    }
    const sealed = await this.#seal(track, entries);
    track.next = last.seq + 1;
    track.sealed.push(sealed);
    if (track.epoch === this.#options.spool.present) this.#lastCut = monoNow();
    await this.#add(sealed);
  }

  async #seal(track: Track, entries: readonly Entry[]): Promise<Sealed> {
    const batch = this.#batch(track, entries);
    const data = await encodeBatch(batch);
    return { id: batchId(batch), data, last: batch.last, bytes: data.z.length, added: null, tries: 0 };
  }

  async #add(sealed: Sealed): Promise<void> {
    // Whether a failed add arrived is not known: it is sent again, and the store counts it once.
    sealed.added = monoNow();
    sealed.tries += 1;
    await this.#queue?.add('batch', sealed.data, { ...JOB_OPTIONS, jobId: sealed.id });
  }

  #batch(track: Track, entries: readonly Entry[]): Batch {
    const { epoch, round } = track;
    const first = entries[0]?.seq ?? track.next;
    const { meta } = epoch;
    const context = entries[0]?.context ?? this.#options.spool.context;
    if (context === null || context === undefined) throw new Error('a batch before the first context');
    const age = this.#age(epoch, entries);
    return {
      v: BATCH_VERSION,
      cluster: meta.cluster,
      node: meta.node,
      nodeUid: '',
      bootId: meta.bootId,
      epoch: meta.epoch,
      life: meta.life,
      prev: meta.prev,
      held: this.#held(),
      round,
      context,
      first,
      last: first + entries.length - 1,
      floor: epoch.floor,
      lost: epoch.lost.filter((hole) => hole.to < first || hole.from > first + entries.length - 1),
      mono0: age,
      wall0: epoch === this.#options.spool.present ? wallNow() : meta.startedWall + age,
      objects: objectsOf(entries),
      records: entries.map((entry) => entry.record),
    };
  }

  /** How old the epoch is; of an earlier one only the youngest record tells. */
  #age(epoch: Epoch, entries: readonly Entry[]): number {
    if (epoch === this.#options.spool.present) return Math.max(0, monoNow() - this.#options.spool.start);
    return Math.max(0, ...entries.map((entry) => entry.record.t));
  }

  #held(): Batch['held'] {
    const { epochs, present } = this.#options.spool;
    const open = epochs.filter(
      (epoch) => epoch === present || !epoch.settled || !this.#tracks.get(epoch)?.answered,
    );
    return open
      .slice(-1000)
      .map(({ meta, written }) => ({ epoch: meta.epoch, life: meta.life, last: written }));
  }
}

/** Every identity that the records mention, once. */
function objectsOf(entries: readonly Entry[]): EvidenceObject[] {
  const objects = new Map<string, EvidenceObject>();
  for (const { object } of entries) {
    if (object !== null) objects.set(object.id, object);
  }
  return [...objects.values()];
}
