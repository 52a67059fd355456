/*
 * Batches straight into the store, without a queue, for tests of what is in it.
 */

import { commitBatch, type Enlisting } from '../../src/controller/ingest/commit.ts';
import { createPartitions } from '../../src/controller/ingest/partitions.ts';
import { openStore } from '../../src/controller/store/store.ts';
import { type Batch, decodeBatch, encodeBatch } from '../../src/protocol/batch.ts';
import { CLUSTER } from './batches.ts';
import { silent } from './database.ts';

/** `impact` as a controller that measures it has it. */
export async function commitAll(
  databaseUrl: string,
  batches: readonly Batch[],
  impact?: Enlisting,
): Promise<void> {
  const store = await openStore({ databaseUrl, log: silent });
  try {
    const clusterId = await store.clusterId(CLUSTER);
    const settings = await store.settings();
    const context = { store, clusterId, settings: () => settings, partitions: createPartitions(), impact };
    for (const batch of batches) {
      const decoded = await decodeBatch(await encodeBatch(batch));
      if (!decoded.ok) throw new Error(decoded.error);
      const outcome = await commitBatch(context, decoded.value);
      if (outcome.kind !== 'committed') throw new Error(outcome.error);
    }
  } finally {
    await store.close();
  }
}
