/*
 * Retired epochs: every record was acknowledged and deleted. A small file remembers that they existed and how far they went:
 * a store that is restored from an older backup must learn what it lost, and nothing else knows.
 *
 * The store is asked about them when an agent starts, when it turns out to know less than before, and once an hour. Their
 * number and their age are bounded.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { ContextSchema } from '../../protocol/batch.ts';
import type { Micros } from '../../protocol/units.ts';
import { int4 } from '../../protocol/validation.ts';
import { Epoch, type EpochList, EpochMetaSchema, type Retirement } from './epoch.ts';
import { readJson, type SpoolFiles, type SpoolFolder, writeDurably } from './files.ts';
import type { Segment } from './segment.ts';

export const RETIRED_FILE = 'retired.json';
/** How many epochs are remembered; each takes about 400 bytes. */
export const MAX_RETIRED_EPOCHS = 32;
/** For how long they are remembered: an older backup is of no use. */
export const RETIRED_RETENTION_MS = 30 * 86_400_000;

const RetiredEpochSchema = v.object({
  meta: EpochMetaSchema,
  last: int4,
  at: v.number(),
  context: v.fallback(v.nullable(ContextSchema), null),
});
type RetiredEpoch = v.InferOutput<typeof RetiredEpochSchema>;

/** The retired epochs, ordered by incarnation, without those that were recovered from their folders. */
export async function readRetiredEpochs(options: SpoolFolder, recovered: readonly Epoch[]): Promise<Epoch[]> {
  const retired = await readJson(options, join(options.dir, RETIRED_FILE), v.array(RetiredEpochSchema));
  return (retired ?? [])
    .filter(({ meta }) => !recovered.some((epoch) => epoch.meta.epoch === meta.epoch))
    .map(({ meta, last, at, context }) => {
      const epoch = new Epoch(options.files, { meta, dir: '', lastSeq: last });
      epoch.retire({ at, context });
      return epoch;
    });
}

export interface RetiredEpochsOptions {
  readonly files: SpoolFiles;
  readonly dir: string;
  readonly retention: Micros;
  readonly epochs: EpochList;
}

export class RetiredEpochs {
  readonly #options: RetiredEpochsOptions;

  constructor(options: RetiredEpochsOptions) {
    this.#options = options;
  }

  /**
   * Deletes acknowledged segments after their retention; an epoch is retired before its last one is deleted, unless `mayRetire` returns false.
   * Throws if something could not be deleted or saved; the next sweep tries again.
   */
  async sweep(mayRetire: () => boolean): Promise<void> {
    const { epochs, retention } = this.#options;
    const horizonMs = Date.now() - retention / 1000;
    for (const epoch of [...epochs.all]) {
      await epoch.findEnd();
      for (const segment of epoch.segments.slice(0, -1)) {
        if (!isExpired(epoch, segment, horizonMs)) break;
        await epoch.drop(segment, 'none');
      }
      const mayEnd = epoch !== epochs.current && epoch.retirement === null && epoch.isAcknowledged;
      const [oldest] = epoch.segments;
      const isOver = oldest === undefined || isExpired(epoch, oldest, horizonMs);
      if (mayEnd && isOver && mayRetire()) await this.retire(epoch);
    }
    await this.#forgetOldest();
  }

  /**
   * Retires an epoch and deletes its folder, unless its records turn out to be missing in the store meanwhile. An epoch without a record is
   * not remembered.
   */
  async retire(epoch: Epoch): Promise<void> {
    if (epoch.lastSeq === 0) {
      this.#options.epochs.remove(epoch);
    } else {
      const [entry] = await epoch.read(epoch.oldestSeq, 1, 1);
      const retirement = { at: Date.now(), context: entry?.context ?? null };
      await this.#save(epoch, retirement);
      // The next agent recovers it from its folder, and ignores what was saved.
      if (!epoch.isAcknowledged) return;
      epoch.retire(retirement);
      epoch.releaseSegments();
    }
    await this.#options.files.remove(epoch.dir);
  }

  async #forgetOldest(): Promise<void> {
    const { epochs } = this.#options;
    const retired = epochs.all.filter(({ retirement }) => retirement !== null);
    const horizon = Date.now() - RETIRED_RETENTION_MS;
    const forgotten = retired.filter(
      ({ retirement }, i) => i < retired.length - MAX_RETIRED_EPOCHS || (retirement?.at ?? 0) < horizon,
    );
    if (forgotten.length === 0) return;
    for (const epoch of forgotten) epochs.remove(epoch);
    await this.#save();
  }

  /** `retiring`: an epoch that is retired once that is saved. */
  async #save(retiring: Epoch | null = null, itsRetirement: Retirement | null = null): Promise<void> {
    const { files, dir, epochs } = this.#options;
    const retired = epochs.all.flatMap((epoch): RetiredEpoch[] => {
      const retirement = epoch === retiring ? itsRetirement : epoch.retirement;
      return retirement === null ? [] : [{ meta: epoch.meta, last: epoch.lastSeq, ...retirement }];
    });
    await writeDurably(files, dir, RETIRED_FILE, retired);
  }
}

const isExpired = (epoch: Epoch, segment: Segment, horizonMs: number): boolean =>
  epoch.hasAcknowledged(segment) && segment.modifiedMs < horizonMs;
