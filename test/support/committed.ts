/*
 * Commits batches straight to the store, without a queue, for tests of the stored data.
 */

import { BatchCommitter } from '../../src/controller/ingest/batchCommitter.ts';
import { commitBatch, type WatchEnqueuer } from '../../src/controller/ingest/commitBatch.ts';
import { createPartitionCache } from '../../src/controller/ingest/partitionCache.ts';
import { type Batch, decodeBatch, encodeBatch } from '../../src/protocol/batch.ts';
import { queueOf } from '../../src/protocol/redisKeys.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { CLUSTER } from './batches.ts';
import { silent } from './database.ts';

/** `watches`: set in a controller that measures the status lag. */
export async function commitAll(
  databaseUrl: string,
  batches: readonly Batch[],
  watches?: WatchEnqueuer,
): Promise<void> {
  const store = await openStore({ databaseUrl, log: silent });
  try {
    await commitTo(store, await store.ensureCluster(CLUSTER), batches, watches);
  } finally {
    await store.close();
  }
}

export async function commitTo(
  store: Store,
  clusterId: number,
  batches: readonly Batch[],
  watches?: WatchEnqueuer,
): Promise<void> {
  const settings = await store.readSettings();
  const context = {
    store,
    clusterId,
    settings: () => settings,
    partitions: createPartitionCache(),
    watches,
  };
  for (const batch of batches) {
    const decoded = await decodeBatch(await encodeBatch(batch));
    if (!decoded.ok) throw new Error(decoded.error);
    const outcome = await commitBatch(context, decoded.value);
    if (outcome.is !== 'committed') throw new Error(outcome.error);
  }
}

/** Commits batches together, as a controller does that has taken all of them from its queues. Resolves to what became of each. */
export async function createCommitter(
  store: Store,
  transactions: Pick<Store, 'transaction'> = store,
  now: () => number = () => performance.now(),
): Promise<(batches: readonly Batch[]) => Promise<string[]>> {
  const settings = await store.readSettings();
  const committer = new BatchCommitter({
    store: transactions,
    clusterId: await store.ensureCluster(CLUSTER),
    settings: () => settings,
    partitions: createPartitionCache(),
    connections: 4,
    now,
    log: { warn: () => undefined, error: () => undefined },
  });
  return async (batches) => {
    const decoded = await Promise.all(batches.map(async (batch) => decodeBatch(await encodeBatch(batch))));
    const outcomes = await Promise.allSettled(
      decoded.map((each) => {
        if (!each.ok) throw new Error(each.error);
        return committer.commit(queueOf(each.value.node, settings.queues), {
          envelope: each.value,
          isSigned: false,
          bytes: each.bytes,
        });
      }),
    );
    return outcomes.map((each) => (each.status === 'fulfilled' ? each.value.is : 'failed'));
  };
}
