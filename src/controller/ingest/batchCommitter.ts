/*
 * Group commit: what waits, of all queues, is committed together.
 *
 *   commit ─► waiting ─► group ─► committed
 *                ▲         ├ busy, for a moment ──► waiting again
 *                └─────────┘
 *                          ├ busy still, or held ─► busy: the caller puts the job aside, only this node waits
 *                          └ not plain, or its group failed ─► alone ─► commitBatch
 *
 * Groups begin some time apart, because a transaction of one batch costs nearly as much as one of ten; and further apart while each batch that waits
 * is a sign of life or has nothing but minutes in which no status was asked for. A batch that comes after a pause is committed at once, and so are
 * many, and one of a queue of which as many batches are here as it hands out at a time: no more may come before.
 *
 * A group has at most one batch of a node, and a node is in one group at a time: so batches of a node never wait for each other's locks. Groups
 * and lonely batches share all connections of the pool but one, which is for the readers of settings; either leaves the other at least one.
 */
import * as v from 'valibot';
import { messageOf } from '../../platform/errors.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { batchId, type Envelope } from '../../protocol/batch.ts';
import { databaseErrorKind, isLockTimeout } from '../../store/databaseError.ts';
import { command } from '../../store/statement.ts';
import type { Store } from '../../store/store.ts';
import { type CommitContext, type CommitOutcome, commitBatch, giveUpBatch } from './commitBatch.ts';
import { type AttributedBatch, commitGroup, type GroupedBatch, type GroupOutcome } from './commitGroup.ts';
import { JOBS_AT_ONCE } from './queueWorker.ts';

/** Somebody else has locked what the batch changes of its node. */
export interface BusyNode {
  readonly is: 'busy';
}

export interface BatchCommitterOptions extends CommitContext {
  readonly store: Pick<Store, 'transaction'>;
  /** How many connections the pool of the store has. */
  readonly connections: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
}

const MAX_BATCHES = 128;
/** A group ends with the batch that reaches this. */
const MAX_RECORDS = 8_000;
const MIN_RECORDS = 500;
const GROUP_INTERVAL_MS = 100;
const CALM_INTERVAL_MS = 1_000;
/** This many wait for no more: as many signs are taken of a queue at a time. */
const MANY_BATCHES = 64;
/** A batch with a larger JSON, in bytes, does not wait for others: it is not of a calm node, and what was read must not stay in memory. */
const MAX_CALM_BYTES = 16 * 1024;
/** Another controller has a node for as long as it commits a group. */
const BUSY_TRIES = 10;
const BUSY_PAUSE_MS = 50;
/** The batches of a node that somebody holds are put aside unseen for this long. */
const HELD_MS = 1_000;
/** And of one whose lonely batch waited in vain for a lock, which is not in a group again for longer. */
const STUCK_MS = 10_000;
const LONELY_MS = 120_000;
/** Lonely batches wait no longer than this for a lock. */
const lonelyLockTimeout = command("SET LOCAL lock_timeout = '2s'");
/** The oldest is forgotten. */
const MAX_REMEMBERED = 1_000;

export interface ReadBatch extends AttributedBatch {
  /** Size of its JSON. */
  readonly bytes: number;
}

interface WaitingBatch extends GroupedBatch {
  /** Null for a sign. */
  readonly queue: number | null;
  /** Whether it waits longer for others. One that a group had or left behind does not. */
  isCalm: boolean;
  readonly resolve: (outcome: CommitOutcome | BusyNode) => void;
  readonly reject: (error: unknown) => void;
  tries: number;
}

export class BatchCommitter {
  readonly #options: BatchCommitterOptions;
  readonly #lonelyContext: CommitContext;
  /** How many connections groups and lonely batches use at a time: either of them, and both together. */
  readonly #maxEach: number;
  readonly #maxBoth: number;
  readonly #timedOut = new TimedOutBatches();
  #waiting: WaitingBatch[] = [];
  readonly #lonely: WaitingBatch[] = [];
  /** How many batches of each queue are waiting or under way. */
  readonly #held = new Map<number, number>();
  #groups = 0;
  #alone = 0;
  #isScheduled = false;
  #lastGroupAt = Number.NEGATIVE_INFINITY;
  #nextGroup: NodeJS.Timeout | undefined;
  #maxRecords = MAX_RECORDS;
  /** The nodes of groups and of lonely batches. */
  readonly #underway = new Set<string>();
  readonly #stuckUntil = new Map<string, number>();
  readonly #lonelyUntil = new Map<string, number>();

  constructor(options: BatchCommitterOptions) {
    this.#options = options;
    this.#maxEach = Math.max(1, options.connections - 2);
    this.#maxBoth = this.#maxEach + 1;
    const { store } = options;
    const transaction: Store['transaction'] = (work) =>
      store.transaction(async (runner) => {
        await runner.run(lonelyLockTimeout);
        return work(runner);
      });
    this.#lonelyContext = { ...options, store: { transaction } };
  }

  /**
   * Returns when the batch is committed, or cannot be. Throws what the caller has to wait for: an outage, or a fault of ours. `queue`: the one that
   * handed it out; null for a sign of life.
   */
  async commit(queue: number | null, batch: ReadBatch): Promise<CommitOutcome | BusyNode> {
    this.#hold(queue, 1);
    try {
      return await new Promise((resolve, reject) => {
        const isCalm = batch.bytes <= MAX_CALM_BYTES && (queue === null || hasCalmMinutes(batch.envelope));
        this.#waiting.push({ ...batch, queue, isCalm, resolve, reject, tries: 0 });
        this.#schedule();
      });
    } finally {
      this.#hold(queue, -1);
    }
  }

  #hold(queue: number | null, more: number): void {
    if (queue !== null) this.#held.set(queue, this.#heldOf(queue) + more);
  }

  #heldOf(queue: number | null): number {
    return queue === null ? 0 : (this.#held.get(queue) ?? 0);
  }

  /** Not at once: more may come before the loop turns. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#start();
    });
  }

  #start(): void {
    while (this.#groups < this.#maxEach && this.#groups + this.#alone < this.#maxBoth && this.#isGroupDue()) {
      const group = this.#takeGroup();
      if (group.length === 0) break;
      this.#lastGroupAt = this.#options.now();
      this.#groups += 1;
      void this.#commitGroup(group).finally(() => {
        this.#groups -= 1;
        this.#schedule();
      });
    }
    while (this.#alone < this.#maxEach && this.#groups + this.#alone < this.#maxBoth) {
      const batch = this.#lonely.shift();
      if (batch === undefined) break;
      this.#alone += 1;
      void this.#commitLonely(batch).finally(() => {
        this.#alone -= 1;
        this.#end(batch);
        this.#schedule();
      });
    }
  }

  /** If not, the next group begins when it is. */
  #isGroupDue(): boolean {
    if (this.#waiting.length === 0) return false;
    if (this.#waiting.length >= MANY_BATCHES) return true;
    const intervalMs = this.#waiting.every(({ isCalm }) => isCalm) ? CALM_INTERVAL_MS : GROUP_INTERVAL_MS;
    const inMs = this.#lastGroupAt + intervalMs - this.#options.now();
    if (inMs <= 0 || this.#waiting.some(({ queue }) => this.#heldOf(queue) >= JOBS_AT_ONCE)) return true;
    clearTimeout(this.#nextGroup);
    this.#nextGroup = setTimeout(() => this.#schedule(), inMs);
    return false;
  }

  #takeGroup(): WaitingBatch[] {
    const group: WaitingBatch[] = [];
    const others: WaitingBatch[] = [];
    let records = 0;
    for (const batch of this.#waiting) {
      const { node, records: own } = batch.envelope;
      if (this.#underway.has(node) || group.length >= MAX_BATCHES || records >= this.#maxRecords) {
        batch.isCalm = false;
        others.push(batch);
        continue;
      }
      if (this.#isBefore(this.#stuckUntil, node)) {
        batch.resolve({ is: 'busy' });
        continue;
      }
      this.#underway.add(node);
      if (this.#isBefore(this.#lonelyUntil, node)) {
        this.#lonely.push(batch);
        continue;
      }
      group.push(batch);
      records += own.length;
    }
    this.#waiting = others;
    return group;
  }

  async #commitGroup(group: readonly WaitingBatch[]): Promise<void> {
    let outcomes: readonly GroupOutcome[];
    try {
      outcomes = await commitGroup(this.#options, group);
      this.#maxRecords = Math.min(MAX_RECORDS, 2 * this.#maxRecords);
    } catch (error) {
      this.#takeApart(group, error);
      return;
    }
    for (const [i, batch] of group.entries()) {
      const outcome = outcomes[i];
      if (outcome?.is === 'committed') {
        this.#timedOut.stored(batchId(batch.envelope));
        this.#end(batch);
        batch.resolve(outcome);
      } else if (outcome?.is === 'busy') this.#wait(batch);
      else if (outcome?.is === 'held') {
        // Batches that wait behind it go with it.
        this.#remember(this.#stuckUntil, batch.envelope.node, HELD_MS);
        this.#end(batch);
        batch.resolve({ is: 'busy' });
      } else this.#lonely.push(batch);
    }
  }

  /** In a group that failed, only one batch may be at fault; nobody is if Postgres is unavailable. */
  #takeApart(group: readonly WaitingBatch[], error: unknown): void {
    const kind = databaseErrorKind(error);
    if (kind === 'timeout') this.#maxRecords = Math.max(MIN_RECORDS, this.#maxRecords / 2);
    const isNobodys = (kind === 'outage' && !isLockTimeout(error)) || kind === 'conflict';
    if (!isNobodys) {
      this.#lonely.push(...group);
      return;
    }
    for (const batch of group) {
      this.#end(batch);
      batch.reject(error);
    }
  }

  /** A node is busy for a moment where another controller commits a batch of it. */
  #wait(batch: WaitingBatch): void {
    batch.tries += 1;
    batch.isCalm = false;
    if (batch.tries >= BUSY_TRIES) {
      this.#end(batch);
      batch.resolve({ is: 'busy' });
      return;
    }
    setTimeout(() => {
      this.#end(batch);
      // Before others of its node, which would be as busy.
      const { node } = batch.envelope;
      const next = this.#waiting.findIndex(({ envelope }) => envelope.node === node);
      this.#waiting.splice(next === -1 ? this.#waiting.length : next, 0, batch);
      this.#schedule();
    }, BUSY_PAUSE_MS);
  }

  async #commitLonely(batch: WaitingBatch): Promise<void> {
    const { node } = batch.envelope;
    try {
      batch.resolve(await this.#commitOrGiveUp(batch));
    } catch (error) {
      if (isLockTimeout(error)) {
        this.#remember(this.#stuckUntil, node, STUCK_MS);
        this.#remember(this.#lonelyUntil, node, LONELY_MS);
        batch.resolve({ is: 'busy' });
      } else {
        if (databaseErrorKind(error) === 'timeout') this.#remember(this.#lonelyUntil, node, LONELY_MS);
        batch.reject(error);
      }
    }
  }

  #remember(until: Map<string, number>, node: string, forMs: number): void {
    until.delete(node);
    until.set(node, this.#options.now() + forMs);
    forgetOldest(until);
  }

  #isBefore(until: ReadonlyMap<string, number>, node: string): boolean {
    return (until.get(node) ?? 0) > this.#options.now();
  }

  #end({ envelope }: WaitingBatch): void {
    this.#underway.delete(envelope.node);
  }

  /** A batch that times out while others are stored would do so for ever, and keep other lonely batches waiting. */
  async #commitOrGiveUp({ envelope, isSigned }: AttributedBatch): Promise<CommitOutcome> {
    const context = { ...this.#lonelyContext, isSigned };
    const batch = batchId(envelope);
    try {
      const outcome = await commitBatch(context, envelope);
      if (outcome.is === 'committed') this.#timedOut.stored(batch);
      return outcome;
    } catch (failure) {
      if (databaseErrorKind(failure) !== 'timeout') throw failure;
      if (!this.#timedOut.isAtFault(batch)) throw failure;
      const { node, epoch, first, last } = envelope;
      this.#options.log.error(
        { node, epoch, first, last, error: messageOf(failure) },
        'batch timed out twice while others were stored, given up',
      );
      return giveUpBatch(context, envelope);
    }
  }
}

const CalmMinute = v.object({ type: v.literal('relist_minute'), statuses: v.optional(v.undefined()) });
/** Records are not checked yet: they may be anything. A probe has none, and its agent waits for the answer. */
const hasCalmMinutes = ({ records, lost }: Envelope): boolean =>
  lost.length === 0 && records.length > 0 && records.every((record) => v.is(CalmMinute, record));

/**
 * Batches that timed out and are not stored. One is at fault itself only if others are stored between two of its timeouts: else Postgres
 * stores nothing in time, and every batch would look like that.
 */
class TimedOutBatches {
  #stored = 0;
  /** How many batches had been stored when each timed out last. */
  readonly #batches = new Map<string, number>();

  stored(batch: string): void {
    this.#stored += 1;
    this.#batches.delete(batch);
  }

  /** Takes in another timeout of a batch, and returns whether the batch is at fault. */
  isAtFault(batch: string): boolean {
    const before = this.#batches.get(batch);
    this.#batches.delete(batch);
    this.#batches.set(batch, this.#stored);
    forgetOldest(this.#batches);
    return before !== undefined && before < this.#stored;
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size > MAX_REMEMBERED) map.delete(oldest);
}
