/*
 * Reads the next records of an epoch that are to be sent. Lost records are skipped only once they are declared: what should be
 * readable and is not is tried again, and then declared lost.
 */
import type { Logger } from '../../platform/log.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_RECORDS } from '../../protocol/batch.ts';
import type { Epoch } from '../spool/epoch.ts';
import type { SpoolEntry } from '../spool/segmentFormat.ts';
import type { EpochDelivery } from './epochDelivery.ts';

const MAX_READS = 20;

/** The seq to continue from, and the records from there on; none if all up to there are lost. */
export interface RecordsToSend {
  readonly first: number;
  readonly entries: readonly SpoolEntry[];
}

export class NextRecords {
  readonly #log: Logger;
  /** How often in a row the next records of an epoch could not be read. */
  readonly #failures = new WeakMap<Epoch, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The records for the next batch; null while records before them cannot be read and are not declared lost. */
  async take({ epoch, nextSeq }: EpochDelivery): Promise<RecordsToSend | null> {
    const entries = await epoch.read(nextSeq, MAX_BATCH_RECORDS, MAX_BATCH_BYTES);
    const first = entries[0]?.seq ?? epoch.lastSeq + 1;
    return this.#maySkip(epoch, nextSeq, first - 1) ? { first, entries } : null;
  }

  #maySkip(epoch: Epoch, next: number, to: number): boolean {
    // Records before the oldest one were deleted after their acknowledgement: a store without them declares them lost itself.
    const from = Math.max(next, epoch.oldestSeq);
    if (epoch.isDeclaredLost(from, to)) {
      this.#failures.delete(epoch);
      return true;
    }
    const failures = (this.#failures.get(epoch) ?? 0) + 1;
    this.#failures.set(epoch, failures);
    if (failures < MAX_READS) return false;
    this.#log.error({ from, to }, 'unreadable records in the spool are declared lost');
    epoch.declareLost({ from, to, cause: 'spool_unreadable' });
    return true;
  }
}
