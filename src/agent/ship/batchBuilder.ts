/*
 * The sealer: makes batches of what was cut, and hellos, which are batches without a record. What is sealed is never made
 * anew.
 */
import { monoNow, wallNow } from '../../platform/clock.ts';
import { BATCH_VERSION, type Batch, batchId, type Context, encodeBatch } from '../../protocol/batch.ts';
import type { ContainerIdentity } from '../../protocol/record.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { SpoolEntry } from '../spool/segmentFormat.ts';
import type { Spool } from '../spool/spool.ts';
import type { Sealed, Track } from './epochDelivery.ts';

/** The schema's limit. What is left out follows when the mark has passed what went before. */
const MOST_HOLES = 1000;

export class Sealer {
  readonly #spool: Spool;
  readonly #tracks: ReadonlyMap<Epoch, Track>;

  constructor(spool: Spool, tracks: ReadonlyMap<Epoch, Track>) {
    this.#spool = spool;
    this.#tracks = tracks;
  }

  /** A batch of the entries; without any, a hello that says what is next. */
  async seal(track: Track, entries: readonly SpoolEntry[], next = track.next): Promise<Sealed> {
    const context = entries[0]?.context ?? (await this.#contextOf(track));
    const batch = this.#batch(track, entries, { context, first: entries[0]?.seq ?? next });
    const data = await encodeBatch(batch);
    return { id: batchId(batch), data, last: batch.last, bytes: data.z.length, added: null, tries: 0 };
  }

  /** The versions that a hello speaks under. The store keeps them for the epoch, so an earlier one must not claim ours. */
  async #contextOf(track: Track): Promise<Context> {
    const spool = this.#spool;
    if (track.epoch !== spool.current && track.context === null) {
      const [entry] = await track.epoch.read(track.epoch.oldestSeq, 1, 1);
      track.context = entry?.context ?? track.epoch.retirement?.context ?? null;
      track.epoch.forgetCache();
    }
    const context = track.context ?? spool.context;
    if (context === null) throw new Error('a batch before the first context');
    return context;
  }

  #batch(
    track: Track,
    entries: readonly SpoolEntry[],
    { context, first }: { readonly context: Context; readonly first: number },
  ): Batch {
    const { epoch, round } = track;
    const { meta } = epoch;
    const last = first + entries.length - 1;
    const age = this.#age(epoch, entries);
    return {
      v: BATCH_VERSION,
      cluster: meta.cluster,
      node: meta.node,
      nodeUid: '',
      bootId: meta.bootId,
      epoch: meta.epoch,
      incarnation: meta.incarnation,
      prev: meta.prev,
      held: this.#heldEpochs(),
      ackGeneration: round,
      context,
      first,
      last,
      oldestSeq: epoch.oldestSeq,
      lost: epoch.lost
        .filter((hole) => hole.to > epoch.ackedSeq && (hole.to < first || hole.from > last))
        .slice(0, MOST_HOLES),
      mono0: age,
      wall0: epoch === this.#spool.current ? wallNow() : meta.startedWall + age,
      objects: objectsOf(entries),
      records: entries.map((entry) => entry.record),
    };
  }

  /** How old the epoch is; of an earlier one only the youngest record tells. */
  #age(epoch: Epoch, entries: readonly SpoolEntry[]): number {
    if (epoch === this.#spool.current) return Math.max(0, monoNow() - this.#spool.start);
    return Math.max(0, ...entries.map((entry) => entry.record.t));
  }

  /**
   * What the store must not close. One that it has acknowledged belongs to them while its records are here: a store that was
   * restored may know less of it, and hears of that from a batch that was on its way before it is asked again.
   */
  #heldEpochs(): Batch['held'] {
    const { epochs, current } = this.#spool;
    const open = epochs.filter(
      (epoch) =>
        epoch === current ||
        epoch.segments.length > 0 ||
        !epoch.isAcknowledged ||
        !this.#tracks.get(epoch)?.answered,
    );
    return open
      .slice(-1000)
      .map(({ meta, lastSeq }) => ({ epoch: meta.epoch, incarnation: meta.incarnation, last: lastSeq }));
  }
}

/** Every identity that the records mention, once. */
function objectsOf(entries: readonly SpoolEntry[]): ContainerIdentity[] {
  const objects = new Map<string, ContainerIdentity>();
  for (const { object } of entries) {
    if (object !== null) objects.set(object.id, object);
  }
  return [...objects.values()];
}
