/*
 * A sweep deletes acknowledged segments after their retention. An epoch is retired before its last segment is deleted.
 */
import type { Micros } from '../../protocol/units.ts';
import type { Epoch, EpochList } from './epoch.ts';
import type { Losses } from './losses.ts';
import type { RetiredEpochs } from './retiredEpochs.ts';
import type { SpoolStatus } from './status.ts';

export interface SweptParts {
  readonly retention: Micros;
  readonly epochs: EpochList;
  readonly retired: RetiredEpochs;
  readonly losses: Losses;
  readonly status: SpoolStatus;
}

/** Throws if something could not be deleted or saved; the next sweep tries again. */
export async function sweep(parts: SweptParts): Promise<void> {
  const { retention, epochs, retired, losses } = parts;
  const horizonMs = Date.now() - retention / 1000;
  for (const epoch of [...epochs.all]) {
    while (epoch.segments.length > 1 && isOldestExpired(epoch, horizonMs)) await dropOldest(epoch);
    if (mayRetire(epoch, parts, horizonMs)) await retired.retire(epoch);
  }
  await retired.forgetOldest();
  await losses.save();
}

function mayRetire(epoch: Epoch, { epochs, status }: SweptParts, horizonMs: number): boolean {
  if (epoch === epochs.current || epoch.retirement !== null || !epoch.isAcknowledged) return false;
  // In memory the list of retired epochs would be gone with the process.
  if (status.isInMemory) return false;
  return epoch.segments.length === 0 || isOldestExpired(epoch, horizonMs);
}

function isOldestExpired(epoch: Epoch, horizonMs: number): boolean {
  const oldest = epoch.segments[0];
  return oldest !== undefined && oldest.last <= epoch.ackedSeq && oldest.modifiedMs < horizonMs;
}

async function dropOldest(epoch: Epoch): Promise<void> {
  const [oldest] = epoch.segments;
  if (oldest !== undefined) await epoch.drop(oldest, 'none');
}
