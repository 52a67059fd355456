/*
 * A controller and its store under simulated time, as far as agents can tell: it takes inputs from the inbox in any order, stores each record
 * once, believes losses by the same rule as the real one (docs/decisions/0026-what-the-store-believes.md), closes epochs that the spool no longer
 * holds, and answers after that. It can die between storing and removing an input, and be restored from a backup.
 */
import type { Random } from '../../devtools/simulator/random.ts';
import { decodeBatch, type Envelope } from '../../src/protocol/batch.ts';
import type { SimulatedRedis } from './redis.ts';

export interface SimulatedEpoch {
  readonly incarnation: number;
  /** By seq, each as JSON. */
  readonly records: Map<number, string>;
  /** By seq, with the cause: of seqs that are not stored. */
  readonly lost: Map<number, string>;
  ackGeneration: number;
  ackedSeq: number;
  /** The last seq that the store knows to have been written. */
  last: number;
  isClosed: boolean;
}

export class SimulatedStore {
  readonly problems: string[] = [];
  window = 64 * 1024;
  isPaused = false;
  /** Whether the controller dies before it removes the next input. */
  diesNext = false;
  /** Whether it was restored from a backup at some time. */
  wasRestored = false;
  readonly #redis: SimulatedRedis;
  readonly #random: Random;
  #epochs = new Map<string, SimulatedEpoch>();
  #saved: ReadonlyMap<string, SimulatedEpoch> = new Map();

  constructor(redis: SimulatedRedis, random: Random) {
    this.#redis = redis;
    this.#random = random;
  }

  get epochs(): ReadonlyMap<string, SimulatedEpoch> {
    return this.#epochs;
  }

  save(): void {
    this.#saved = structuredClone(this.#epochs);
  }

  restore(): void {
    this.#epochs = new Map(structuredClone(this.#saved));
    this.wasRestored = true;
  }

  /** Publishes the flow settings, and takes in up to `max` inputs. */
  async turn(max: number): Promise<void> {
    if (this.isPaused) return;
    this.#redis.flow = JSON.stringify({ queues: 1, window: this.window, accepts: [1] });
    for (const place of this.#random.shuffle([...this.#redis.inbox.keys()]).slice(0, max)) {
      await this.#handle(this.#redis.inbox.get(place) ?? '', place.includes(':signs '));
      if (!this.diesNext) this.#redis.inbox.delete(place);
      this.diesNext = false;
    }
  }

  async #handle(data: string, isSign: boolean): Promise<void> {
    const decoded = await decodeBatch(JSON.parse(data));
    if (!decoded.ok) {
      this.problems.push(`refused: ${decoded.error}`);
      return;
    }
    const epoch = this.#epochOf(decoded.value);
    this.#take(epoch, decoded.value);
    this.#closeEarlier(decoded.value);
    if (isSign) return;
    const { ackGeneration, ackedSeq } = epoch;
    this.#redis.trace(`stored ${decoded.value.epoch} up to ${ackedSeq} in generation ${ackGeneration}`);
    this.#redis.replies.set(decoded.value.epoch, JSON.stringify({ ackGeneration, ackedSeq }));
  }

  #epochOf({ epoch, incarnation }: Envelope): SimulatedEpoch {
    const known = this.#epochs.get(epoch);
    if (known !== undefined) return known;
    const added = {
      ...{ incarnation, records: new Map(), lost: new Map() },
      ...{ ackGeneration: 0, ackedSeq: 0, last: 0, isClosed: false },
    };
    this.#epochs.set(epoch, added);
    return added;
  }

  #take(epoch: SimulatedEpoch, batch: Envelope): void {
    batch.records.forEach((record, i) => {
      const seq = batch.first + i;
      const json = JSON.stringify(record);
      const stored = epoch.records.get(seq);
      if (stored !== undefined && stored !== json) this.problems.push(`two records ${batch.epoch}:${seq}`);
      epoch.records.set(seq, json);
      epoch.lost.delete(seq);
    });
    const isSuperseded = [...this.#epochs.values()].some((other) => other.incarnation > epoch.incarnation);
    const highest = Math.max(0, ...epoch.records.keys());
    const believed = isSuperseded ? Number.POSITIVE_INFINITY : highest;
    const below = { from: 1, to: Math.min(batch.oldestSeq, batch.first) - 1, cause: 'below_oldest' };
    for (const { from, to, cause } of [...batch.lost, below])
      for (let seq = from; seq <= Math.min(to, believed); seq += 1)
        if (!epoch.records.has(seq) && !epoch.lost.has(seq)) epoch.lost.set(seq, cause);
    epoch.last = Math.max(epoch.last, ...epoch.records.keys(), ...epoch.lost.keys());
    epoch.ackGeneration = Math.max(epoch.ackGeneration, batch.ackGeneration);
    while (epoch.records.has(epoch.ackedSeq + 1) || epoch.lost.has(epoch.ackedSeq + 1)) epoch.ackedSeq += 1;
  }

  #closeEarlier({ incarnation, held }: Envelope): void {
    const lastHeld = new Map(held.map(({ epoch, last }) => [epoch, last]));
    for (const [name, epoch] of this.#epochs) {
      if (epoch.incarnation >= incarnation) continue;
      if (epoch.isClosed) continue;
      epoch.last = Math.max(epoch.last, lastHeld.get(name) ?? 0);
      if (lastHeld.has(name)) continue;
      for (let seq = 1; seq <= epoch.last; seq += 1)
        if (!epoch.records.has(seq) && !epoch.lost.has(seq)) epoch.lost.set(seq, 'store_lost');
      epoch.isClosed = true;
      this.#redis.replies.delete(name);
    }
  }
}
