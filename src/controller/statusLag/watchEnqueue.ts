/*
 * The ingest side of impact: puts transitions on the work list, in the transaction of the batch that tells of them, so that a batch
 * that comes again adds nothing.
 *
 *   overdue   always, unless the list is full: then the finding says `shed`
 *   sample    few: each node and all nodes together have a rate
 */
import { randomUUID } from 'node:crypto';
import { monoNow } from '../../platform/clock.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import type { BatchScope } from '../ingest/batchScope.ts';
import type { WatchEnqueuer } from '../ingest/commitBatch.ts';
import { ofType, type StorableRecord } from '../ingest/recordValidation.ts';
import type { SqlRunner } from '../store/store.ts';
import insertLagReasons from './sql/insertLagReasons.sql';
import insertWatches from './sql/insertWatches.sql';
import narrowWatches from './sql/narrowWatches.sql';
import { announcedOf, type Batched, closerOf, overdueOf, type Watch } from './transitions.ts';

/** The most transitions on the list of a cluster. At 10 reads a second 2,000 are each read every 200 s. */
const MOST_OVERDUE = 2_000;
const MOST_SAMPLES = 200;
/** And of one node: where a stream has died, or somebody speaks for it, the others are measured all the same. */
const MOST_OVERDUE_OF_NODE = 200;
/** After this the status is not waited for. Longer than a kubelet whose events are lost takes to relist: 300 s. */
const OVERDUE_EXPIRES_MS = 15 * 60_000;
const SAMPLE_EXPIRES_MS = 60_000;
/** A kubelet needs a moment to publish what it heard. */
const SAMPLE_FIRST_MS = 1_000;

/** Samples of a node: so many at once, and so many a second. */
const NODE_LIMIT = { capacity: 20, interval: perSecond(0.5) };
/** The share of the reads that may begin samples; each takes about two. */
const SAMPLE_SHARE = 0.25;
/** Nodes beyond these have their rate forgotten; the rate of all together holds. */
const MOST_NODES = 20_000;

export interface WatchEnqueuerOptions {
  readonly readsPerSecond: number;
  /** Told how many found no place on the list. */
  readonly onShed: (kind: 'overdue' | 'sample', count: number) => void;
}

export function createWatchEnqueuer({ readsPerSecond, onShed }: WatchEnqueuerOptions): WatchEnqueuer {
  const everywhere = new TokenBucket({
    capacity: Math.max(1, readsPerSecond),
    interval: perSecond(readsPerSecond * SAMPLE_SHARE),
  });
  const nodes = new Map<number, TokenBucket>();

  const mayMeasure = (nodeId: number): boolean => {
    if (nodes.size >= MOST_NODES) nodes.clear();
    const node = nodes.get(nodeId) ?? new TokenBucket(NODE_LIMIT);
    nodes.set(nodeId, node);
    const now = monoNow();
    return node.tryTake(now) && everywhere.tryTake(now);
  };

  return {
    async enqueue(runner, scope, times, records) {
      const batched: Batched = { records, times, identities: scope.identities };
      const { watches, unnamed } = overdueOf(batched);
      const shed = await put(runner, scope, false, watches);
      await tell(
        runner,
        scope,
        records,
        new Map([
          ...unnamed.map((finding) => [finding, 'no_pod'] as const),
          ...shed.map((finding) => [finding, 'shed'] as const),
        ]),
      );
      if (shed.length > 0) onShed('overdue', shed.length);
      await bringCloser(runner, scope, batched);
      const samples = announcedOf(batched)
        .filter(() => mayMeasure(scope.nodeId))
        .map((sample) => ({ ...sample, finding: randomUUID() }));
      const left = await put(runner, scope, true, samples);
      if (left.length > 0) onShed('sample', left.length);
    },
  };
}

/** Returns the findings that found no place. */
async function put(
  runner: SqlRunner,
  { nodeId, clusterId }: BatchScope,
  sample: boolean,
  watches: readonly Watch[],
): Promise<string[]> {
  if (watches.length === 0) return [];
  const { rows } = await runner.run<{ finding_id: string }>({ name: 'insert_watches', text: insertWatches }, [
    nodeId,
    clusterId,
    sample,
    sample ? MOST_SAMPLES : MOST_OVERDUE,
    sample ? MOST_SAMPLES : MOST_OVERDUE_OF_NODE,
    sample ? SAMPLE_FIRST_MS : 0,
    sample ? SAMPLE_EXPIRES_MS : OVERDUE_EXPIRES_MS,
    watches.map(({ finding }) => finding),
    watches.map(({ type }) => type),
    watches.map(({ object }) => object.id),
    watches.map(({ object }) => object.podUid),
    watches.map(({ object }) => object.namespace),
    watches.map(({ object }) => object.pod),
    watches.map(({ object }) => object.container),
    watches.map(({ object }) => object.attempt),
    watches.map(({ latest }) => Math.round(latest)),
    watches.map(({ earliest }) => (earliest === null ? null : Math.round(earliest))),
  ]);
  const taken = new Set(rows.map((row) => row.finding_id));
  return watches.map(({ finding }) => finding).filter((finding) => !taken.has(finding));
}

/** Says why there will be no lag of these findings. */
async function tell(
  runner: SqlRunner,
  { nodeId, clusterId }: BatchScope,
  records: readonly StorableRecord[],
  reasons: ReadonlyMap<string, string>,
): Promise<void> {
  if (reasons.size === 0) return;
  const told = ofType(records, 'event_overdue').filter(({ record }) => reasons.has(record.findingId));
  await runner.run({ text: insertLagReasons }, [
    nodeId,
    clusterId,
    told.map(({ record }) => record.findingId),
    told.map(({ at }) => at),
    told.map(({ record }) => reasons.get(record.findingId)),
  ]);
}

async function bringCloser(runner: SqlRunner, { nodeId }: BatchScope, batched: Batched): Promise<void> {
  const closer = closerOf(batched);
  if (closer.length === 0) return;
  await runner.run({ text: narrowWatches }, [
    nodeId,
    closer.map(({ finding }) => finding),
    closer.map(({ latest }) => Math.round(latest)),
    closer.map(({ earliest }) => (earliest === null ? null : Math.round(earliest))),
  ]);
}
