/*
 * Adds watches in the transaction that stores their batch, so that a duplicate batch adds none.
 *
 *   overdue   every overdue transition; beyond a limit the finding gets the lag reason `shed`
 *   fallback  every announced transition on a node whose kubelet fell back and keeps what events told it
 *             (docs/decisions/0045-follow-after-a-fallback.md)
 *   sample    few announced transitions of other nodes: rates limit them per node and in total
 */
import { randomUUID } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import { monoNow } from '../../platform/clock.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import { fallbackConsequence } from '../../protocol/fallback.ts';
import type { Mono } from '../../protocol/units.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { nodeState } from '../../store/schema/tables.ts';
import type { BatchScope } from '../ingest/batchScope.ts';
import type { WatchEnqueuer } from '../ingest/commitBatch.ts';
import { ofType, type StorableRecord } from '../ingest/recordValidation.ts';
import { insertLagReasons, insertWatches, narrowWatches } from './statements.ts';
import { WATCH_LIMITS, type WatchKind } from './watchLimits.ts';
import {
  announcedTransitions,
  type NewWatch,
  narrowedBounds,
  overdueWatches,
  type StoredBatch,
} from './watchSelection.ts';

const NODE_LIMIT = { capacity: 20, interval: perSecond(0.5) };
/** The share of reads that may start a sample; a sample takes about two reads. */
const SAMPLE_SHARE = 0.25;
/** Beyond this many nodes the limits per node start again; the total limit remains. */
const MAX_NODES = 20_000;

export interface WatchEnqueuerOptions {
  readonly readsPerSecond: number;
  readonly onShed: (kind: WatchKind, count: number) => void;
  /** Default: {@link monoNow}. */
  readonly clock?: () => Mono;
}

export function createWatchEnqueuer({
  readsPerSecond,
  onShed,
  clock = monoNow,
}: WatchEnqueuerOptions): WatchEnqueuer {
  const total = new TokenBucket({
    capacity: Math.max(1, readsPerSecond),
    interval: perSecond(readsPerSecond * SAMPLE_SHARE),
  });
  const nodes = new Map<number, TokenBucket>();

  const mayAddSample = (nodeId: number): boolean => {
    if (nodes.size >= MAX_NODES) nodes.clear();
    const node = nodes.get(nodeId) ?? new TokenBucket(NODE_LIMIT);
    nodes.set(nodeId, node);
    const now = clock();
    return node.tryTake(now) && total.tryTake(now);
  };

  return {
    async enqueue(runner, scope, times, records) {
      const { identities, lateAfter } = scope;
      const batch: StoredBatch = { records, times, identities, lateAfter };
      const { watches, withoutPod } = overdueWatches(batch);
      const shed = await insert(runner, scope, 'overdue', watches);
      const reasons = new Map([
        ...withoutPod.map((findingId) => [findingId, 'no_pod'] as const),
        ...shed.map((findingId) => [findingId, 'shed'] as const),
      ]);
      await recordReasons(runner, scope, records, reasons);
      if (shed.length > 0) onShed('overdue', shed.length);
      await narrow(runner, scope, batch);
      const announced = announcedTransitions(batch);
      const kind = announced.length > 0 && (await keepsStatuses(runner, scope)) ? 'fallback' : 'sample';
      const followed = announced
        .filter(({ isFresh }) => kind === 'fallback' || (isFresh && mayAddSample(scope.nodeId)))
        .map((transition) => ({ ...transition, findingId: randomUUID() }));
      const left = await insert(runner, scope, kind, followed);
      if (left.length > 0) onShed(kind, left.length);
    },
  };
}

/** Whether the kubelet of the node fell back and keeps what events told it. Only kubelets that can are asked for. */
async function keepsStatuses(
  runner: SqlRunner,
  { nodeId, incarnation, kubeletVersion }: BatchScope,
): Promise<boolean> {
  const isWrong = (mode: string, reason: string | null) =>
    fallbackConsequence({ mode, reason, kubeletVersion }) === 'wrong_until_restart';
  if (!isWrong('Fallback', null)) return false;
  const { node_id, incarnation: of, mode, mode_reason: reason } = nodeState;
  const [state] = await runner.query((db) =>
    db
      .select({ mode, reason })
      .from(nodeState)
      .where(and(eq(node_id, nodeId), eq(of, incarnation))),
  );
  return state !== undefined && isWrong(state.mode, state.reason);
}

/** Returns the finding ids of the watches that exceed a limit. */
async function insert(
  runner: SqlRunner,
  { nodeId, clusterId }: BatchScope,
  kind: WatchKind,
  watches: readonly NewWatch[],
): Promise<string[]> {
  if (watches.length === 0) return [];
  const { max, maxOfNode, firstReadAfterMs, watchedForMs } = WATCH_LIMITS[kind];
  const { rows } = await runner.run(insertWatches, [
    nodeId,
    clusterId,
    kind,
    max,
    maxOfNode,
    firstReadAfterMs,
    watchedForMs,
    watches.map(({ findingId }) => findingId),
    watches.map(({ type }) => type),
    watches.map(({ container }) => container.id),
    watches.map(({ container }) => container.podUid),
    watches.map(({ container }) => container.namespace),
    watches.map(({ container }) => container.pod),
    watches.map(({ container }) => container.container),
    watches.map(({ container }) => container.attempt),
    watches.map(({ latest }) => Math.round(latest)),
    watches.map(({ earliest }) => (earliest === null ? null : Math.round(earliest))),
  ]);
  const inserted = new Set(rows.map((row) => row.finding_id));
  return watches.map(({ findingId }) => findingId).filter((findingId) => !inserted.has(findingId));
}

async function recordReasons(
  runner: SqlRunner,
  { nodeId, clusterId }: BatchScope,
  records: readonly StorableRecord[],
  reasons: ReadonlyMap<string, string>,
): Promise<void> {
  if (reasons.size === 0) return;
  const overdue = ofType(records, 'event_overdue').filter(({ record }) => reasons.has(record.findingId));
  await runner.run(insertLagReasons, [
    nodeId,
    clusterId,
    overdue.map(({ record }) => record.findingId),
    overdue.map(({ at }) => at),
    overdue.map(({ record }) => reasons.get(record.findingId)),
  ]);
}

async function narrow(runner: SqlRunner, { nodeId }: BatchScope, batch: StoredBatch): Promise<void> {
  const bounds = narrowedBounds(batch);
  if (bounds.length === 0) return;
  await runner.run(narrowWatches, [
    nodeId,
    bounds.map(({ findingId }) => findingId),
    bounds.map(({ latest }) => Math.round(latest)),
    bounds.map(({ earliest }) => (earliest === null ? null : Math.round(earliest))),
  ]);
}
