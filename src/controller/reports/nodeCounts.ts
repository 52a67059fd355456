/*
 * Counts the nodes of the cluster by what their reports say, for metrics without a series per node.
 */
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import type { Store } from '../../store/store.ts';
import countNodes from './sql/countNodes.sql';

export type NodeCount = {
  readonly of: 'mode' | 'stream' | 'agent' | 'condition';
  readonly value: string;
  /** Of a condition: `True`, `False` or `Unknown`. */
  readonly status: string;
  readonly nodes: number;
};

export interface NodeCountsOptions {
  readonly store: Pick<Store, 'run' | 'ensureCluster'>;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly silentAfterMs: number;
  readonly log: Logger;
  /** Null while the nodes cannot be counted. */
  readonly onCounted: (counts: readonly NodeCount[] | null) => void;
  /** For tests. Default: 15 s. */
  readonly periodMs?: number;
}

const PERIOD_MS = 15_000;
const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };

/** Counts at once and then regularly, until it is stopped. */
export function startNodeCounts(options: NodeCountsOptions): { stop(): Promise<void> } {
  const { store, cluster, silentAfterMs, log, onCounted, periodMs = PERIOD_MS } = options;
  const loop = new Loop({
    async work() {
      const values = [await store.ensureCluster(cluster), silentAfterMs];
      onCounted((await store.run<NodeCount>({ text: countNodes }, values)).rows);
      return periodMs;
    },
    onError: (error) => {
      onCounted(null);
      log.warn({ error: messageOf(error) }, 'the nodes could not be counted, retrying');
    },
    backoff: BACKOFF,
  });
  loop.start();
  return loop;
}
