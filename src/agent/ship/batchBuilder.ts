/*
 * Builds batches of records, and probes, which are batches without a record.
 */
import type { KeyObject } from 'node:crypto';
import { readClocks } from '../../platform/clock.ts';
import { invariant } from '../../platform/invariant.ts';
import {
  BATCH_VERSION,
  type Batch,
  batchId,
  type Context,
  encodeBatch,
  type SignedHead,
} from '../../protocol/batch.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import { RecordChain } from '../../protocol/recordChain.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { SpoolEntry } from '../spool/segmentFormat.ts';
import type { Spool } from '../spool/spool.ts';
import type { Deliveries } from './deliveries.ts';
import type { EpochDelivery } from './epochDelivery.ts';
import { SealedBatch } from './sealedBatch.ts';

/** The envelope's limits. Lost ranges that are left out follow when the acked seq has passed the earlier ones. */
const MAX_LOST_RANGES = 1000;
const MAX_HELD_EPOCHS = 1000;

export class BatchBuilder {
  readonly #key: KeyObject | undefined;
  readonly #spool: Spool;
  readonly #deliveries: Deliveries;
  readonly #chains = new WeakMap<Epoch, RecordChain>();
  /** The first contexts of earlier epochs, for probes. */
  readonly #contexts = new WeakMap<Epoch, Context>();

  constructor(spool: Spool, deliveries: Deliveries, key: KeyObject | undefined) {
    this.#key = key;
    this.#spool = spool;
    this.#deliveries = deliveries;
  }

  /** A batch of consecutive entries of one context. Without entries: a probe, where `next` is the next seq to send. */
  async build(
    delivery: EpochDelivery,
    entries: readonly SpoolEntry[],
    next: number = delivery.nextSeq,
  ): Promise<SealedBatch> {
    const context = entries[0]?.context ?? (await this.#contextOf(delivery.epoch));
    const first = entries[0]?.seq ?? next;
    const batch = this.#batch(delivery, entries, { context, first });
    return new SealedBatch(batchId(batch), await encodeBatch(batch, this.#key), batch.last);
  }

  /** The context of a probe. The store keeps it for the epoch, so that of an earlier epoch must not be the current one. */
  async #contextOf(epoch: Epoch): Promise<Context> {
    const context = this.#contexts.get(epoch) ?? (await this.#firstContextOf(epoch)) ?? this.#spool.context;
    invariant(context !== null, 'a batch before the first context');
    return context;
  }

  async #firstContextOf(epoch: Epoch): Promise<Context | null> {
    if (epoch === this.#spool.current) return null;
    const [entry] = await epoch.read(epoch.oldestSeq, 1, 1);
    const context = entry?.context ?? epoch.retirement?.context ?? null;
    if (context !== null) this.#contexts.set(epoch, context);
    epoch.forgetCache();
    return context;
  }

  #batch(
    { epoch, ackGeneration }: EpochDelivery,
    entries: readonly SpoolEntry[],
    { context, first }: { readonly context: Context; readonly first: number },
  ): Batch {
    const { meta } = epoch;
    const last = first + entries.length - 1;
    return {
      v: BATCH_VERSION,
      cluster: meta.cluster,
      node: meta.node,
      nodeUid: '',
      bootId: meta.bootId,
      epoch: meta.epoch,
      startedMono: meta.startedMono,
      incarnation: meta.incarnation,
      prev: meta.prev,
      held: this.#heldEpochs(),
      ackGeneration,
      context,
      first,
      last,
      oldestSeq: epoch.oldestSeq,
      lost: epoch.lost
        .filter(({ from, to }) => to > epoch.ackedSeq && (to < first || from > last))
        .slice(0, MAX_LOST_RANGES),
      ...this.#clocks(epoch, entries),
      ...this.#headOf(epoch, entries),
      ...this.#knownOf(epoch, entries, last),
      objects: objectsOf(entries),
      records: entries.map(({ record }) => record),
    };
  }

  /** The signed head after these entries. None without a key, and in a probe. */
  #headOf(epoch: Epoch, entries: readonly SpoolEntry[]): { readonly head?: SignedHead } {
    const [first] = entries;
    if (this.#key === undefined || first === undefined) return {};
    let chain = this.#chains.get(epoch);
    if (chain?.next !== first.seq) {
      chain = new RecordChain(first.seq);
      this.#chains.set(epoch, chain);
    }
    for (const entry of entries) chain.add(entry);
    return { head: chain.sign(this.#key, epoch.meta, epoch.meta.epoch) };
  }

  #knownOf(epoch: Epoch, entries: readonly SpoolEntry[], last: number): Pick<Batch, 'known'> {
    const { current, known } = this.#spool;
    if (epoch !== current || entries.length > 0 || known === null || last < known.last) return {};
    return { known: { decided: known.decided, scraped: known.scraped } };
  }

  /** The time since the epoch's start, and the wall clock then: now, or at the latest record in a batch of an earlier epoch. */
  #clocks(epoch: Epoch, entries: readonly SpoolEntry[]): Pick<Batch, 'mono0' | 'wall0'> {
    if (epoch === this.#spool.current) {
      const { mono, wall } = readClocks();
      return { mono0: Math.max(0, mono - this.#spool.start), wall0: wall };
    }
    const mono0 = Math.max(0, ...entries.map(({ record }) => record.t));
    return { mono0, wall0: epoch.meta.startedWall + mono0 };
  }

  /**
   * The epochs that the store must keep open. These include acknowledged ones while their records are in the spool: a restored
   * store may know less of them, and a batch on its way may arrive before the store is asked again.
   */
  #heldEpochs(): Batch['held'] {
    const { epochs, current } = this.#spool;
    const held = epochs.filter(
      (epoch) =>
        epoch === current ||
        epoch.segments.length > 0 ||
        !epoch.isAcknowledged ||
        !this.#deliveries.isAnswered(epoch),
    );
    return held
      .slice(-MAX_HELD_EPOCHS)
      .map(({ meta, lastSeq }) => ({ epoch: meta.epoch, incarnation: meta.incarnation, last: lastSeq }));
  }
}

function objectsOf(entries: readonly SpoolEntry[]): ContainerIdentity[] {
  const objects = new Map<string, ContainerIdentity>();
  for (const { object } of entries) {
    if (object !== null) objects.set(object.id, object);
  }
  return [...objects.values()];
}
